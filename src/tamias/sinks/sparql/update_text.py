"""N-Triples as SPARQL Update: what must be written differently, and how a graph is cut into requests.

A blank node keeps its identity only within one request, so triples that share one are never parted.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from tamias.sinks.files.graphs import whole_lines

_ESCAPE = re.compile(rb"\\(?:\\([uU])?|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|.)", re.DOTALL)
_BLANK = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|<[^<>]*>|(_:[^\x00-\x20<>"\\]+)')
_SAID = {0x22: b'\\"', 0x27: b"\\'", 0x5C: b"\\\\", 0x0A: b"\\n", 0x0D: b"\\r"}
_IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>"{}|^`\\]*')


def drop(graph: str) -> bytes:
    """Removes a graph, if it is there."""
    return b"DROP SILENT GRAPH %b" % _iri(graph)


def insert(graph: str, triples: Iterable[bytes]) -> bytes:
    """Adds triples to a graph."""
    return b"INSERT DATA { GRAPH %b {\n%b} }" % (_iri(graph), b"".join(map(sparql_triples, triples)))


def sparql_triples(ntriples: bytes) -> bytes:
    r"""The same triples for SPARQL, which looks for `\u0041` before it looks at anything else.

    >>> print(sparql_triples(rb'<a:s> <a:p> "C:\\users \u0022 \t" .').decode())
    <a:s> <a:p> "C:\\\u0075sers \" \t" .
    """
    return _ESCAPE.sub(_escaped, ntriples) if b"\\" in ntriples else ntriples


def batches(triples: Iterable[bytes], most_bytes: int) -> Iterator[list[bytes]]:
    """The lines of a graph in portions of so many bytes; a larger one only where blank nodes require it.

    Memory holds one portion, and all lines with blank nodes.
    """
    knotted: list[bytes] = []
    ground = _without_blanks(triples, knotted)
    # The knots are looked for when the rest has been read.
    yield from _portions(chain(([line] for line in ground), _knots(knotted)), most_bytes)


def _without_blanks(triples: Iterable[bytes], knotted: list[bytes]) -> Iterator[bytes]:
    for lines in whole_lines(triples):
        for line in lines.split(b"\n")[:-1]:
            if b"_:" in line and _blanks(line):
                knotted.append(line + b"\n")
            else:
                yield line + b"\n"


def _portions(groups: Iterable[list[bytes]], most_bytes: int) -> Iterator[list[bytes]]:
    portion: list[bytes] = []
    size = 0
    for group in groups:
        length = sum(map(len, group))
        if portion and size + length > most_bytes:
            yield portion
            portion, size = [], 0
        portion += group
        size += length
    if portion:
        yield portion


def _knots(lines: list[bytes]) -> Iterator[list[bytes]]:
    """Lines that hang together by blank nodes, knot by knot."""
    leader: dict[bytes, bytes] = {}

    def lead(node: bytes) -> bytes:
        while (above := leader.setdefault(node, node)) != node:
            leader[node] = leader[above]
            node = above
        return node

    for line in lines:
        first, *rest = _blanks(line)
        for node in rest:
            leader[lead(node)] = lead(first)
    knots: dict[bytes, list[bytes]] = {}
    for line in lines:
        knots.setdefault(lead(_blanks(line)[0]), []).append(line)
    yield from knots.values()


def _blanks(line: bytes) -> list[bytes]:
    return [node for node in _BLANK.findall(line) if node]


def _escaped(found: re.Match[bytes]) -> bytes:
    behind, short, long = found.groups()
    if behind:
        return b"\\\\" + (b"\\u0075" if behind == b"u" else b"\\u0055")
    code = short or long
    return _SAID.get(int(code, 16), found[0]) if code else found[0]


def _iri(graph: str) -> bytes:
    if not _IRI.fullmatch(graph):
        raise ValueError(f"not an IRI: {graph!r}")
    return f"<{graph}>".encode()

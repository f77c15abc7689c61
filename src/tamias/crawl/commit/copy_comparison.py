"""Compares the copy of a dataset with documents of the resources that it covers. All are stored N-Quads."""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from urllib.parse import unquote

from tamias.content.canonical import Unreadable
from tamias.content.canonical.blank_nodes import Colours, with_gaps

Pieces = Callable[[], Iterable[bytes]]
"""Reads N-Quads from their beginning, in pieces that may end anywhere."""
MOST_BLANK = 1000
"""Blank nodes that are followed from the statements about resources; with more, none of them counts."""
MOST_STEPS = 8
"""How far they are followed. Each step reads all from the beginning."""
RUN = 1 << 20
"""Hashes of subjects that are sorted in memory."""
_SUBJECT = re.compile(rb"\n<([^>#]*)")
_ENCODED = re.compile("(?:%[89A-Fa-f][0-9A-Fa-f])+")


class SubjectIndex:
    """Says which URIs are subjects of a copy, by themselves or with a fragment.

    Their hashes are in sorted runs of a file without a name, so a copy of any size takes little memory.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        import numpy as np

        fresh, count, ends = [], 0, []
        with tempfile.TemporaryFile() as file:
            for lines in chain(_whole_lines(pieces), (None,)):
                subjects = set(_SUBJECT.findall(lines)) if lines else ()
                fresh.append(np.fromiter(map(hash, subjects), np.int64, len(subjects)))
                count += len(subjects)
                if count >= RUN or lines is None:
                    file.write(np.unique(np.concatenate(fresh)).tobytes())
                    ends.append(file.tell() // 8)
                    fresh, count = [], 0
            file.flush()
            hashes = np.memmap(file, np.int64, "r") if ends[-1] else np.empty(0, np.int64)
        self._runs = [run for run in np.split(hashes, ends[:-1]) if len(run)]

    def __contains__(self, uri: str) -> bool:
        return any(
            run[min(run.searchsorted(sought), len(run) - 1)] == sought
            for sought in map(hash, (name.encode() for name in _names(uri)))
            for run in self._runs
        )


def statements_about(read: Pieces, uris: Iterable[str]) -> dict[str, Counter[bytes]]:
    """Return the statements about each URI and the blank nodes they lead to, in any graph.

    Blank nodes are named by what is said of them, so that the results of two calls can be compared.
    """
    about = {uri: [_triple(line) for line in _found(read(), _beginnings(uri))] for uri in uris}
    fresh = {node for triples in about.values() for node in _blank_objects(triples)}
    of_node: dict[bytes, list[bytes]] = {}
    for _ in range(MOST_STEPS):
        if not fresh or len(of_node) + len(fresh) > MOST_BLANK:
            break
        of_node |= _about_nodes(read(), fresh)
        fresh = {node for each in fresh for node in _blank_objects(of_node[each])} - of_node.keys()
    if fresh:
        return {
            uri: Counter(each for each in found if with_gaps(each) is None) for uri, found in about.items()
        }
    return {uri: _coloured(_with_nodes(found, of_node)) for uri, found in about.items()}


def _found(pieces: Iterable[bytes], starts: Sequence[bytes]) -> Iterator[bytes]:
    """The lines that begin so."""
    for text in _whole_lines(pieces):
        for start in starts:
            place = text.find(start)
            while place >= 0:
                end = text.find(b"\n", place + 1)
                end = len(text) if end < 0 else end
                yield text[place + 1 : end]
                place = text.find(start, end)


def _about_nodes(pieces: Iterable[bytes], nodes: set[bytes]) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {node: [] for node in nodes}
    for text in _whole_lines(pieces):
        for line in text.split(b"\n"):
            subject = line.partition(b" ")[0] if line.startswith(b"_:") else b""
            if subject in found:
                found[subject].append(_triple(line))
    return found


def _with_nodes(triples: Iterable[bytes], of_node: dict[bytes, list[bytes]]) -> set[bytes]:
    """Return the triples with those about their blank nodes, recursively."""
    found: set[bytes] = set()
    waiting = list(triples)
    while waiting:
        triple = waiting.pop()
        if triple not in found:
            found.add(triple)
            waiting += [each for node in _blank_objects([triple]) for each in of_node[node]]
    return found


def _blank_objects(triples: Iterable[bytes]) -> set[bytes]:
    objects = (triple.split(b" ", 2)[2] for triple in triples)
    return {each for each in objects if each.startswith(b"_:")}


def _beginnings(uri: str) -> list[bytes]:
    """Return the possible beginnings of lines about a URI."""
    return [f"\n<{name}{end}".encode() for name in _names(uri) for end in ("> ", "#")]


def _names(uri: str) -> list[str]:
    """Return the URI, and the IRI with letters of all scripts that may be in its place."""
    iri = _ENCODED.sub(lambda encoded: unquote(encoded[0], errors="replace"), uri)
    return list(dict.fromkeys((uri, iri)))


def _whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Text that begins with a line end and goes on to the last one."""
    rest = b"\n"
    for piece in pieces:
        lines, end, tail = (rest + piece).rpartition(b"\n")
        yield lines
        rest = end + tail


def _triple(line: bytes) -> bytes:
    """Return a stored line without its graph."""
    return line.rsplit(b" ", 2)[0]


def _coloured(triples: Iterable[bytes]) -> Counter[bytes]:
    plain, blank = [], []
    for triple in triples:
        statement = with_gaps(triple)
        if statement is None:
            plain.append(triple)
        else:
            blank.append(statement)
    try:
        names = {node: b"_:" + colour.hex().encode() for node, colour in Colours(blank).of.items()}
    except Unreadable:
        return Counter(plain)
    return Counter([*plain, *(each.written(names) for each in blank)])

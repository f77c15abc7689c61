"""A SPARQL server as a sink: graphs are put by the Graph Store Protocol, or by SPARQL Update where that is
refused."""

import re
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast
from urllib.parse import quote, urlsplit

import msgspec

from tamias.features.dcat.activity import activity_triples
from tamias.features.graph_stores.placement import Placement, Triples
from tamias.model.capture import CaptureRecord
from tamias.model.errors import ConfigError
from tamias.model.vocabulary import METADATA_GRAPH
from tamias.service_client import Credentials, NoResponse, Response, ServiceClient
from tamias.sinks.delivery import Beat, DocumentRefused, SinkAway, SinkStumbled
from tamias.sinks.graphs import whole_lines

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


CREDENTIALS = "TAMIAS_SPARQL_CREDENTIALS"
"""The variable that holds `user:password` or a token; with `_FILE` behind it, the name of a file."""

BATCH_BYTES = 4 * 1024 * 1024
"""N-Triples in one SPARQL Update."""

MEMORY_BYTES = 8 * 1024 * 1024

_SILENT_SECONDS = 120
"""How long a server may neither take nor send anything."""
_REQUEST_SECONDS = 3600
_ANSWER_BYTES = 64 * 1024
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]+")

_PROBE = "urn:tamias:probe"
_PROBE_TRIPLE = b"<urn:tamias:probe> <urn:tamias:probe> <urn:tamias:probe> .\n"
_NOT_THIS_WAY = frozenset({400, 404, 405, 406, 415, 501})
_GONE = frozenset({404, 410})
_AWAY = frozenset({429, 502, 503, 504})
_NOT_ALLOWED = frozenset({401, 403, 407})


class SparqlStore:
    """The graphs of a SPARQL server, by the address of its Graph Store or of its SPARQL Update."""

    def __init__(self, url: str, who: Credentials | None = None, *, batch_bytes: int = BATCH_BYTES) -> None:
        self._url = checked_address(url)
        self._client = ServiceClient(idle_seconds=_SILENT_SECONDS)
        self._who = who
        self._batch_bytes = batch_bytes
        self._by_update: bool | None = None

    def connect(self, beat: Beat = lambda: None) -> None:
        """Finds out how the server takes graphs, with one of our own that is removed again.

        Raises `ConfigError` when it takes none, or not from us.
        """
        answer = self._put(_PROBE, lambda: iter([_PROBE_TRIPLE]), beat)
        if answer.status in _NOT_THIS_WAY:
            updated = self._update(drop(_PROBE), beat)
            if updated.status in _NOT_THIS_WAY:
                raise ConfigError(
                    f"{self._url} takes neither the Graph Store Protocol ({_said(answer)}) nor SPARQL Update "
                    f"({_said(updated)}); name the address of one of them after sparql:"
                )
            self._expect_done(updated)
            self._by_update = True
            return
        self._expect_done(answer)
        self._by_update = False
        self.remove(_PROBE, beat)

    def replace(self, graph: str, triples: Triples, beat: Beat) -> None:
        if self._takes_updates(beat):
            self._update_graph(graph, triples(), beat)
        else:
            self._expect_done(self._put(graph, triples, beat))

    def remove(self, graph: str, beat: Beat) -> None:
        if self._takes_updates(beat):
            self._expect_done(self._update(drop(graph), beat))
            return
        answer = self._exchanged("DELETE", self._graph_url(graph), beat)
        if answer.status not in _GONE:
            self._expect_done(answer)

    def add(self, graph: str, triples: Triples, beat: Beat) -> None:
        """The graph holds these triples, too. None of them has blank nodes."""
        if not self._takes_updates(beat):
            self._expect_done(self._put(graph, triples, beat, method="POST"))
            return
        for portion in batches(triples(), self._batch_bytes):
            self._expect_done(self._update(insert(graph, portion), beat))

    def close(self) -> None:
        self._client.close()

    def _takes_updates(self, beat: Beat) -> bool:
        if self._by_update is None:
            self.connect(beat)
        return bool(self._by_update)

    def _put(self, graph: str, triples: Triples, beat: Beat, method: str = "PUT") -> Response:
        with SpooledTemporaryFile(max_size=MEMORY_BYTES) as spool:
            for piece in triples():
                spool.write(piece)
            return self._exchanged(
                method,
                self._graph_url(graph),
                beat,
                body=cast("BinaryIO", spool),
                size=spool.tell(),
                content_type="application/n-triples",
            )

    def _update_graph(self, graph: str, triples: Iterator[bytes], beat: Beat) -> None:
        """The first portion goes with the drop, so that a small graph is never seen empty."""
        before = drop(graph) + b" ;\n"
        for portion in batches(triples, self._batch_bytes):
            beat()
            self._expect_done(self._update(before + insert(graph, portion), beat))
            before = b""
        if before:
            self._expect_done(self._update(drop(graph), beat))

    def _update(self, text: bytes, beat: Beat) -> Response:
        return self._exchanged(
            "POST",
            self._url,
            beat,
            body=BytesIO(text),
            size=len(text),
            content_type="application/sparql-update",
        )

    def _expect_done(self, answer: Response) -> None:
        status = answer.status
        if 200 <= status < 300:
            return
        if status in _AWAY:
            raise SinkAway(f"{self._url} wants a pause: {_said(answer)}", _retry_after(answer))
        if status in _NOT_ALLOWED:
            raise ConfigError(
                f"{self._url} does not let us write ({_said(answer)}); set {CREDENTIALS} to user:password or "
                f"to a token, or {CREDENTIALS}_FILE to a file that holds it"
            )
        if 300 <= status < 400:
            target = answer.headers.get("location", "an unnamed address")
            raise ConfigError(f"{self._url} redirects to {target}; name that address after sparql:")
        if status >= 500:
            raise SinkStumbled(f"{self._url} failed: {_said(answer)}")
        raise DocumentRefused(f"{self._url} refused: {_said(answer)}")

    def _exchanged(
        self,
        method: str,
        url: str,
        beat: Beat,
        *,
        body: BinaryIO | None = None,
        size: int = 0,
        content_type: str = "",
    ) -> Response:
        """Send a request and return its response, of any status. Raises `SinkAway` when there is none."""
        headers = {"Content-Type": content_type} if content_type else {}
        try:
            answer = self._client.send(
                method,
                url,
                headers=headers,
                seconds=_REQUEST_SECONDS,
                most=_ANSWER_BYTES,
                body=body,
                size=size,
                who=self._who,
                beat=beat,
            )
        except NoResponse as error:
            raise SinkAway(f"{url.partition('?')[0]} does not answer: {error}") from error
        if answer.status == 401 and self._who and not self._who.digest and _wants_digest(answer):
            self._who = msgspec.structs.replace(self._who, digest=True)
            return self._exchanged(method, url, beat, body=body, size=size, content_type=content_type)
        return answer

    def _graph_url(self, graph: str) -> str:
        mark = "&" if "?" in self._url else "?"
        return f"{self._url}{mark}graph={quote(graph, safe='')}"


class SparqlSink(Placement):
    """Documents in their graphs, and what is known of attempts in one more, to which is only added."""

    store: SparqlStore

    def describe(self, records: Sequence[CaptureRecord], beat: Beat) -> None:
        """The statements of an attempt never change, so that they can be added twice."""
        self.store.add(METADATA_GRAPH.value, lambda: activity_triples(records), beat)


def checked_address(url: str) -> str:
    """The address, if it is one that may be kept and shown."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"'{url[:200]}' is not the address of a SPARQL server: use sparql:https://HOST/update"
        )
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "leave the password out of the address of the SPARQL server, where others can read it; "
            f"set {CREDENTIALS} or {CREDENTIALS}_FILE instead"
        )
    return url.partition("#")[0]


def _said(answer: Response) -> str:
    """Status and beginning of the body, for people."""
    text = _UNPRINTABLE.sub(" ", answer.content.decode("utf-8", "replace")).strip()[:300]
    return f"{answer.status} {text}".strip()


def _retry_after(answer: Response) -> float | None:
    """The seconds that the server asked us to wait, if it said so in seconds."""
    value = answer.headers.get("retry-after", "")
    return float(value) if value.isdigit() and len(value) < 7 else None


def _wants_digest(answer: Response) -> bool:
    offered = answer.headers.get("www-authenticate", "").lower()
    return "digest" in offered and "basic" not in offered

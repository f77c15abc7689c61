"""Asks a SPARQL server: the answer is had whole, within its limits of time and size, or not at all."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Protocol, cast
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from tamias.crawl.catalogue.errors import AnswerTooLarge, QueryRefused, QueryTooLong, StoreAway
from tamias.sinks.delivery import Beat, SinkAway, SinkStumbled
from tamias.sinks.placement import Triples
from tamias.sinks.sparql_text import drop, insert

ANSWER_BYTES = 256 << 20
_MEMORY_BYTES = 1 << 20
_TOLD_BYTES = 4096
_IDLE = 8
_WRITE_SECONDS = 600.0
_PIECE = 64 * 1024
# The server has sent its status when it stops a query, so it says so where the rest would be.
_CANCELLED = b"The SPARQL operation has been cancelled"


class Limits(msgspec.Struct, frozen=True):
    """How long a query may take, and how large its answer may be."""

    seconds: float
    bytes: int = ANSWER_BYTES


class Answer(msgspec.Struct, frozen=True):
    """A whole answer."""

    media_type: str
    size: int
    content: BinaryIO
    """At its beginning; to be closed by whoever asked."""


class Place(Protocol):
    """Where a SPARQL server is."""

    query_path: str

    def connect(self) -> HTTPConnection:
        """A new connection. Raises `StoreAway`."""
        ...


class RemotePlace:
    """A server by the URL at which it answers queries."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host = parts.netloc.rpartition("@")[2]
        self.query_path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def connect(self) -> HTTPConnection:
        connection = self._kind(self._host, timeout=10)
        try:
            connection.connect()
        except OSError as error:
            raise StoreAway(f"the SPARQL server at {self._host} cannot be reached: {error}") from error
        return connection


class SparqlClient:
    """Asks one server. For any number of threads."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._idle: list[HTTPConnection] = []
        self._lock = threading.Lock()

    def ask(
        self, query: str, accept: str, limits: Limits, graphs: Mapping[str, list[str]] | None = None
    ) -> Answer:
        """The answer to a query over all graphs, or over those that are named as the protocol does.

        Asked again, once, when the server is lost. Raises `StoreError`.
        """
        deadline = time.monotonic() + limits.seconds
        try:
            return self._ask(query, accept, limits, graphs or {}, deadline)
        except StoreAway:
            if time.monotonic() >= deadline:
                raise
            self.close()  # what is idle was connected to the one that is lost
            return self._ask(query, accept, limits, graphs or {}, deadline)

    def close(self) -> None:
        """Lets go of idle connections. May be called twice."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _ask(
        self, query: str, accept: str, limits: Limits, graphs: Mapping[str, list[str]], deadline: float
    ) -> Answer:
        path = self._place.query_path
        if graphs:
            path += ("&" if "?" in path else "?") + urlencode(graphs, doseq=True)
        headers = {"Content-Type": "application/sparql-query; charset=utf-8", "Accept": accept}
        with self._connection() as connection, _failures_told(limits, deadline):
            _until(connection, deadline)
            connection.request("POST", path, query.encode("utf-8", "replace"), headers)
            response = connection.getresponse()
            if response.status != 200:
                raise _refusal(response)
            return _whole(connection, response, limits, deadline)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[HTTPConnection]:
        """An idle connection or a new one; kept for the next only if all went well."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or self._place.connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if connection.sock is not None and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()


class KeptGraphs:
    """The graphs of the server that is ours, for what is delivered to it: a `GraphStore`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._connection: HTTPConnection | None = None

    def replace(self, graph: str, triples: Triples, beat: Beat) -> None:
        with SpooledTemporaryFile(max_size=_MEMORY_BYTES) as spool:
            for piece in triples():
                spool.write(piece)
            size = spool.tell()
            spool.seek(0)
            headers = {"Content-Type": "application/n-triples", "Content-Length": str(size)}
            self._done("PUT", _graph_path(graph), cast("BinaryIO", spool), headers)

    def remove(self, graph: str, beat: Beat) -> None:
        self._done("DELETE", _graph_path(graph), None, {})

    def replace_all(self, contents: Mapping[str, bytes]) -> None:
        """Many graphs at once, each by its N-Triples; one without any is removed. All or nothing is seen."""
        if contents:
            words = [drop(graph) for graph in contents]
            words += [insert(graph, [content]) for graph, content in contents.items() if content]
            self._done("POST", "/update", b" ;\n".join(words), {"Content-Type": "application/sparql-update"})

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _done(self, method: str, path: str, body: BinaryIO | bytes | None, headers: dict[str, str]) -> None:
        try:
            self._connection = self._connection or self._place.connect()
            self._connection.sock.settimeout(_WRITE_SECONDS)
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            told = response.read(_TOLD_BYTES).decode("utf-8", "replace")
        except (OSError, HTTPException, StoreAway) as error:
            self.close()
            raise SinkAway(f"the SPARQL server was lost: {error}") from error
        if response.status >= 300 and not (method == "DELETE" and response.status == 404):
            raise SinkStumbled(f"the SPARQL server refused {path[:200]}: {response.status} {told}")


def _graph_path(graph: str) -> str:
    return f"/store?graph={quote(graph, safe='')}"


def _whole(connection: HTTPConnection, response: HTTPResponse, limits: Limits, deadline: float) -> Answer:
    spool = SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115 - closed below, or by whoever asked
    try:
        tail = b""
        while piece := response.read1(_PIECE):
            spool.write(piece)
            tail = (tail + piece)[-len(_CANCELLED) :]
            if spool.tell() > limits.bytes:
                raise AnswerTooLarge(
                    f"the answer is larger than {limits.bytes:,} bytes ([serve] sparql_bytes); ask for less"
                )
            _until(connection, deadline)
        if tail == _CANCELLED:
            raise _too_long(limits)
        size = spool.tell()
        spool.seek(0)
    except BaseException:
        spool.close()
        raise
    return Answer(response.headers.get("content-type", ""), size, cast("BinaryIO", spool))


def _until(connection: HTTPConnection, deadline: float) -> None:
    """The next read may last no longer than until then; later than that is too late."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    # At the end of an answer that is not kept alive there is no socket any more.
    if connection.sock is not None:
        connection.sock.settimeout(left)


@contextlib.contextmanager
def _failures_told(limits: Limits, deadline: float) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise _too_long(limits) from error
    except (OSError, HTTPException) as error:
        if time.monotonic() >= deadline:
            raise _too_long(limits) from error
        raise StoreAway(f"the SPARQL server was lost: {type(error).__name__} {error}".rstrip()) from error


def _too_long(limits: Limits) -> QueryTooLong:
    return QueryTooLong(
        f"the query took longer than {limits.seconds:g} s ([serve] sparql_seconds) and was stopped"
    )


def _refusal(response: HTTPResponse) -> Exception:
    told = response.read(_TOLD_BYTES).decode("utf-8", "replace").strip()
    response.close()
    if response.status in (400, 406, 414, 415):
        return QueryRefused(told or "the SPARQL server does not take the query", response.status)
    return StoreAway(f"the SPARQL server failed: {response.status} {told}")

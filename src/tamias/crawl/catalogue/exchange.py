"""Asks a SPARQL server: the answer is had whole, within its limits of time and size, or not at all."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Protocol, cast
from urllib.parse import quote, urlencode

import msgspec

from tamias.crawl.catalogue.errors import AnswerTooLarge, QueryRefused, QueryTooLong, StoreAway
from tamias.service_client import NoResponse, Response, ServiceClient
from tamias.sinks.delivery import Beat, SinkAway, SinkStumbled
from tamias.sinks.sparql.placement import Triples
from tamias.sinks.sparql.update_text import drop, insert

ANSWER_BYTES = 256 << 20
_MEMORY_BYTES = 1 << 20
_TOLD_BYTES = 4096
_IDLE = 8
_WRITE_SECONDS = 600
KEPT = "http://127.0.0.1"
"""Of the server that is ours. Its keeper gives the connections: the address does not matter."""
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


class SparqlAddress(Protocol):
    """Where a SPARQL server is."""

    query_url: str

    def client(self) -> ServiceClient:
        """A client of its own, for one thread at a time; it may raise `StoreAway`."""
        ...


class RemotePlace:
    """A server by the URL at which it answers queries."""

    def __init__(self, url: str) -> None:
        self.query_url = url

    def client(self) -> ServiceClient:
        return ServiceClient(idle_seconds=_WRITE_SECONDS)


class SparqlClient:
    """Asks one server. For any number of threads."""

    def __init__(self, place: SparqlAddress) -> None:
        self._place = place
        self._idle: list[ServiceClient] = []
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
        for client in idle:
            client.close()

    def _ask(
        self, query: str, accept: str, limits: Limits, graphs: Mapping[str, list[str]], deadline: float
    ) -> Answer:
        url = self._place.query_url
        if graphs:
            url += ("&" if "?" in url else "?") + urlencode(graphs, doseq=True)
        headers = {"Content-Type": "application/sparql-query; charset=utf-8", "Accept": accept}
        spool = SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115 - closed below, or by whoever asked
        try:
            with self._client() as client, _failures_told(limits):
                response = client.send(
                    "POST",
                    url,
                    headers=headers,
                    body=query.encode("utf-8", "replace"),
                    seconds=deadline - time.monotonic(),
                    most=limits.bytes,
                    into=cast("BinaryIO", spool),
                )
            return _whole(response, spool, limits)
        except BaseException:
            spool.close()
            raise

    @contextlib.contextmanager
    def _client(self) -> Iterator[ServiceClient]:
        """An idle one or a new one; kept for the next only if all went well."""
        with self._lock:
            client = self._idle.pop() if self._idle else None
        client = client or self._place.client()
        try:
            yield client
        except BaseException:
            client.close()
            raise
        with self._lock:
            if len(self._idle) < _IDLE:
                self._idle.append(client)
                return
        client.close()


class KeptGraphs:
    """The graphs of the server that is ours, for what is delivered to it: a `GraphStore`."""

    def __init__(self, place: SparqlAddress) -> None:
        self._client = place.client()

    def replace(self, graph: str, triples: Triples, beat: Beat) -> None:
        with SpooledTemporaryFile(max_size=_MEMORY_BYTES) as spool:
            for piece in triples():
                spool.write(piece)
            self._done(
                "PUT", _graph_path(graph), cast("BinaryIO", spool), "application/n-triples", spool.tell()
            )

    def remove(self, graph: str, beat: Beat) -> None:
        self._done("DELETE", _graph_path(graph), None)

    def replace_all(self, contents: Mapping[str, bytes]) -> None:
        """Many graphs at once, each by its N-Triples; one without any is removed. All or nothing is seen."""
        if contents:
            words = [drop(graph) for graph in contents]
            words += [insert(graph, [content]) for graph, content in contents.items() if content]
            self._done("POST", "/update", b" ;\n".join(words), "application/sparql-update")

    def close(self) -> None:
        self._client.close()

    def _done(
        self,
        method: str,
        path: str,
        body: BinaryIO | bytes | None,
        content_type: str = "",
        size: int | None = None,
    ) -> None:
        headers = {"Content-Type": content_type} if content_type else {}
        try:
            response = self._client.send(
                method,
                KEPT + path,
                headers=headers,
                body=body,
                size=size,
                seconds=_WRITE_SECONDS,
                most=_TOLD_BYTES,
            )
        except (NoResponse, StoreAway) as error:
            raise SinkAway(f"the SPARQL server was lost: {error}") from error
        if response.status >= 300 and not (method == "DELETE" and response.status == 404):
            told = response.content.decode("utf-8", "replace")
            raise SinkStumbled(f"the SPARQL server refused {path[:200]}: {response.status} {told}")


def _graph_path(graph: str) -> str:
    return f"/store?graph={quote(graph, safe='')}"


def _whole(response: Response, spool: "SpooledTemporaryFile[bytes]", limits: Limits) -> Answer:
    if response.status != 200:
        spool.seek(0)
        raise _refusal(response.status, spool.read(_TOLD_BYTES).decode("utf-8", "replace").strip())
    if response.is_cut:
        raise AnswerTooLarge(
            f"the answer is larger than {limits.bytes:,} bytes ([serve] sparql_bytes); ask for less"
        )
    size = spool.tell()
    spool.seek(max(0, size - len(_CANCELLED)))
    if spool.read() == _CANCELLED:
        raise _too_long(limits)
    spool.seek(0)
    return Answer(response.headers.get("content-type", ""), size, cast("BinaryIO", spool))


@contextlib.contextmanager
def _failures_told(limits: Limits) -> Iterator[None]:
    try:
        yield
    except NoResponse as error:
        if error.late:
            raise _too_long(limits) from error
        raise StoreAway(f"the SPARQL server cannot be reached: {error}") from error


def _too_long(limits: Limits) -> QueryTooLong:
    return QueryTooLong(
        f"the query took longer than {limits.seconds:g} s ([serve] sparql_seconds) and was stopped"
    )


def _refusal(status: int, told: str) -> Exception:
    if status in (400, 406, 414, 415):
        return QueryRefused(told or "the SPARQL server does not take the query", status)
    return StoreAway(f"the SPARQL server failed: {status} {told}")

"""Asks a SPARQL server of somebody else: the answer is had whole, within its limits, or not at all."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast
from urllib.parse import urlencode

import msgspec

from tamias.features.catalogue.errors import AnswerTooLarge, QueryRefused, QueryTooLong, StoreAway
from tamias.service_client import NoResponse, Response, ServiceClient

ANSWER_BYTES = 256 << 20
_MEMORY_BYTES = 1 << 20
_MESSAGE_BYTES = 4096
_IDLE = 8
_IDLE_SECONDS = 600
# The server has sent its status when it stops a query, so it says so where the rest would be.
_CANCELLED = b"The SPARQL operation has been cancelled"


class Limits(msgspec.Struct, frozen=True):
    """The limits on the time of a query and the size of its answer."""

    seconds: float
    bytes: int = ANSWER_BYTES


class Answer(msgspec.Struct, frozen=True):
    """A whole answer."""

    media_type: str
    size: int
    content: BinaryIO
    """At its beginning; to be closed by whoever asked."""


class SparqlClient:
    """Asks one server, by the URL at which it answers queries. For any number of threads."""

    def __init__(self, url: str) -> None:
        self._url = url
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
        url = self._url
        if graphs:
            url += ("&" if "?" in url else "?") + urlencode(graphs, doseq=True)
        headers = {"Content-Type": "application/sparql-query; charset=utf-8", "Accept": accept}
        spool = SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115 - closed below, or by whoever asked
        try:
            with self._client() as client:
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
        except BaseException as error:
            spool.close()
            if not isinstance(error, NoResponse):
                raise
            if error.late:
                raise too_long(limits) from error
            raise StoreAway(f"the SPARQL server cannot be reached: {error}") from error

    @contextlib.contextmanager
    def _client(self) -> Iterator[ServiceClient]:
        """An idle one or a new one; kept for the next only if all went well."""
        with self._lock:
            client = self._idle.pop() if self._idle else None
        client = client or ServiceClient(idle_seconds=_IDLE_SECONDS)
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


def _whole(response: Response, spool: "SpooledTemporaryFile[bytes]", limits: Limits) -> Answer:
    if response.status != 200:
        spool.seek(0)
        message = spool.read(_MESSAGE_BYTES).decode("utf-8", "replace").strip()
        if response.status in (400, 406, 414, 415):
            raise QueryRefused(message or "the SPARQL server does not take the query", response.status)
        raise StoreAway(f"the SPARQL server failed: {response.status} {message}")
    if response.is_cut:
        raise too_large(limits)
    size = spool.tell()
    spool.seek(max(0, size - len(_CANCELLED)))
    if spool.read() == _CANCELLED:
        raise too_long(limits)
    spool.seek(0)
    return Answer(response.headers.get("content-type", ""), size, cast("BinaryIO", spool))


def too_large(limits: Limits) -> AnswerTooLarge:
    """The answer was stopped at the size limit."""
    return AnswerTooLarge(
        f"the answer is larger than {limits.bytes:,} bytes ([serve] sparql_bytes); ask for less"
    )


def too_long(limits: Limits) -> QueryTooLong:
    """The query was stopped at the time limit."""
    return QueryTooLong(
        f"the query took longer than {limits.seconds:g} s ([serve] sparql_seconds) and was stopped"
    )

"""A Tamias process and the SPARQL store of its data: sees to it that a keeper is there, asks and writes."""

import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

import msgspec

from tamias.database.child_server import ServerUse
from tamias.database.disk import is_free, refusals
from tamias.features.catalogue.errors import AnswerTooLarge, QueryRefused, StoreAway, StoreError
from tamias.features.catalogue.exchange import Answer, Limits, too_large, too_long
from tamias.features.catalogue.store.keeper import Orders, RunningCatalogue
from tamias.features.catalogue.store.messages import (
    ADOPT,
    QUERY,
    QUERY_MEMORY,
    WRITE,
    QueryOrder,
    QueryReply,
    WriteOrder,
    WriteReply,
    receive,
    send,
)
from tamias.features.graph_stores.placement import Triples
from tamias.sinks.delivery import Beat, SinkAway, SinkStumbled

QUERY_SECONDS = 60.0
_ADOPT_SECONDS = 150.0
_CONNECT_SECONDS = 30.0
_GRACE_SECONDS = 5.0
_WRITE_SECONDS = 600.0
_MEMORY_BYTES = 1 << 20
_LARGE_BYTES = 8 << 20


class RunningQuery:
    """A query under way, which another thread may give up."""

    def __init__(self) -> None:
        self._line: socket.socket | None = None
        self._given_up = False
        self._lock = threading.Lock()

    def give_up(self) -> None:
        """The answer is not wanted any more: the query ends at once. May be called twice, or too late."""
        with self._lock:
            self._given_up = True
            if self._line is not None:
                self._line.shutdown(socket.SHUT_RDWR)
                self._line = None

    def begin(self, line: socket.socket) -> None:
        """Remember the line over which it is asked."""
        with self._lock:
            self.check()
            self._line = line

    def check(self) -> None:
        """Raises `StoreAway` if it was given up."""
        if self._given_up:
            raise StoreAway("the query was given up")

    def end(self) -> None:
        """Forget the line: there is nothing to give up."""
        with self._lock:
            self._line = None


class LocalStore(ServerUse):
    """A process's use of the store of a data directory, until `close`. For any thread."""

    keeper = "tamias.features.catalogue.store.keeper"
    failure = StoreError
    unavailable = StoreError
    unanswered = StoreAway

    def __init__(self, data: Path, *, seconds: float = QUERY_SECONDS, guarded: bool = True) -> None:
        """`seconds` holds for all queries until the keeper ends; `guarded`: they have no network."""
        self._orders = Orders(str(data.absolute()), seconds, guarded)
        folder = data.absolute() / "catalogue"
        with refusals(folder):
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
            super().__init__(folder)

    @property
    def seconds(self) -> float:
        """Return the time limit of queries."""
        return self.running().seconds

    def running(self) -> RunningCatalogue:
        """The keeper as it is now."""
        self._see_to_keeper()
        try:
            return msgspec.json.decode((self.folder / "running.json").read_bytes(), type=RunningCatalogue)
        except FileNotFoundError as error:
            raise StoreAway(f"the SPARQL server of {self.folder} has just ended; try again") from error

    def ask(
        self,
        order: QueryOrder,
        limits: Limits,
        asking: RunningQuery | None = None,
        fetches: int | None = None,
    ) -> Answer:
        """The whole answer, or none. Asked again, once, when the process is lost. Raises `StoreError`.

        `fetches` is an open file of N-Triples: then the query is about the graph of fetches, and this is it.
        """
        deadline = time.monotonic() + limits.seconds
        try:
            return self._ask(order, limits, asking or RunningQuery(), fetches)
        except StoreAway:
            if time.monotonic() >= deadline:
                raise
            return self._ask(order, limits, asking or RunningQuery(), fetches)

    def line_to_writer(self) -> socket.socket:
        """A line over which graphs can be written. Raises `StoreAway`."""
        line = self._connect(WRITE)
        line.settimeout(_WRITE_SECONDS)
        return line

    def adopt(self) -> None:
        """Has the keeper go on with `store.new` in place of its store."""
        self._see_to_keeper()
        if not (self.folder / "store.new").exists():
            return  # it was there before the keeper was
        with self._asking(ADOPT, _ADOPT_SECONDS) as asking:
            if asking.recv(1) != ADOPT:
                raise StoreError(f"the SPARQL server does not take the new store at {self.folder}")

    def discard(self) -> None:
        """Removes a store that cannot be used. Does nothing where a keeper is there."""
        with self.starting():
            if is_free(self.folder / "keeper.lock"):
                shutil.rmtree(self.folder / "store", ignore_errors=True)

    def _ask(self, order: QueryOrder, limits: Limits, asking: RunningQuery, fetches: int | None) -> Answer:
        files = () if fetches is None else (fetches,)
        if fetches is not None:
            os.lseek(fetches, 0, os.SEEK_SET)  # the process that was asked before has read it
        spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed below, or by whoever asked
        try:
            with self._connect(QUERY, spool.fileno(), *files) as line:
                asking.begin(line)
                try:
                    reply = _reply(line, order, limits)
                finally:
                    asking.end()
            return _answer(reply, cast("BinaryIO", spool), limits)
        except BaseException:
            spool.close()
            raise

    def _connect(self, word: bytes, *descriptors: int) -> socket.socket:
        """A line to a process of the keeper. Raises `StoreAway`."""
        deadline = time.monotonic() + _CONNECT_SECONDS
        while True:
            try:
                self._see_to_keeper()
                return self._asking(word, 10.0, *descriptors)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise StoreAway(f"the SPARQL server of {self.folder} does not answer: {error}") from error
                time.sleep(0.05)

    def _asking(self, word: bytes, seconds: float, *descriptors: int) -> socket.socket:
        asking = socket.socket(socket.AF_UNIX)
        try:
            asking.settimeout(seconds)
            asking.connect(f"/proc/self/fd/{self._directory}/socket/ask")
            socket.send_fds(asking, [word], descriptors) if descriptors else asking.sendall(word)
        except BaseException:
            asking.close()
            raise
        return asking

    def _see_to_keeper(self) -> None:
        if not self.is_up():
            self.start(msgspec.json.encode(self._orders).decode())


def _reply(line: socket.socket, order: QueryOrder, limits: Limits) -> QueryReply:
    try:
        # The keeper ends a query in time; who waits for a free process may have to wait longer.
        line.settimeout(limits.seconds + _GRACE_SECONDS)
        send(line, order)
        return receive(line, QueryReply)[0]
    except TimeoutError as error:
        raise too_long(limits) from error
    except (OSError, EOFError) as error:
        raise StoreAway(f"the process that answers the query was lost: {error}") from error


def _answer(reply: QueryReply, spool: BinaryIO, limits: Limits) -> Answer:
    match reply.kind:
        case "answer":
            spool.seek(0)
            return Answer(reply.media_type, reply.size, spool)
        case "refused":
            raise QueryRefused(reply.message, reply.status)
        case "late":
            raise too_long(limits)
        case "large":
            raise too_large(limits)
        case "memory":
            raise AnswerTooLarge(
                f"stopped: the query needed more than {QUERY_MEMORY >> 20:,} MB of memory; ask for less"
            )
        case "damaged":
            raise StoreError(reply.message)
    raise StoreAway(f"the query failed: {reply.message}")


class LocalGraphs:
    """The graphs of the store that is ours, for what is delivered to it: a `GraphStore`."""

    def __init__(self, local: LocalStore) -> None:
        self._local = local
        self._line: socket.socket | None = None

    def replace(self, graph: str, triples: Triples, beat: Beat) -> None:
        with SpooledTemporaryFile(max_size=_LARGE_BYTES) as spool:
            for piece in triples():
                spool.write(piece)
            if spool.tell() <= _LARGE_BYTES:
                spool.seek(0)
                self.replace_all({graph: spool.read()})
            else:
                spool.flush()
                os.lseek(spool.fileno(), 0, os.SEEK_SET)
                self._send(WriteOrder({}, file=graph), spool.fileno())

    def remove(self, graph: str, beat: Beat) -> None:
        self.replace_all({graph: b""})

    def replace_all(self, contents: Mapping[str, bytes]) -> None:
        """Replace many graphs at once, each by its N-Triples; one without any is removed."""
        if contents:
            self._send(WriteOrder(dict(contents)))

    def hold(self, contents: Mapping[str, bytes]) -> None:
        """Replace many graphs, which may be lost with the writing process until `publish` returns.

        `publish` then fails: the line to that process is lost.
        """
        if contents:
            self._send(WriteOrder(dict(contents), is_held=True))

    def publish(self) -> None:
        """Make all that was written visible to queries."""
        if self._line is not None:
            self._send(WriteOrder({}, publish=True))

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _send(self, order: WriteOrder, *descriptors: int) -> None:
        try:
            if self._line is None:
                self._line = self._local.line_to_writer()
            send(self._line, order, descriptors)
            reply = receive(self._line, WriteReply)[0]
        except (OSError, EOFError, StoreAway) as error:
            self.close()
            raise SinkAway(f"the SPARQL store was lost: {error}") from error
        if reply.is_lost:
            raise SinkAway(reply.error or "")
        if reply.error is not None:
            raise SinkStumbled(f"the SPARQL store refused {', '.join(order.graphs)[:200]}: {reply.error}")

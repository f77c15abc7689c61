"""A server that is away: noticed also where it is silent, known to all sessions of a database, waited for.

The sessions of a database share one `Outage`. One of them at a time tries whether the server is back; the
others wait, and whoever has a limit learns at once when that is over. A server that is dead refuses
connections; one that is frozen, or behind a network that is cut, accepts bytes and never says anything. So a
connection that hears nothing for a while looks whether the server answers others.
"""

import logging
import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

import psycopg
from psycopg import pq
from psycopg.abc import PQGen
from psycopg.conninfo import make_conninfo

from tamias.model.errors import DatabaseUnavailable, TamiasError

T = TypeVar("T")

SILENCE_SECONDS = 1.0
"""A connection that hears nothing for so long looks whether the server is there."""
PROBE_SECONDS = 5.0
"""A server that says no byte within it does not answer; one that is only busy does."""
TRY_SECONDS = 0.5
"""Sessions that wait no longer let one of them try, so long after the last try."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_log = logging.getLogger(__name__)


class Outage:
    """The knowledge that a server is away, since when and why. For all threads."""

    def __init__(self) -> None:
        self.is_on = False
        """Whether the server is away, as far as sessions know."""
        self._since = 0.0
        self._why = ""
        self._next_try = 0.0
        self._is_logged = False
        self._latest = math.inf
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    @property
    def words(self) -> str | None:
        """Return why the server is away, and for how long, if it is."""
        return f"{self._why} (away for {time.monotonic() - self._since:.0f} s)" if self.is_on else None

    def give_up(self, seconds: float) -> None:
        """Let nobody wait longer than this from now on, as a process does that is to end."""
        self._latest = time.monotonic() + seconds
        self._stopping.set()

    def refuse(self, patience: float) -> None:
        """Raise `DatabaseUnavailable` if the server has been away for longer, unless it is time for a try."""
        with self._lock:
            now = time.monotonic()
            if now <= min(self._since + patience, self._latest):
                return
            if now < self._next_try:
                raise DatabaseUnavailable(self.words)
            self._next_try = now + 4 * PROBE_SECONDS  # or when this one has failed

    def wait(self, error: TamiasError, begun: float, patience: float, tries: int) -> None:
        """Wait before the next try of who began then; raise the error when the patience is over."""
        with self._lock:
            now = time.monotonic()
            if not self.is_on:
                self.is_on, self._since, self._is_logged = True, now, False
            self._why, self._next_try = str(error), now + TRY_SECONDS
            if now >= min(begun + patience, self._since + patience, self._latest):
                raise error
            if not self._is_logged and now - self._since > _LONGEST_PAUSE:
                self._is_logged = True
                _log.warning("%s; waiting until it is back", error)
        if self._stopping.wait(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(tries, 10))):
            time.sleep(_FIRST_PAUSE)

    def end(self) -> None:
        """Note that the server has answered."""
        with self._lock:
            if self._is_logged and self.is_on:
                _log.warning("the database is back after %.0f s", time.monotonic() - self._since)
            self.is_on = False


class WatchedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that notices when the other side has stopped without a word."""

    is_there: Callable[[], bool] | None = None

    def wait(self, gen: PQGen[T], *words: Any, **options: Any) -> T:
        """Wait as long as the server answers others."""
        return super().wait(self._watch(gen, self.is_there or self._answers), *words, **options)

    def _watch(self, waiting: PQGen[T], is_there: Callable[[], bool]) -> PQGen[T]:
        steps = cast("Generator[Any, Any, T]", waiting)
        since = time.monotonic()
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if ready:
                    since = time.monotonic()
                elif time.monotonic() - since > SILENCE_SECONDS:
                    if not is_there():
                        self.pgconn.finish()  # or a rollback would be sent, and waited for
                        raise psycopg.OperationalError("the server does not answer")
                    since = time.monotonic()
                wanted = steps.send(ready)
        except StopIteration as end:
            return cast("T", end.value)

    def _answers(self) -> bool:
        info = self.info
        return answers({"host": info.host, "hostaddr": info.hostaddr, "port": info.port})


def answers(place: Mapping[str, Any], seconds: float = PROBE_SECONDS) -> bool:
    """Return whether a server there says a byte within so many seconds."""
    deadline = time.monotonic() + seconds
    probe = pq.PGconn.connect_start(make_conninfo(**place).encode())
    try:
        while (state := probe.connect_poll()) in {pq.PollingStatus.READING, pq.PollingStatus.WRITING}:
            reading = state == pq.PollingStatus.READING
            there = [probe.socket]
            left = max(0.0, deadline - time.monotonic())
            said, sendable, _ = select.select(there if reading else [], [] if reading else there, [], left)
            if reading or not sendable:
                return bool(said)
        return False
    finally:
        probe.finish()


def leave(connection: psycopg.Connection[Any]) -> None:
    """Have whoever waits for a connection wait no longer: it is lost for them."""
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)

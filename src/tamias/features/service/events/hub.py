"""Follows the log for all clients together: they wait here, and read what is new from memory."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from tamias.features.service.events.log import Event, latest_event, read_events
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.model.errors import TamiasError

if TYPE_CHECKING:
    from tamias.crawl.store.progress import CrawlSnapshot

MOST_CLIENTS: Final = 256
MOST_IN_MEMORY: Final = 1000
"""Events in memory; who is further behind reads them from the database."""
AT_ONCE: Final = 500
_LOOK_SECONDS: Final = 1.0


class CrawlRates(msgspec.Struct, frozen=True):
    """The speed of the crawl beside the service, per second."""

    visited: float
    quads: float
    bytes: float
    in_flight: int
    open: int


class EventHub:
    """Looks into the log while anybody waits for it."""

    def __init__(self, pool: SessionPool, crawl: "Callable[[], CrawlSnapshot | None]") -> None:
        self._pool = pool
        self._crawl = crawl
        self._recent: deque[Event] = deque(maxlen=MOST_IN_MEMORY)
        self._news = asyncio.Event()
        self._clients = 0
        self._following: asyncio.Task[None] | None = None
        self._measured: tuple[float, CrawlSnapshot] | None = None
        self.latest = 0
        """The last event that was seen."""
        self.rates: CrawlRates | None = None

    def check_room(self) -> None:
        """Raises `HttpProblem` when too many listen."""
        if self._clients >= MOST_CLIENTS:
            raise HttpProblem(503, f"{MOST_CLIENTS} clients listen already", {"Retry-After": "30"})

    @contextmanager
    def client(self) -> Iterator[None]:
        """Count a client while it listens."""
        self._clients += 1
        try:
            yield
        finally:
            self._clients -= 1
            if not self._clients and self._following is not None:
                self._following.cancel()
                self._following = None

    async def begin(self) -> None:
        """Start to follow the log."""
        if self._following is None:
            self._recent.clear()
            self.latest = await self._pool.run(lambda db: latest_event(db.session))
            if self._following is None:
                self._following = asyncio.create_task(self._follow())

    async def after(self, number: int) -> list[Event]:
        """Return some of the events after one, oldest first."""
        if number >= self.latest:
            return []
        if self._recent and self._recent[0].id <= number + 1:
            return [event for event in self._recent if event.id > number][:AT_ONCE]
        until = self.latest
        return await self._pool.run(lambda db: _page(db, number, until))

    async def wait(self, seconds: float) -> None:
        """Wait until there is news, or until the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return

    async def _follow(self) -> None:
        while True:
            try:
                found = await self._pool.run(lambda db: _news(db, self.latest))
            except (HttpProblem, TamiasError):
                found = []  # a database that is away comes back
            measured = self._measure()
            if found:
                self._recent.extend(found)
                self.latest = found[-1].id
            if found or measured:
                self._news.set()
                self._news = asyncio.Event()
            await asyncio.sleep(_LOOK_SECONDS)

    def _measure(self) -> bool:
        """Notes how fast the crawl goes; whether that is known."""
        now, at = self._crawl(), time.monotonic()
        before, self._measured = self._measured, None if now is None else (at, now)
        if now is None or before is None:
            return False
        seconds, was = at - before[0], before[1]
        self.rates = CrawlRates(
            visited=_speed(now.visited - was.visited, seconds),
            quads=_speed(now.quads - was.quads, seconds),
            bytes=_speed(now.bytes - was.bytes, seconds),
            in_flight=now.in_flight,
            open=now.open,
        )
        return True


def _speed(done: int, seconds: float) -> float:
    return round(max(0.0, done / seconds), 2)


def _news(db: ServiceSession, after: int) -> list[Event]:
    return _page(db, after, latest_event(db.session))


def _page(db: ServiceSession, after: int, until: int) -> list[Event]:
    return read_events(db.session, after, until, AT_ONCE)

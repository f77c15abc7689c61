"""Events of the archive, numbered once, and followed for all clients together."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from tamias.archive.moments import of_row
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.model.errors import TamiasError
from tamias.model.event import Event, Kind

if TYPE_CHECKING:
    from tamias.crawl.store.progress import CrawlSnapshot


KINDS: Final[tuple[Kind, ...]] = ("version", "state")
_SQL = statements("tamias.features.service.events", "events.sql")
_LOCK: Final = 0x7A31A6
_AT_ONCE: Final = 10_000


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The events that a client wants."""

    kinds: tuple[Kind, ...] = KINDS
    resource: str | None = None
    host: str | None = None
    portal: str | None = None


def latest_event(session: Session) -> int:
    """The number of the last event, after all news have got theirs."""
    while session.transact(_number_news) == _AT_ONCE:
        pass
    return session.transact(latest)


def events_in(cursor: Cursor, after: int, until: int, limit: int, wanted: EventFilter) -> list[Event]:
    """Events after one number up to another."""
    values = {"after": after, "until": until, "limit": limit, **msgspec.structs.asdict(wanted)}
    values["kinds"] = list(wanted.kinds)
    return [of_row(Event, row) for row in cursor.execute(_SQL["read_events"].text, values).fetchall()]


def events_after(
    session: Session, after: int | None, resource: str | None, host: str | None, portal: str | None
) -> tuple[int, list[Event]]:
    """Return some of the events after one, and the number to go on from; none after None: what comes next."""
    until = latest_event(session)
    if after is None:
        return until, []
    wanted = EventFilter(resource=resource, host=host, portal=portal)
    found = session.transact(lambda cursor: events_in(cursor, after, until, AT_ONCE, wanted))
    return found[-1].id if len(found) == AT_ONCE else until, found


def latest(cursor: Cursor) -> int:
    """The number of the last event that has one."""
    [(number,)] = cursor.execute(_SQL["latest_event"].text).fetchall()
    return int(number)


def _number_news(cursor: Cursor) -> int:
    if cursor.execute(_SQL["is_news"].text).fetchall() == [(False,)]:
        return 0
    cursor.execute(_SQL["lock_log"].text, {"lock": _LOCK})
    return cursor.execute(_SQL["number_news"].text, {"limit": _AT_ONCE}).rowcount


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
                found = await self._pool.run(lambda db: _page(db, self.latest, latest_event(db.session)))
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
        done = (now.visited - was.visited, now.quads - was.quads, now.bytes - was.bytes)
        visited, quads, octets = (round(max(0.0, each / seconds), 2) for each in done)
        self.rates = CrawlRates(visited, quads, octets, now.in_flight, now.open)
        return True


def _page(db: ServiceSession, after: int, until: int) -> list[Event]:
    return db.session.transact(lambda cursor: events_in(cursor, after, until, AT_ONCE, EventFilter()))

"""The service that every route works with."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tamias.features.service.events.log import EventHub
from tamias.features.service.http.callers import Secret
from tamias.features.service.http.middleware import RequestCounts
from tamias.features.service.queries.history import Histories
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.features.service.queries.usage import Usages
from tamias.settings import Settings

if TYPE_CHECKING:
    from tamias.crawl.store.progress import CrawlSnapshot
    from tamias.features.service.sparql.endpoint import SparqlEndpoint

T = TypeVar("T")
PART = 5
"""A result is remembered so many times as long as it took."""
MOST_RESULTS = 200


class RecentResults:
    """Results that are asked for so often that they may be some seconds old, the latest by name.

    Work that takes long is remembered longer, so that it never takes more than a small part of the database.
    """

    def __init__(self) -> None:
        self._results: dict[str, tuple[float, asyncio.Future[Any]]] = {}

    async def get(self, name: str, seconds: float, work: Callable[[], Awaitable[T]]) -> T:
        """Return what the work gave at most so many seconds ago, or gives now; all who wait get the same."""
        until, found = self._results.pop(name, (0.0, None))
        if found is None or (found.done() and (until < time.monotonic() or _failed(found))):
            until, found = 0.0, asyncio.ensure_future(self._remember(name, seconds, work))
            if len(self._results) >= MOST_RESULTS:
                self.forget(next(iter(self._results)))
        self._results[name] = until, found
        value: T = await asyncio.shield(found)
        return value

    def forget(self, name: str) -> None:
        """Forget a result, because somebody has changed what it is about."""
        self._results.pop(name, None)

    async def _remember(self, name: str, seconds: float, work: Callable[[], Awaitable[T]]) -> T:
        began = time.monotonic()
        value = await work()
        ended = time.monotonic()
        if name in self._results:
            self._results[name] = ended + max(seconds, PART * (ended - began)), self._results[name][1]
        return value


class Service:
    """A running service."""

    def __init__(
        self,
        data: Path,
        settings: Settings,
        pool: SessionPool,
        secret: Secret,
        crawl: "Callable[[], CrawlSnapshot | None]" = lambda: None,
        sparql: "SparqlEndpoint | None" = None,
        db: str | None = None,
    ) -> None:
        self.data = data
        self.db = db
        self.settings = settings
        self.pool = pool
        self.secret = secret
        self.crawl = crawl
        """How the crawls beside it stand, together; None where there is none."""
        self.sparql = sparql
        self.histories = Histories(pool, frozenset(settings.filters.session_names))
        self.usages = Usages(pool)
        self.traffic = RequestCounts()
        self.recent = RecentResults()
        self.parts: dict[str, Any] = {}
        """What features keep for as long as the service runs, by their names for it."""

    @cached_property
    def events(self) -> EventHub:
        """Return the hub of events for clients that listen."""
        return EventHub(self.pool, self.crawl)

    async def lately(self, name: str, seconds: float, work: Callable[[ServiceSession], T]) -> T:
        """Return the recent result of work with the database."""
        return await self.recent.get(name, seconds, lambda: self.pool.run(work))


def verb_environment(data: Path, db: str | None) -> dict[str, str]:
    """Return the environment of a verb that works with the data of a service."""
    return {**os.environ, "TAMIAS_DATA": str(data), "TAMIAS_DB": db or ""}


def _failed(found: asyncio.Future[Any]) -> bool:
    return found.cancelled() or found.exception() is not None

"""Where blocking work is done: a few threads, each with a session, a reader and a watcher of its own."""

import asyncio
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from tamias.archive.blobs import BlobReader, LocalPacks
from tamias.archive.library import NotArchived
from tamias.archive.resources import read_resources
from tamias.crawl.admit import Admission, same_url
from tamias.crawl.watching import Watcher
from tamias.database.connect import Database
from tamias.database.sql import statements
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.resource import Resource, resource_id
from tamias.model.url import fetch_url
from tamias.serve.problems import Problem
from tamias.settings import Settings

T = TypeVar("T")
THREADS = 6
MOST_WAITING = 1000
"""Requests that wait for a thread; more are sent away."""
CACHE_BYTES = 32 * 1024 * 1024
_SQL = statements("tamias.serve", "serve.sql")
_ID = re.compile(r"[0-9a-f]{24}")


class Desk:
    """What one thread works with. Opened in its thread and used there only."""

    def __init__(self, database: Database, data: Path, settings: Settings) -> None:
        self.session = database.session()
        self.reader = BlobReader(LocalPacks(data / "blobs"), self.session, CACHE_BYTES)
        self.settings = settings

    @cached_property
    def admission(self) -> Admission:
        """Which addresses may be watched."""
        return Admission(self.settings, ())

    @cached_property
    def frontier(self) -> PostgresFrontier:
        """Where addresses become due."""
        names = frozenset(self.settings.filters.session_names)
        delay_ms = int(self.settings.fetch.delay * 1000)
        return PostgresFrontier(self.session, same_url=same_url(names), delay_ms=delay_ms)

    @cached_property
    def watcher(self) -> Watcher:
        """Puts resources under watch."""
        return Watcher(self.session, self.frontier, self.admission)

    def resource(self, named: str) -> Resource:
        """A resource by its URL, in any spelling, or by its id. Raises `NotArchived`, `UrlError`."""
        by_id = _ID.fullmatch(named) is not None
        url = "" if by_id else fetch_url(named)
        asked = {"resource": named if by_id else resource_id(self.admission.key(url)), "url": url}
        row = self.session.transact(
            lambda cursor: cursor.execute(_SQL["find_resource"].text, asked).fetchone()
        )
        found = read_resources(self.session, [row[0]]) if row else []
        if not found:
            raise NotArchived(f"{named[:200]} is not in the archive")
        return found[0]


class Desks:
    """The threads."""

    def __init__(self, database: Database, data: Path, settings: Settings, threads: int = THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, "desk")
        self._make: Callable[[], Desk] = partial(Desk, database, data, settings)
        self._local = threading.local()
        self._open: list[Desk] = []
        self._waiting = 0

    async def ask(self, work: Callable[[Desk], T]) -> T:
        """What the work gives, done at one of the desks. Raises `Problem` when too many wait."""
        if self._waiting >= MOST_WAITING:
            raise Problem(503, f"{MOST_WAITING} requests are waiting already", {"Retry-After": "1"})
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._at_desk, work)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """When what is under way is done."""
        self._threads.shutdown()
        for desk in self._open:
            desk.session.close()

    def _at_desk(self, work: Callable[[Desk], T]) -> T:
        desk: Desk | None = getattr(self._local, "desk", None)
        if desk is None:
            desk = self._local.desk = self._make()
            self._open.append(desk)
        return work(desk)

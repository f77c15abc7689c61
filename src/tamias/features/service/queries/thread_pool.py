"""A pool of threads for blocking work, each with its own session, reader and watcher."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from tamias.archive.blobs import BlobReader
from tamias.archive.blobs.reader import BodyCache
from tamias.archive.blobs.store import packs_of
from tamias.archive.file_store import segments_of
from tamias.archive.versions.resources import LICENCE
from tamias.crawl.plan.admit import Admission, same_url
from tamias.crawl.revisit.watches import Watcher
from tamias.database.connect import Connection, Database
from tamias.database.sql import statements
from tamias.features.service.http.problems import HttpProblem
from tamias.frontier.postgres import PostgresFrontier
from tamias.permit.delay import host_delay_ms
from tamias.settings import Settings

T = TypeVar("T")
THREADS = 6
MOST_WAITING = 1000
"""Requests that wait for a thread; more are sent away."""
STORE_SECONDS = 5.0
"""How long a request waits for a store of bodies that is away."""
CACHE_BYTES = 32 * 1024 * 1024
_STATE = (
    "CASE WHEN resource.state = 'active' AND resource.trouble IS NOT NULL THEN 'failing'"
    " ELSE resource.state END"
)
_CHANGED = (
    "CASE WHEN resource.captured_at IS NULL THEN 'never'"
    " WHEN resource.captured_at > %(now)b::int8 - 86400000 THEN 'last day'"
    " WHEN resource.captured_at > %(now)b::int8 - 7 * 86400000::int8 THEN 'last week'"
    " WHEN resource.captured_at > %(now)b::int8 - 31 * 86400000::int8 THEN 'last month'"
    " WHEN resource.captured_at > %(now)b::int8 - 366 * 86400000::int8 THEN 'last year' ELSE 'earlier' END"
)
_SIZE = (
    "CASE WHEN version.byte_size < 10240 THEN 'under 10 KiB'"
    " WHEN version.byte_size < 1048576 THEN '10 KiB to 1 MiB'"
    " WHEN version.byte_size < 104857600 THEN '1 to 100 MiB' ELSE 'over 100 MiB' END"
)
SQL_WORDS = {"licence": LICENCE, "state": _STATE, "changed": _CHANGED, "size": _SIZE}
SQL = statements("tamias.features.service.queries", "queries.sql", **SQL_WORDS)


class ServiceSession:
    """The session and readers of one thread, opened and used only there."""

    def __init__(self, database: Database, data: Path, settings: Settings) -> None:
        self.session = database.session()
        self.reader = BlobReader(packs_of(self.session, data, STORE_SECONDS), self.session, CACHE_BYTES)
        self.open_segment = segments_of(self.session, data, STORE_SECONDS)
        self.settings = settings
        self.data = data
        self._connection: Connection | None = None

    @cached_property
    def admission(self) -> Admission:
        """Return the rules for URLs that may be watched."""
        return Admission(self.settings, ())

    @cached_property
    def frontier(self) -> PostgresFrontier:
        """Return the frontier."""
        names = frozenset(self.settings.filters.session_names)
        delay_ms = host_delay_ms(self.settings.fetch.delay, None, obey_robots=False)
        return PostgresFrontier(self.session, same_url=same_url(names), delay_ms=delay_ms)

    @cached_property
    def watcher(self) -> Watcher:
        """Puts resources under watch."""
        return Watcher(self.session, self.frontier, self.admission)

    def rows(self, name: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a statement of `queries.sql`; alone, for a transaction would take two trips more."""
        try:
            if self._connection is None:
                self._connection = self.session.transact(lambda cursor: cursor.connection)
            with self._connection.cursor(binary=True) as cursor:
                return cursor.execute(SQL[name].text, values).fetchall()
        except psycopg.OperationalError:
            # The session mends itself; what is left of the old connection is not used again.
            self._connection = None
            return self.session.fetch_all(SQL[name], values)


class SessionPool:
    """The threads."""

    def __init__(self, database: Database, data: Path, settings: Settings, threads: int = THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, "session")
        self._make: Callable[[], ServiceSession] = partial(ServiceSession, database, data, settings)
        self._local = threading.local()
        self._open: list[ServiceSession] = []
        self._waiting = 0
        self.bodies = BodyCache(CACHE_BYTES)
        """Small bodies that were asked for lately, by digest."""

    async def run(self, work: Callable[[ServiceSession], T]) -> T:
        """Run work in a thread and return its result. Raises `HttpProblem` when too many wait."""
        if self._waiting >= MOST_WAITING:
            raise HttpProblem(503, f"{MOST_WAITING} requests are waiting already", {"Retry-After": "1"})
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._run_in_thread, work)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Close the sessions when all work is done."""
        self._threads.shutdown()
        for db in self._open:
            db.session.close()

    def _run_in_thread(self, work: Callable[[ServiceSession], T]) -> T:
        db: ServiceSession | None = getattr(self._local, "session", None)
        if db is None:
            db = self._local.session = self._make()
            self._open.append(db)
        return work(db)

"""Threads between the event loop and the database, with a session each; some are for puts alone."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tamias.database.connect import Database, Session
from tamias.features.urlfrontier.held import Holds
from tamias.frontier.lease_filter import LeaseFilter
from tamias.frontier.put import KnownQueues, UrlPut
from tamias.frontier.service import Queues

PUTS_AT_ONCE = 2
"""Transactions: more than the database has processors for only wait for each other."""

T = TypeVar("T")
Same = Callable[[str, str], bool]


class FrontierSession:
    """The session of one thread, with the parts of the frontier that use it."""

    def __init__(
        self, session: Session, same_url: Same, lease_filter: LeaseFilter, queues: KnownQueues
    ) -> None:
        self.session = session
        self.holds = Holds(session, lease_filter)
        self.queues = Queues(session, same_url=same_url)
        self.put = UrlPut(session, same_url, section=lease_filter.section, queues=queues)


class FrontierThreads:
    """Runs work on the database in threads. Puts have some of their own, so that they wait for nobody."""

    def __init__(
        self, database: Database, same_url: Same, threads: int, lease_filter: LeaseFilter | None = None
    ) -> None:
        self._database = database
        self._lease_filter = lease_filter or LeaseFilter()
        self._same_url = same_url
        self._own = threading.local()
        self._sessions: list[FrontierSession] = []
        self._queues = KnownQueues()
        self._many = ThreadPoolExecutor(threads, "frontier")
        self._puts = ThreadPoolExecutor(PUTS_AT_ONCE, "puts")
        self._numbers = ThreadPoolExecutor(1, "numbers")

    async def run(self, work: Callable[[FrontierSession], T]) -> T:
        """The result of work that any thread may do."""
        return await asyncio.get_running_loop().run_in_executor(self._many, self._run, work)

    async def put(self, work: Callable[[FrontierSession], T]) -> T:
        """The same in a thread for puts."""
        return await asyncio.get_running_loop().run_in_executor(self._puts, self._run, work)

    async def number(self, work: Callable[[FrontierSession], T]) -> T:
        """Run what puts need before their turn, one after another in one thread."""
        return await asyncio.get_running_loop().run_in_executor(self._numbers, self._run, work)

    def close(self) -> None:
        """Waits for what is being done."""
        for threads in (self._many, self._puts, self._numbers):
            threads.shutdown(cancel_futures=True)
        for db in self._sessions:
            db.session.close()

    def _run(self, work: Callable[[FrontierSession], T]) -> T:
        db: FrontierSession | None = getattr(self._own, "session", None)
        if db is None:
            db = self._own.session = FrontierSession(
                self._database.session(), self._same_url, self._lease_filter, self._queues
            )
            self._sessions.append(db)
        return work(db)

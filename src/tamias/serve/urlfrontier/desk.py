"""Between the event loop and the database: threads with a session each, one of them for puts alone."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tamias.database.connect import Database, Session
from tamias.frontier.held import Holds
from tamias.frontier.queues import Queues
from tamias.frontier.terms import Terms
from tamias.frontier.told import Intake

T = TypeVar("T")
Same = Callable[[str, str], bool]


class Clerk:
    """What one thread works with."""

    def __init__(self, session: Session, same_url: Same, terms: Terms) -> None:
        self.session = session
        self.holds = Holds(session, terms)
        self.queues = Queues(session, same_url=same_url)
        self.intake = Intake(session, same_url=same_url, section=terms.section)


class Desk:
    """Runs work on the database in threads. Puts have one of their own, so that they keep their order."""

    def __init__(self, database: Database, same_url: Same, threads: int, terms: Terms | None = None) -> None:
        self._database = database
        self._terms = terms or Terms()
        self._same_url = same_url
        self._own = threading.local()
        self._clerks: list[Clerk] = []
        self._many = ThreadPoolExecutor(threads, "frontier")
        self._lane = ThreadPoolExecutor(1, "puts")

    async def ask(self, work: Callable[[Clerk], T]) -> T:
        """The result of work that any thread may do."""
        return await asyncio.get_running_loop().run_in_executor(self._many, self._run, work)

    async def put(self, work: Callable[[Clerk], T]) -> T:
        """The same in the thread for puts, one after another."""
        return await asyncio.get_running_loop().run_in_executor(self._lane, self._run, work)

    def close(self) -> None:
        """Waits for what is being done."""
        for threads in (self._many, self._lane):
            threads.shutdown(cancel_futures=True)
        for clerk in self._clerks:
            clerk.session.close()

    def _run(self, work: Callable[[Clerk], T]) -> T:
        return work(self._clerk())

    def _clerk(self) -> Clerk:
        clerk: Clerk | None = getattr(self._own, "clerk", None)
        if clerk is None:
            clerk = self._own.clerk = Clerk(self._database.session(), self._same_url, self._terms)
            self._clerks.append(clerk)
        return clerk

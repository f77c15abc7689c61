"""Works through leases: each URL is visited, and what that brings is handed to the store."""

import errno
import logging

from tamias.crawl.store.held_lease import HeldLease, NotNow
from tamias.crawl.store.visit import Visit
from tamias.crawl.store.worker_store import WorkerStore
from tamias.crawl.visit.parking import Parking
from tamias.crawl.visit.runner import VisitRunner
from tamias.model.capture import Capture, Outcome
from tamias.model.errors import DiskFull, TamiasError
from tamias.model.kind import AUXILIARY, kind_of
from tamias.model.lease import Task
from tamias.model.url import without_password

_log = logging.getLogger(__name__)


class Allowance:
    """How many more URLs may be visited. A repeated attempt is free: its URL has been counted."""

    def __init__(self, urls: int | None) -> None:
        self._left = urls

    @property
    def used_up(self) -> bool:
        """Whether no visit may begin any more."""
        return self._left is not None and self._left <= 0

    def take(self, task: Task) -> bool:
        """Whether this visit may begin; if so, it is counted."""
        if self.used_up:
            return False
        if self._left is not None and _counts(task):
            self._left -= 1
        return True

    def give_back(self, task: Task) -> None:
        """The visit came to nothing."""
        if self._left is not None and _counts(task):
            self._left += 1


def _counts(task: Task) -> bool:
    return task.fails == 0 and not task.reopened and kind_of(task.tags) not in AUXILIARY


class Visitor:
    """Visits the URLs of leased hosts, one after another."""

    def __init__(
        self,
        runner: VisitRunner,
        store: WorkerStore,
        parking: Parking | None = None,
        allowance: int | None = None,
    ) -> None:
        """`parking` keeps documents that take long; without it their hosts are held until they are read."""
        self._runner = runner
        self._store = store
        self._parking = parking
        self.allowance = Allowance(allowance)
        """How many URLs may still be visited."""
        self.reach = runner.reach
        """Who can be reached."""

    async def work(self, held: HeldLease) -> None:
        """Visits the lease's URLs until they are done, the lease is over, or the host wants a pause."""
        for task in held.lease.tasks:
            if held.over or held.blocked_until is not None or not self.allowance.take(task):
                break
            counted = False
            try:
                counted = await self.visit(task, held)
            except NotNow:
                break
            finally:
                if not counted:
                    self.allowance.give_back(task)
            # A Semantic Sitemap may cover the other URLs of the host, which is known once it is committed.
            if held.awaits_commit:
                break
        self._store.release(held)

    async def visit(self, task: Task, held: HeldLease) -> bool:
        """One URL: visited and handed over; what takes long to read is handed over by itself.

        Whether it counts: false if it is only tried again later, because nobody could be reached.
        """
        try:
            visit = await self._runner.run(task, held)
        except Exception as error:  # noqa: BLE001 (what is not ours is raised again)
            visit = Visit(task, held, self._fault(error, task))
        if not visit.at_once and not await self._read(visit):
            return True
        held.awaits_commit = held.awaits_commit or bool(visit.found.semantic)
        await self._store.commit(visit)
        return visit.due is None

    def parked(self) -> int:
        """How many documents are still being read whose hosts were given back."""
        return len(self._parking) if self._parking is not None else 0

    @property
    def trouble(self) -> Exception | None:
        """What the worker cannot go on after."""
        return self._parking.trouble if self._parking is not None else None

    async def renew(self) -> None:
        """Regularly: nobody else is to visit the URLs of those documents."""
        if self._parking is not None:
            await self._parking.renew()

    def stop(self) -> None:
        """The worker is told to end: if it dies from here on, no document is to blame."""
        if self._parking is not None:
            self._parking.stop()
        self._runner.stop()

    async def close(self) -> None:
        """Lets go of connections and sandboxes."""
        await self._runner.close()

    async def _read(self, visit: Visit) -> bool:
        """Reads a document that may take long; false: that goes on, and is committed, by itself."""
        if self._parking is not None:
            return await self._parking.wait(self._digest(visit), visit)
        await self._digest(visit)
        return True

    async def _digest(self, visit: Visit) -> None:
        try:
            await self._runner.digest(visit)
        except Exception as error:  # noqa: BLE001 (what is not ours is raised again)
            visit.fail(self._fault(error, visit.task))

    def _fault(self, error: Exception, task: Task) -> Capture:
        """A fault of ours becomes the result of the visit, and the crawl goes on; other errors are raised."""
        if isinstance(error, TamiasError | NotNow):
            raise error
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no disk space left ({error}); free some space and continue") from error
        _log.error("visit of %s", without_password(task.url), exc_info=error)
        reason = f"internal error: {type(error).__name__}: {error}"
        return self._runner.unasked(task.url, Outcome.FAILED, reason)

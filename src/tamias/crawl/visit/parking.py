"""Documents that are still being read when their hosts have been given back.

A host is not held while one of its documents waits for a sandbox: the visit's URL is put off for the length
of a lease, again and again, and committed when it was read. Who dies over it leaves a URL that is due again.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from tamias.crawl.commit.database_store import DatabaseStore
from tamias.crawl.store.held_lease import NotNow, ParkedVisit
from tamias.crawl.store.worker_store import VisitResult
from tamias.model.errors import TamiasError

PATIENCE = 0.25
"""Seconds that a host is held for the sake of a document: most are read within that."""
MOST_OF_HOST = 3
"""A host with more documents that wait is held until one of them was read."""
MOST_DOCUMENTS = 500
MOST_BYTES = 1 << 30
"""Of the bodies that wait on the disk."""


class Parking:
    """Keeps a worker's visits that are only being read any more. For the event loop's thread."""

    def __init__(self, store: DatabaseStore) -> None:
        self._store = store
        self._lease_ms = int(store.context.settings.frontier.lease * 1000)
        self._parked: dict[asyncio.Task[None], ParkedVisit] = {}
        self._hosts: Counter[int] = Counter()
        self._bytes = 0
        self.trouble: Exception | None = None
        """What the worker cannot go on after."""

    def __len__(self) -> int:
        return len(self._parked)

    async def wait(
        self, reading: Coroutine[Any, Any, VisitResult], parked: ParkedVisit
    ) -> VisitResult | None:
        """What was read, if that is soon or there is no room here; None: it will be committed by itself."""
        work = asyncio.create_task(reading)
        held = parked.held
        try:
            await asyncio.wait([work], timeout=PATIENCE)
            if work.done() or not self._has_room(parked):
                return await work
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait([work])
            raise
        parked.until = self._store.now() + self._lease_ms
        # The next visit to this host must not take over the note on robots.txt that belongs to this one.
        granted, held.granted = held.granted, None
        await self._put_off(parked, parked.until, begun=True)
        finishing = asyncio.create_task(self._finish(work, parked, granted))
        self._parked[finishing] = parked
        self._hosts[held.lease.qid] += 1
        self._bytes += parked.size
        finishing.add_done_callback(self._leave)
        return None

    def stop(self) -> None:
        """The worker ends: what is not read yet is due again at once."""
        for finishing in self._parked:
            finishing.cancel()

    def _has_room(self, parked: ParkedVisit) -> bool:
        return (
            self._hosts[parked.held.lease.qid] < MOST_OF_HOST
            and len(self._parked) < MOST_DOCUMENTS
            and self._bytes + parked.size <= MOST_BYTES
        )

    async def renew(self) -> None:
        """Keeps others away from the URLs whose documents are still being read."""
        await self._store.renew_parked(list(self._parked.values()), self._store.now() + self._lease_ms)

    async def _put_off(self, parked: ParkedVisit, due: int, *, begun: bool = False) -> None:
        """`begun`: its host is still held."""
        nothing = VisitResult(parked.capture, put_off=True, due=due)
        await self._store.commit(nothing, parked.task, parked.held, None if begun else parked)

    async def _finish(
        self, work: asyncio.Task[VisitResult], parked: ParkedVisit, granted: str | None
    ) -> None:
        try:
            result = await work
            parked.held.granted = granted
            await self._store.commit(result, parked.task, parked.held, parked)
        except (asyncio.CancelledError, NotNow):
            await asyncio.wait([work])
            await self._put_off(parked, self._store.now())
        except TamiasError as error:
            self.trouble = error

    def _leave(self, finishing: asyncio.Task[None]) -> None:
        parked = self._parked.pop(finishing)
        self._hosts[parked.held.lease.qid] -= 1
        if not self._hosts[parked.held.lease.qid]:
            del self._hosts[parked.held.lease.qid]
        self._bytes -= parked.size

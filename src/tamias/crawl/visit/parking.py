"""Documents that are still being read when their hosts have been given back.

A host is not held while one of its documents waits for a sandbox: the visit's URL is put off for the length
of a lease, again and again, and committed when it was read. Who dies over it leaves a URL that is due again.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from functools import partial
from typing import Any

from tamias.crawl.commit.database_store import DatabaseStore
from tamias.crawl.store.held_lease import NotNow
from tamias.crawl.store.visit import Visit
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
        self._parked: dict[asyncio.Task[None], Visit] = {}
        self._hosts: Counter[int] = Counter()
        self._bytes = 0
        self.trouble: Exception | None = None
        """What the worker cannot go on after."""

    def __len__(self) -> int:
        return len(self._parked)

    async def wait(self, reading: Coroutine[Any, Any, None], visit: Visit) -> bool:
        """Whether it was read, soon or for want of room here; if not, it will be committed by itself."""
        work = asyncio.create_task(reading)
        held, size = visit.held, visit.capture.body.size if visit.capture.body else 0
        try:
            await asyncio.wait([work], timeout=PATIENCE)
            if work.done() or not self._has_room(held.lease.qid, size):
                await work
                return True
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait([work])
            raise
        visit.parked_until = self._store.now() + self._lease_ms
        # The next visit to this host must not take over the note on robots.txt that belongs to this one.
        granted, held.granted = held.granted, None
        # Another visit for the frontier, whose host is still held: this one goes on.
        await self._store.commit(Visit(visit.task, held, visit.capture, put_off=True, due=visit.parked_until))
        finishing = asyncio.create_task(self._finish(work, visit, granted))
        self._parked[finishing] = visit
        self._hosts[held.lease.qid] += 1
        self._bytes += size
        finishing.add_done_callback(partial(self._leave, size=size))
        return False

    def stop(self) -> None:
        """The worker ends: what is not read yet is due again at once."""
        for finishing in self._parked:
            finishing.cancel()

    def _has_room(self, qid: int, size: int) -> bool:
        return (
            self._hosts[qid] < MOST_OF_HOST
            and len(self._parked) < MOST_DOCUMENTS
            and self._bytes + size <= MOST_BYTES
        )

    async def renew(self) -> None:
        """Keeps others away from the URLs whose documents are still being read."""
        await self._store.renew_parked(list(self._parked.values()), self._store.now() + self._lease_ms)

    async def _finish(self, work: asyncio.Task[None], visit: Visit, granted: str | None) -> None:
        try:
            await work
            visit.held.granted = granted
            await self._store.commit(visit)
        except (asyncio.CancelledError, NotNow):
            await asyncio.wait([work])
            visit.put_off, visit.due = True, self._store.now()
            await self._store.commit(visit)
        except TamiasError as error:
            self.trouble = error

    def _leave(self, finishing: asyncio.Task[None], size: int) -> None:
        qid = self._parked.pop(finishing).held.lease.qid
        self._hosts[qid] -= 1
        if not self._hosts[qid]:
            del self._hosts[qid]
        self._bytes -= size

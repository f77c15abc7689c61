"""The remote JSON-LD contexts that documents ask for: fetched in their own queue, kept for all workers.

A document that wants one waits for it; the context itself is an item of the frontier like any other.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from tamias.crawl.analysing.contexts import ContextCache
from tamias.crawl.plan.admit import Admission, first
from tamias.crawl.store.worker_store import WorkerStore
from tamias.model.item import Item
from tamias.model.kind import CONTEXT
from tamias.model.lease import Task

FRESH_MS = 24 * 3600 * 1000
_PATIENCE = 30.0
_LOOK_SECONDS = 0.1


class ContextLoader:
    """Gets contexts that nobody has tried: from the store, or by having the frontier visit them."""

    def __init__(
        self,
        cache: ContextCache,
        store: WorkerStore,
        admission: Admission,
    ) -> None:
        self._cache = cache
        self._store = store
        self._admission = admission

    async def supply(
        self, addresses: list[str], task: Task, ask: Callable[[str], Awaitable[bytes | None]] | None
    ) -> None:
        """Waits until each address is at hand, or known not to be had, or it took too long.

        `ask` fetches an address of the queue that the document's own visit holds, if it still does.
        """
        since = self._store.now() - FRESH_MS
        left = await self._take([each for each in addresses if self._is_wanted(each)], since)
        own = self._admission.queue(task.url)
        for address in [each for each in left if ask and self._admission.queue(each) == own]:
            assert ask is not None
            self._cache.put(address, await ask(address))
            left.remove(address)
        if left:
            items = [self._item(address, task) for address in left]
            await self._store.put(items)
        deadline = time.monotonic() + _PATIENCE
        while left and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_SECONDS)
            left = await self._take(left, since)
        for address in left:
            self._cache.put(address, None)

    def _is_wanted(self, address: str) -> bool:
        """Whether it may be asked for; if not, nobody waits for it. Scope is not asked."""
        wanted = self._admission.blocked(address) is None
        if not wanted:
            self._cache.put(address, None)
        return wanted

    async def _take(self, addresses: list[str], since: int) -> list[str]:
        """Takes over what the store has; returns what it has not."""
        known = await self._store.read_contexts(addresses, since)
        for address, body in known.items():
            self._cache.put(address, body)
        return [address for address in addresses if address not in known]

    def _item(self, address: str, task: Task) -> Item:
        """Before all others of its host: somebody waits for it."""
        return first(self._admission, address, CONTEXT, task)

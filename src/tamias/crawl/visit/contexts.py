"""The remote JSON-LD contexts that documents ask for: fetched in their own queue, kept for all workers.

A document that wants one waits for it; the context itself is an item of the frontier like any other.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable

from tamias.archive.contexts import read_contexts
from tamias.crawl.admit import Admission, first
from tamias.crawl.commit.committer import Committer
from tamias.database.connect import Session
from tamias.model.item import Item
from tamias.model.kind import CONTEXT
from tamias.model.lease import Task

MAX_CONTEXT = 1 << 20
MAX_CONTEXTS = 256
ROUNDS = 10
"""How often a document may be analysed again because a context named another context."""

ACCEPT_CONTEXT = "application/ld+json, application/json;q=0.9, */*;q=0.1"
FRESH_MS = 24 * 3600 * 1000
_PATIENCE = 30.0
_LOOK_SECONDS = 0.1


class ContextCache:
    """Answers from memory only; whoever analyses a document fetches what was wanted and analyses it again.

    An address that gave nothing is remembered too, so that nobody asks for it over and over.
    """

    def __init__(self, most: int = MAX_CONTEXTS) -> None:
        self._most = most
        self._kept: OrderedDict[str, bytes | None] = OrderedDict()

    def __call__(self, address: str) -> bytes | None:
        """The context, if it is at hand. Safe to call from any thread."""
        return self._kept.get(address)

    def to_fetch(self, wanted: Iterable[str]) -> list[str]:
        """Of the addresses that were wanted, those on the Web that nobody has tried."""
        addresses = dict.fromkeys(wanted)
        return [
            each for each in addresses if each.startswith(("http://", "https://")) and each not in self._kept
        ]

    def put(self, address: str, data: bytes | None) -> None:
        """Keeps a context, or that there is none; one that is too large counts as none."""
        self._kept[address] = data if data is not None and len(data) <= MAX_CONTEXT else None
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)


class ContextLoader:
    """Gets contexts that nobody has tried: from the database, or by having the frontier visit them."""

    def __init__(
        self,
        cache: ContextCache,
        session: Session,
        in_database: Callable[..., Awaitable[dict[str, bytes | None]]],
        admission: Admission,
        committer: Committer,
        now: Callable[[], int],
    ) -> None:
        self._cache = cache
        self._session = session
        self._in_database = in_database
        self._admission = admission
        self._committer = committer
        self._now = now

    async def supply(
        self, addresses: list[str], task: Task, ask: Callable[[str], Awaitable[bytes | None]] | None
    ) -> None:
        """Waits until each address is at hand, or known not to be had, or it took too long.

        `ask` fetches an address of the queue that the document's own visit holds, if it still does.
        """
        since = self._now() - FRESH_MS
        left = await self._take([each for each in addresses if self._is_wanted(each)], since)
        own = self._admission.queue(task.url)
        for address in [each for each in left if ask and self._admission.queue(each) == own]:
            assert ask is not None
            self._cache.put(address, await ask(address))
            left.remove(address)
        if left:
            items = [self._item(address, task) for address in left]
            await asyncio.to_thread(self._committer.put_items, items)
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
        """Takes over what the database has; returns what it has not."""
        known = await self._in_database(read_contexts, self._session, addresses, since)
        for address, body in known.items():
            self._cache.put(address, body)
        return [address for address in addresses if address not in known]

    def _item(self, address: str, task: Task) -> Item:
        """Before all others of its host: somebody waits for it."""
        return first(self._admission, address, CONTEXT, task)

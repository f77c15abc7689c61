"""The way of all puts into the database: what the streams bring is gathered into transactions, in order."""

import asyncio
import logging

from tamias.features.urlfrontier.session_threads import PUTS_AT_ONCE, FrontierSession, FrontierThreads
from tamias.frontier.put import OfferedItems
from tamias.frontier.service.state import gather_statistics
from tamias.model.errors import TamiasError
from tamias.model.item import Item

OK, SKIPPED, FAIL = 0, 1, 2
"""`AckMessage.Status`."""
_AT_ONCE = 2048
_MOST_WAITING = 100_000
_FEW = 32
"""So many are numbered by the thread that puts them, without a change of threads."""
_log = logging.getLogger(__name__)

_WORTH_NUMBERING = 200
"""So many are numbered while a transaction runs; fewer wait for its end, and for others that come."""
_STATISTICS_AFTER = (1_000, 10_000, 100_000)
"""URLs, after which plans for the tables as they were before are not good enough."""

Load = tuple[list[Item], "asyncio.Future[list[int]]"]


class PutBatcher:
    """A queue of puts, which are numbered while transactions run and wait for the next one.

    Two at a time may write, if no URL is in both: so what is said of a URL keeps its order, and neither waits
    for a URL of the other while that waits for one of its hosts.
    """

    def __init__(self, threads: FrontierThreads) -> None:
        self._threads = threads
        self.unsynced: set[int] = set()
        """Crawls whose puts are answered before they are on disk."""
        self._waiting: list[Load] = []
        self._work: asyncio.Task[None] | None = None
        self._writing: dict[asyncio.Task[None], OfferedItems] = {}
        self._count = self._count_waiting = 0
        self._turn = asyncio.Event()
        self._put_so_far = 0
        self._statistics: asyncio.Task[None] | None = None
        self._room = asyncio.Event()

    async def put(self, urls: list[Item]) -> "asyncio.Future[list[int]]":
        """The verdicts to come, in the order of the URLs. Waits while too much waits already."""
        while self._count > _MOST_WAITING:
            self._room.clear()
            await self._room.wait()
        self._count += len(urls)
        loop = asyncio.get_running_loop()
        verdicts: asyncio.Future[list[int]] = loop.create_future()
        self._waiting.append((urls, verdicts))
        self._count_waiting += len(urls)
        if self._count_waiting >= _WORTH_NUMBERING:
            self._turn.set()
        if self._work is None:
            self._work = loop.create_task(self._put_all())
        return verdicts

    async def _put_all(self) -> None:
        while self._waiting:
            if self._writing and self._count_waiting < _WORTH_NUMBERING:
                await self._next_turn()
                continue
            loads = self._next()
            urls = [url for those, _ in loads for url in those]
            self._count_waiting -= len(urls)
            offered = await self._offered(urls)
            while not self._may_write(offered):
                await self._next_turn()
            if offered is None:
                await self._write(loads, urls, offered)  # a task of its own would cost more than it gives
            else:
                writing = asyncio.get_running_loop().create_task(self._write(loads, urls, offered))
                self._writing[writing] = offered
                writing.add_done_callback(self._end_writing)
        self._work = None

    def _may_write(self, offered: OfferedItems | None) -> bool:
        if offered is None:
            return not self._writing
        return len(self._writing) < PUTS_AT_ONCE and all(map(offered.may_go_with, self._writing.values()))

    def _end_writing(self, writing: asyncio.Task[None]) -> None:
        del self._writing[writing]
        self._turn.set()

    async def _next_turn(self) -> None:
        self._turn.clear()
        await self._turn.wait()

    async def _offered(self, urls: list[Item]) -> OfferedItems | None:
        """Number many URLs while the database works on those before them."""
        if len(urls) <= _FEW:
            return None
        try:
            return await self._threads.number(lambda db: db.put.prepare(urls))
        except Exception:  # noqa: BLE001 (then the put meets the same, and tells of it)
            return None

    async def _write(self, loads: list[Load], urls: list[Item], offered: OfferedItems | None) -> None:
        _deal(loads, await self._verdicts(urls, offered))
        self._count_done(len(urls))

    def _count_done(self, urls: int) -> None:
        self._count -= urls
        self._room.set()
        before, self._put_so_far = self._put_so_far, self._put_so_far + urls
        for least in _STATISTICS_AFTER:
            if before < least <= self._put_so_far:
                self._statistics = asyncio.get_running_loop().create_task(self._gather_statistics(least))

    async def _gather_statistics(self, least: int) -> None:
        try:
            await self._threads.run(lambda db: gather_statistics(db.session, least))
        except TamiasError as error:
            _log.warning("the database could not gather statistics of the frontier: %s", error)

    def _next(self) -> list[Load]:
        loads, count = [self._waiting[0]], len(self._waiting[0][0])
        for load in self._waiting[1:]:
            count += len(load[0])
            if count > _AT_ONCE:
                break
            loads.append(load)
        del self._waiting[: len(loads)]
        return loads

    async def _verdicts(self, urls: list[Item], offered: OfferedItems | None) -> list[int]:
        try:
            durable = any(each.crawl not in self.unsynced for each in urls)
            return await self._threads.put(lambda db: _put(db, urls, offered, durable))
        except TamiasError as error:
            _log.warning("%d URLs were not put: %s", len(urls), error)
            return [FAIL] * len(urls)
        except Exception:  # noqa: BLE001 (without the batcher no put is ever answered again)
            _log.exception("%d URLs were not put", len(urls))
            return [FAIL] * len(urls)


def _put(db: FrontierSession, urls: list[Item], offered: OfferedItems | None, durable: bool) -> list[int]:
    """Write the URLs; those whose section belongs to another instance fail."""
    taken = db.put.write(offered or db.put.prepare(urls), shortens=False, durable=durable)
    return [
        OK if each else SKIPPED if db.put.owns(url.host) else FAIL
        for url, each in zip(urls, taken, strict=True)
    ]


def _deal(loads: list[Load], verdicts: list[int]) -> None:
    at = 0
    for urls, future in loads:
        if not future.cancelled():
            future.set_result(verdicts[at : at + len(urls)])
        at += len(urls)

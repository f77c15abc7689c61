"""The way of all puts into the database: what the streams bring is gathered into transactions, in order."""

import asyncio
import logging

from tamias.model.errors import TamiasError
from tamias.model.item import Item
from tamias.serve.urlfrontier.session_threads import FrontierSession, FrontierThreads

OK, SKIPPED, FAIL = 0, 1, 2
"""`AckMessage.Status`."""
_AT_ONCE = 2048
_MOST_WAITING = 100_000
_log = logging.getLogger(__name__)

Load = tuple[list[Item], "asyncio.Future[list[int]]"]


class PutBatcher:
    """While one transaction runs, what comes in waits for the next."""

    def __init__(self, threads: FrontierThreads) -> None:
        self._threads = threads
        self.unsynced: set[int] = set()
        """Crawls whose puts are answered before they are on disk."""
        self._waiting: list[Load] = []
        self._work: asyncio.Task[None] | None = None
        self._count = 0
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
        if self._work is None:
            self._work = loop.create_task(self._put_all())
        return verdicts

    async def _put_all(self) -> None:
        while self._waiting:
            loads = self._next()
            together = [told for urls, _ in loads for told in urls]
            _deal(loads, await self._verdicts(together))
            self._count -= len(together)
            self._room.set()
        self._work = None

    def _next(self) -> list[Load]:
        loads, count = [self._waiting[0]], len(self._waiting[0][0])
        for load in self._waiting[1:]:
            count += len(load[0])
            if count > _AT_ONCE:
                break
            loads.append(load)
        del self._waiting[: len(loads)]
        return loads

    async def _verdicts(self, urls: list[Item]) -> list[int]:
        try:
            durable = any(each.crawl not in self.unsynced for each in urls)
            return await self._threads.put(lambda db: _put(db, urls, durable))
        except TamiasError as error:
            _log.warning("%d URLs were not put: %s", len(urls), error)
            return [FAIL] * len(urls)
        except Exception:  # noqa: BLE001 (without the batcher no put is ever answered again)
            _log.exception("%d URLs were not put", len(urls))
            return [FAIL] * len(urls)


def _put(db: FrontierSession, urls: list[Item], durable: bool) -> list[int]:
    """What another instance must be told of fails here: its section is not ours."""
    taken = db.put.put(urls, shortens=False, durable=durable)
    return [
        OK if each else SKIPPED if db.put.owns(told.host) else FAIL
        for told, each in zip(urls, taken, strict=True)
    ]


def _deal(loads: list[Load], verdicts: list[int]) -> None:
    at = 0
    for urls, future in loads:
        if not future.cancelled():
            future.set_result(verdicts[at : at + len(urls)])
        at += len(urls)

"""URLs that come in: PutURLs, a stream of items, and PutDiscovered, a stream of batches."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from google.protobuf.message import DecodeError

from tamias.crawl.plan.forgotten_urls import ForgottenUrls
from tamias.features.remote_workers.grpc.connection import CallError, Code, message
from tamias.features.urlfrontier.grpc.http2 import Call
from tamias.features.urlfrontier.reading import Addresses, due_of, is_name
from tamias.features.urlfrontier.session_threads import PUTS_AT_ONCE, FrontierSession, FrontierThreads
from tamias.frontier.put import OfferedItems
from tamias.frontier.service import DEFAULT_CRAWL, NamedQueues, gather_statistics, make_crawl
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


def may_go_together(one: OfferedItems, other: OfferedItems) -> bool:
    """Return whether both may be written at once: they share no URL, and neither changes tags."""
    is_plain = (one.is_new or one.is_update) and (other.is_new or other.is_update)
    return is_plain and one.uids.isdisjoint(other.uids)


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
        others = self._writing.values()
        return len(others) < PUTS_AT_ONCE and all(may_go_together(offered, each) for each in others)

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


_URL_ITEM = message("urlfrontier.URLItem")
_ACK = message("urlfrontier.AckMessage")
_BATCH = message("urlfrontier.DiscoveredBatch")
_BATCH_ACK = message("urlfrontier.BatchAck")

MOST_ITEMS = 1024
MOST_BATCHES = 16
MOST_BYTES = 4 << 20
"""Unanswered in one stream; beyond that it is not read."""
MOST_OF_A_BATCH = 100_000
"""URLs in one batch."""
SLICE = 500
"""URLs that are worked off before other clients have their turn."""
BATCHES_AT_ONCE = 4
"""Of all clients together: a batch in memory takes many times its bytes."""
_ITEM = (0x12, 0x92)
"""The first byte of each item in a `DiscoveredBatch`, however it is written."""
_REMEMBERED_CRAWLS = 10_000

Answer = Callable[[], Awaitable[list[bytes]]]
"""Waits for the verdicts on some messages and gives the answers to them."""
Verdicts = Callable[[], Awaitable[list[int]]]
Begin = Callable[[Sequence[bytes]], Awaitable[Answer]]


class Puts:
    """The calls PutURLs and PutDiscovered."""

    def __init__(
        self,
        threads: FrontierThreads,
        addresses: Addresses,
        forgotten: ForgottenUrls,
        *,
        shared_politeness: bool = False,
        unsynced: frozenset[str] = frozenset(),
    ) -> None:
        """`shared_politeness`: new crawls share that of a host with all others.

        `unsynced`: the crawls whose puts are answered before they are on disk.
        """
        self._unsynced = unsynced
        self._own_politeness = not shared_politeness
        self._threads = threads
        self._addresses = addresses
        self._forgotten = forgotten
        self._puts = PutBatcher(threads)
        self._parsing = asyncio.Semaphore(BATCHES_AT_ONCE)
        self._crawls: dict[str, NamedQueues] = {}

    async def put_urls(self, call: Call) -> None:
        """Answer the items in order, as soon as they are in the database."""
        await _answered(call, self._begin_items, MOST_ITEMS)

    async def put_discovered(self, call: Call) -> None:
        """Answer the batches in order; an empty one too."""
        await _answered(call, self._begin_batches, MOST_BATCHES)

    async def _begin_items(self, messages: Sequence[bytes]) -> Answer:
        items = [parsed(_URL_ITEM, each) for each in messages]
        infos = [_info(item) for item in items]
        judged = await self._judge(items, infos)

        async def answer() -> list[bytes]:
            return [
                _ACK(ID=item.ID or info.url, status=status).SerializeToString()
                for item, info, status in zip(items, infos, await judged(), strict=True)
            ]

        return answer

    async def _begin_batches(self, messages: Sequence[bytes]) -> Answer:
        begun = [await self._begin_batch(each) for each in messages]

        async def answer() -> list[bytes]:
            return [
                _BATCH_ACK(
                    ID=name, statuses=[status for verdicts in judged for status in await verdicts()]
                ).SerializeToString()
                for name, judged in begun
            ]

        return answer

    async def _begin_batch(self, raw: bytes) -> tuple[str, list[Verdicts]]:
        """Return a batch's name and its verdicts to come; between slices other clients have their turn."""
        async with self._parsing:
            batch = parsed_batch(raw)
            infos, judged = list(batch.items), []
            for start in range(0, len(infos), SLICE):
                some = infos[start : start + SLICE]
                judged.append(await self._judge([None] * len(some), some))
                await asyncio.sleep(0)
            return batch.ID, judged

    async def _judge(self, items: Sequence[Any], infos: Sequence[Any]) -> Verdicts:
        """Give the verdicts to come on some URLs; an item of None is a discovered URL.

        What is not a URL, or forgotten, is skipped, whatever becomes of the others.
        """
        await self._know_crawls({info.crawlID for info in infos})
        offered = list(map(self._item, items, infos))
        good = [each for each in offered if each is not None]
        coming = await self._puts.put(good) if good else None

        async def verdicts() -> list[int]:
            answers = iter(await coming if coming is not None else [])
            return [SKIPPED if each is None else next(answers) for each in offered]

        return verdicts

    def _item(self, item: Any, info: Any) -> Item | None:
        crawl = self._crawls.get(info.crawlID)
        if crawl is None:
            return None
        if item is None or item.WhichOneof("item") != "known":
            found = self._addresses.read_item(info, crawl)
        else:
            due = due_of(item.known.refetchable_from_date)
            found = self._addresses.read_item(info, crawl, known=True, due=due)
        return None if found is None or self._forgotten.refuse(found.url) else found

    async def _know_crawls(self, names: Iterable[str]) -> None:
        """Learns the numbers of crawls, except of names that cannot be one; and what is forgotten by now."""
        if self._forgotten.is_stale:
            await self._threads.run(lambda db: self._forgotten.refresh(db.session))
        for name in names:
            if name not in self._crawls and is_name(name):
                self._crawls[name] = await self._crawl(name)
                if (name or DEFAULT_CRAWL) in self._unsynced:
                    self._puts.unsynced.add(self._crawls[name].crawl)
        if len(self._crawls) > _REMEMBERED_CRAWLS:
            self._crawls = {name: self._crawls[name] for name in set(names) & self._crawls.keys()}

    async def _crawl(self, name: str) -> NamedQueues:
        own = self._own_politeness
        return await self._threads.run(lambda db: make_crawl(db.session, name, own_politeness=own))


class _Unanswered:
    """A queue of messages that are not answered yet, with bounds on their number and bytes."""

    def __init__(self, most: int) -> None:
        self.at_once = max(1, most // 3)
        self._most = most
        self._unit = MOST_BYTES // most
        self._taken = 0
        self._room = asyncio.Event()
        self._waiting: asyncio.Queue[tuple[int, Answer] | None] = asyncio.Queue()
        self.over = False

    async def enter(self, messages: Sequence[bytes]) -> int:
        """Waits until there is room; a long message takes the room of several."""
        weight = min(self._most, sum(1 + len(each) // self._unit for each in messages))
        while self._taken + weight > self._most and not self.over:
            self._room.clear()
            await self._room.wait()
        self._taken += weight
        return weight

    def add(self, weight: int, answer: Answer | None) -> None:
        self._waiting.put_nowait(None if answer is None else (weight, answer))

    async def send_answers(self, call: Call) -> None:
        """Send the answers in the order of the questions, until there are no more."""
        try:
            while (each := await self._waiting.get()) is not None:
                weight, answer = each
                await call.send(await answer())
                self._taken -= weight
                self._room.set()
        finally:
            self.over = True
            self._room.set()


async def _answered(call: Call, begin: Begin, most: int) -> None:
    """Reads messages and answers them. What was read is answered, also when what follows is refused."""
    unanswered = _Unanswered(most)
    answers = asyncio.get_running_loop().create_task(unanswered.send_answers(call))
    try:
        await _read(call, begin, unanswered)
        unanswered.add(0, None)
        await answers
    except CallError:
        unanswered.add(0, None)
        await answers
        raise
    finally:
        answers.cancel()


async def _read(call: Call, begin: Begin, unanswered: _Unanswered) -> None:
    async for messages in call.batches():
        for start in range(0, len(messages), unanswered.at_once):
            some = messages[start : start + unanswered.at_once]
            weight = await unanswered.enter(some)
            if unanswered.over:
                return
            if len(some) > 1:
                await asyncio.sleep(0)
            unanswered.add(weight, await begin(some))


def _info(item: Any) -> Any:
    return item.known.info if item.WhichOneof("item") == "known" else item.discovered.info


def parsed_batch(raw: bytes) -> Any:
    """Parse a batch, unless it may have too many items: each takes a hundred times its two bytes."""
    # The first byte of an item is that of a key, too, and may stand in its text.
    if sum(map(raw.count, _ITEM)) <= 8 * MOST_OF_A_BATCH:
        batch = parsed(_BATCH, raw)
        if len(batch.items) <= MOST_OF_A_BATCH:
            return batch
    raise CallError(Code.RESOURCE_EXHAUSTED, f"a batch has at most {MOST_OF_A_BATCH} URLs; send several")


def parsed(kind: Any, raw: bytes) -> Any:
    """A message of a kind, or the reason why it is none."""
    try:
        return kind.FromString(raw)
    except DecodeError as error:
        name = kind.DESCRIPTOR.full_name
        raise CallError(Code.INVALID_ARGUMENT, f"a message cannot be read as {name}: {error}") from None

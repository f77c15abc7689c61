"""URLs that come in: PutURLs, a stream of items, and PutDiscovered, a stream of batches."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from google.protobuf.message import DecodeError

from tamias.crawl.plan.forgotten_urls import ForgottenUrls
from tamias.crawl.remote.grpc.messages import message
from tamias.crawl.remote.grpc.status import CallError, Code
from tamias.frontier.service.state import DEFAULT_CRAWL, NamedQueues, make_crawl, removals
from tamias.model.item import Item
from tamias.serve.urlfrontier.grpc.calls import Call
from tamias.serve.urlfrontier.known_urls import KnownUrls, digest
from tamias.serve.urlfrontier.put_batcher import FAIL, SKIPPED, PutBatcher
from tamias.serve.urlfrontier.reading import Addresses, due_of, is_name
from tamias.serve.urlfrontier.session_threads import FrontierThreads
from tamias.serve.urlfrontier.wire_parts import ack, split_batch, split_item

_URL_ITEM = message("urlfrontier.URLItem")
_INFO = message("urlfrontier.URLInfo")
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
_VARINT, _BYTES, _FIXED = 0, 2, {1: 8, 5: 4}
"""The kinds of fields in the wire format of Protocol Buffers, and the size of those that have one."""
_ITEMS = 2
"""The field of `DiscoveredBatch`."""
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
        self._known_urls = KnownUrls()
        self._connections: set[tuple[int, int]] = set()

    async def put_urls(self, call: Call) -> None:
        """Every item is answered, in order, as soon as it is in the database."""
        await _answered(call, self._begin_items, MOST_ITEMS)

    async def put_discovered(self, call: Call) -> None:
        """Every batch is answered, in order; an empty one too."""
        await _answered(call, self._begin_batches, MOST_BATCHES)

    async def _begin_items(self, messages: Sequence[bytes]) -> Answer:
        parts = [split_item(each) for each in messages]
        digests = [None if each is None else digest(each[1]) for each in parts]
        known = await self._known(digests)
        others = [at for at, is_known in enumerate(known) if not is_known]
        items = [parsed(_URL_ITEM, messages[at]) for at in others]
        infos = [_info(item) for item in items]
        await self._know_crawls({info.crawlID for info in infos})
        told = [self._item(item, info) for item, info in zip(items, infos, strict=True)]
        judged = await self._judged(told, [digests[at] for at in others])
        names = [(item.ID or info.url).encode() for item, info in zip(items, infos, strict=True)]

        async def answer() -> list[bytes]:
            answers = map(ack, names, await judged())
            return [
                next(answers) if part is None or not is_known else ack(part[0], SKIPPED)
                for part, is_known in zip(parts, known, strict=True)
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
        """Its name, and the verdicts to come. Between slices other clients have their turn."""
        check_number_of_items(raw)
        async with self._parsing:
            name, items = split_batch(raw) or _parsed_batch(raw)
            judged = []
            for start in range(0, len(items), SLICE):
                judged.append(await self._judge_slice(items[start : start + SLICE], raw))
                await asyncio.sleep(0)
            return name.decode(), judged

    async def _judge_slice(self, items: list[bytes], raw: bytes) -> Verdicts:
        """Verdicts on some URLs of a batch; those that are known need not even be parsed."""
        digests = [digest(each) for each in items]
        known = await self._known(digests)
        others = [at for at, is_known in enumerate(known) if not is_known]
        try:
            infos = [_INFO.FromString(items[at]) for at in others]
        except DecodeError:
            infos = parsed(_BATCH, raw).items  # says what is wrong
        await self._know_crawls({info.crawlID for info in infos})
        judged = await self._judged(
            [self._discovered(info) for info in infos], [digests[at] for at in others]
        )

        async def verdicts() -> list[int]:
            answers = iter(await judged())
            return [SKIPPED if is_known else next(answers) for is_known in known]

        return verdicts

    async def _known(self, digests: Sequence[bytes | None]) -> list[bool]:
        """Which of some URLs are certain to be known now."""
        crawls = self._known_urls.crawls_of(digests)
        if found := {crawl for crawl in crawls if crawl is not None}:
            await self._count_removals(found)
            crawls = self._known_urls.crawls_of(digests)
        return [crawl in found for crawl in crawls]

    async def _count_removals(self, crawls: Iterable[int]) -> None:
        # Always by the same thread: the first connection of another could not be told from one after a crash.
        counts, connection = await self._threads.number(
            lambda db: (removals(db.session, crawls), (id(db), db.session.opened))
        )
        if connection not in self._connections:
            # The database may have crashed, and have lost what it had not synced.
            self._connections.add(connection)
            self._known_urls.clear()
        self._known_urls.renew(counts)

    def _item(self, item: Any, info: Any) -> Item | None:
        if item.WhichOneof("item") != "known":
            return self._discovered(info)
        crawl = self._crawls.get(info.crawlID)
        due = due_of(item.known.refetchable_from_date)
        return None if crawl is None else self._wanted(self._addresses.told(info, crawl, known=True, due=due))

    def _discovered(self, info: Any) -> Item | None:
        crawl = self._crawls.get(info.crawlID)
        return None if crawl is None else self._wanted(self._addresses.told(info, crawl))

    def _wanted(self, item: Item | None) -> Item | None:
        return None if item is None or self._forgotten.refuse(item.url) else item

    async def _know_crawls(self, names: Iterable[str]) -> None:
        """Learns the numbers of crawls, except of names that cannot be one; and what is forgotten by now."""
        if self._forgotten.is_stale:
            await self._threads.run(lambda db: self._forgotten.refresh(db.session))
        for name in names:
            if name not in self._crawls and is_name(name):
                self._crawls[name] = await self._crawl(name)
                await self._count_removals([self._crawls[name].crawl])
                if (name or DEFAULT_CRAWL) in self._unsynced:
                    self._puts.unsynced.add(self._crawls[name].crawl)
        if len(self._crawls) > _REMEMBERED_CRAWLS:
            self._crawls = {name: self._crawls[name] for name in set(names) & self._crawls.keys()}

    async def _crawl(self, name: str) -> NamedQueues:
        own = self._own_politeness
        return await self._threads.run(lambda db: make_crawl(db.session, name, own_politeness=own))

    async def _judged(self, told: list[Item | None], digests: list[bytes | None] | list[bytes]) -> Verdicts:
        """Verdicts to come; what is not a URL, or forgotten, is skipped, whatever becomes of the others."""
        good = [each for each in told if each is not None]
        counts = {each.crawl: self._known_urls.count(each.crawl) for each in good}
        coming = await self._puts.put(good) if good else None

        async def verdicts() -> list[int]:
            judged = await coming if coming is not None else []
            told_again = (each for each, item in zip(digests, told, strict=True) if item is not None)
            self._known_urls.add(
                (
                    (each, item.crawl)
                    for each, item, verdict in zip(told_again, good, judged, strict=True)
                    if each is not None and verdict != FAIL and not item.overwrites
                ),
                counts,
            )
            answers = iter(judged)
            return [SKIPPED if each is None else next(answers) for each in told]

        return verdicts


class _Unanswered:
    """What was read of a stream and is not answered yet: at most so many messages and so many bytes."""

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
        """In the order of the questions, until there are no more."""
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


def _parsed_batch(raw: bytes) -> tuple[bytes, list[bytes]]:
    batch = parsed(_BATCH, raw)
    return batch.ID.encode(), [each.SerializeToString(deterministic=True) for each in batch.items]


def _info(item: Any) -> Any:
    return item.known.info if item.WhichOneof("item") == "known" else item.discovered.info


def check_number_of_items(raw: bytes) -> None:
    """Refuses a batch of too many items before it is parsed: each takes a hundred times its two bytes."""
    if len(raw) > 2 * MOST_OF_A_BATCH and sum(1 for _ in islice(_items(raw), MOST_OF_A_BATCH + 1)) > (
        MOST_OF_A_BATCH
    ):
        raise CallError(Code.RESOURCE_EXHAUSTED, f"a batch has at most {MOST_OF_A_BATCH} URLs; send several")


def _items(raw: bytes) -> Iterator[None]:
    """One for each item of a batch. Fields that we do not know are passed over, as the parser does."""
    at = 0
    try:
        while at < len(raw):
            tag, at = _varint(raw, at)
            kind = tag & 7
            if kind == _VARINT:
                _, at = _varint(raw, at)
            elif kind == _BYTES:
                length, at = _varint(raw, at)
                at += length
                if tag >> 3 == _ITEMS:
                    yield
            elif kind in _FIXED:
                at += _FIXED[kind]
            else:
                raise CallError(Code.INVALID_ARGUMENT, "a batch with groups cannot be read")
    except IndexError:
        return  # it is cut off, and the parser will say so


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while raw[at] & 0x80 and shift < 63:
        value |= (raw[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | (raw[at] & 0x7F) << shift, at + 1


def parsed(kind: Any, raw: bytes) -> Any:
    """A message of a kind, or the reason why it is none."""
    try:
        return kind.FromString(raw)
    except DecodeError as error:
        name = kind.DESCRIPTOR.full_name
        raise CallError(Code.INVALID_ARGUMENT, f"a message cannot be read as {name}: {error}") from None

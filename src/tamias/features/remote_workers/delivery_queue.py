"""The queue of visits and released hosts, in order, until the service has received them."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec

from tamias.archive.moments import shown
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.progress import Tally
from tamias.crawl.store.worker_store import After
from tamias.features.remote_workers.client import FrontierClient
from tamias.features.remote_workers.grpc.channel import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    CallFailed,
    HungUp,
    NotReached,
)
from tamias.features.remote_workers.grpc.messages import message
from tamias.features.remote_workers.quad_spool import PIECE, PackedQuads
from tamias.features.remote_workers.wire import DeliveredVisit, Released, bare, packed
from tamias.model.capture import new_capture_id
from tamias.model.item import Item
from tamias.model.kind import AUXILIARY, kind_of

_PARCEL = message("tamias.Parcel")
MOST_WAITING = 1000
"""Visits that wait for a service that is away; then no further ones begin."""
MOST_BYTES = 64 << 20
"""Of their quads in memory."""
AT_ONCE = 200
GATHER_SECONDS = 0.05
"""Visits that end within it are sent together."""
AGAIN_SECONDS = 2.0
"""After which what the service cannot commit yet is sent again."""
_log = logging.getLogger(__name__)


class Parcel(msgspec.Struct, frozen=True):
    """A visit with its quads, or a released host."""

    id: str
    visit: DeliveredVisit | None = None
    quads: PackedQuads | None = None
    released: HeldLease | None = None
    links: Sequence[Item] = ()
    """In the frontier once the visit is committed."""

    @property
    def host(self) -> tuple[int, int]:
        """The host and the token of its lease: what has the same goes in order."""
        held = self.visit or self.released
        assert held is not None
        return held.lease.qid, held.lease.token

    def messages(self, *, again: bool = False) -> Iterator[bytes]:
        """Yield the messages to send; `again` marks a repeated delivery."""
        if (held := self.released) is not None:
            released = shown(Released, held, lease=bare(held.lease), alike=held.alike_news)
            yield _PARCEL(id=self.id, release=packed(released), last=True).SerializeToString()
            return
        data = packed(self.visit)
        for start in range(0, len(data), PIECE):
            yield _PARCEL(id=self.id, visit=data[start : start + PIECE]).SerializeToString()
        for piece in self.quads.pieces() if self.quads else ():
            yield _PARCEL(id=self.id, quads=piece).SerializeToString()
        yield _PARCEL(id=self.id, last=True, again=again).SerializeToString()


class DeliveryQueue:
    """Delivers in batches, again and again until each parcel is answered."""

    def __init__(self, client: FrontierClient, remember: Callable[[Sequence[Item]], None]) -> None:
        """`remember` is told of items that are in the frontier now."""
        self._remember = remember
        self._client = client
        self._waiting: list[Parcel] = []
        self._news = asyncio.Event()
        self._room = asyncio.Condition()
        self._ending = False
        self._sent: set[str] = set()
        """Of those that wait: what the service may have."""
        self._later: dict[tuple[int, int], float] = {}
        """Hosts whose visits the service cannot commit, for a node of the database is away; until when."""
        self.tally = Tally()

    async def add(self, visit: DeliveredVisit, quads: PackedQuads | None, links: Sequence[Item]) -> None:
        """Hands a visit over; waits when too many are waiting."""
        async with self._room:
            await self._room.wait_for(self._has_room)
        name = str(new_capture_id(visit.capture.started_at))
        self._waiting.append(Parcel(name, visit, quads, links=links))
        self._news.set()

    def _has_room(self) -> bool:
        size = sum(parcel.quads.in_memory for parcel in self._waiting if parcel.quads)
        return len(self._waiting) < MOST_WAITING and size < MOST_BYTES

    def release(self, held: HeldLease) -> None:
        """The host is to be given back."""
        lease = held.lease
        self._waiting.append(Parcel(f"release {lease.bucket} {lease.qid} {lease.token}", released=held))
        self._news.set()

    def end(self) -> None:
        """Lets `run` come to its end."""
        self._ending = True
        self._news.set()

    async def run(self, after: After) -> None:
        """Deliver until `end` is called, then what was handed over before it."""
        pause = FIRST_PAUSE
        while not (self._ending and not self._waiting):
            await self._news.wait()
            if not self._ending:
                await asyncio.sleep(GATHER_SECONDS)
            self._news.clear()
            try:
                await self._deliver(self._ready(), after)
                pause = FIRST_PAUSE
            except NotReached:
                try:
                    await self._client.wait(pause)
                except HungUp:
                    return
                pause = min(LONGEST_PAUSE, 2 * pause)
            if self._ready():
                self._news.set()
            elif self._waiting:
                asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._news.set)

    def _ready(self) -> list[Parcel]:
        """Return the parcels to send next; at the end, without waiting for any host."""
        now = time.monotonic()
        self._later = {host: until for host, until in self._later.items() if until > now}
        waiting = (each for each in self._waiting if self._ending or each.host not in self._later)
        return list(islice(waiting, AT_ONCE))

    async def _deliver(self, parcels: list[Parcel], after: After) -> None:
        if not parcels:
            return
        try:
            receipts = await self._client.deliver(self._messages(parcels))
        except CallFailed as error:
            if len(parcels) > 1:
                for parcel in parcels:
                    await self._deliver([parcel], after)
                return
            _log.error("the service does not take the visit %s: %s", parcels[0].id, error)
            receipts = {parcels[0].id: False}
        answered = [parcel for parcel in parcels if parcel.id in receipts]
        if not answered and self._ending:
            raise NotReached("the service answered for none of the visits")
        again_at = time.monotonic() + AGAIN_SECONDS
        self._later |= {parcel.host: again_at for parcel in parcels if parcel not in answered}
        self._waiting = [parcel for parcel in self._waiting if parcel.id not in receipts]
        self._sent.difference_update(receipts)
        for parcel in answered:
            self._done(parcel, committed=receipts[parcel.id])
        after(list(filter(None, (parcel.released for parcel in answered))), ())
        async with self._room:
            self._room.notify_all()

    def _messages(self, parcels: Sequence[Parcel]) -> Iterator[bytes]:
        for parcel in parcels:
            again = parcel.id in self._sent
            self._sent.add(parcel.id)
            yield from parcel.messages(again=again)

    def _done(self, parcel: Parcel, *, committed: bool) -> None:
        if parcel.quads is not None:
            parcel.quads.discard()
        visit = parcel.visit
        if visit is None or not committed:
            return
        self._remember(parcel.links)
        if kind_of(visit.task.tags) in AUXILIARY:
            return
        self.tally.count_outcome(visit.capture.outcome, visit.capture.reason, visit.task.url)
        self.tally.quads += visit.found.quads
        self.tally.bytes += visit.capture.body.size if visit.capture.body else 0

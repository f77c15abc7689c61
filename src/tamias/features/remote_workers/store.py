"""A worker's store at a frontier service: what it asks is a call, what it brings is delivered.

Visits and released hosts wait in order until the service has received them.
"""

import asyncio
import logging
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar

import msgspec

from tamias.archive.moments import shown
from tamias.crawl.analysis.marker import DocumentPlace
from tamias.crawl.plan.admit import Admission, Reference, with_words
from tamias.crawl.plan.fetch_options import with_own_credentials
from tamias.crawl.plan.policy import RunLimit, check_bounds, options_of, overlay
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.progress import Tally
from tamias.crawl.store.visit import After, CommitHook, Visit
from tamias.crawl.visit.visitor import Parking, Visitor
from tamias.crawl.worker.worker import Replaced, Worker, stage_context
from tamias.features.remote_workers import wire
from tamias.features.remote_workers.grpc.channel import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    CallFailed,
    HungUp,
    NotReached,
    ReconnectingChannel,
    ServiceTarget,
)
from tamias.features.remote_workers.grpc.connection import FRONTIER, WORKERS, message
from tamias.features.remote_workers.quad_spool import PIECE, PackedQuads, QuadSpool
from tamias.features.remote_workers.wire import DeliveredVisit, Released, WirePolicy, bare, packed, unpacked
from tamias.model.capture import Body, Capture, new_capture_id
from tamias.model.item import Item
from tamias.model.kind import AUXILIARY, kind_of
from tamias.model.lease import Lease, Task
from tamias.permit.availability import KnownRobots
from tamias.permit.robots import Rules
from tamias.settings import Settings

_GET = message("urlfrontier.GetParams")
_INFO = message("urlfrontier.URLInfo")
_PACKED = message("tamias.Packed")
_RECEIPT = message("tamias.Receipt")

LEASE_SECONDS = 20.0
"""A lease that is answered later than this is not waited for: it would be half over."""
DELIVER_SECONDS = 300.0
ITEMS_AT_ONCE = 5000
_FAILED_PRECONDITION = 9
T = TypeVar("T")


class Outdated(Exception):
    """The crawl was told something else since the worker said hello."""


class FrontierClient:
    """The two services of a frontier, through one connection."""

    def __init__(self, channel: ReconnectingChannel, worker: int) -> None:
        self._channel = channel
        self.wait, self.stop, self.close = channel.wait, channel.hang_up, channel.close
        self.worker = worker
        self._offset = 0.0

    def now(self) -> int:
        """The frontier's time, as it said it last, carried on by our own clock."""
        return int(self._offset + time.monotonic() * 1000)

    async def hello(self) -> wire.WirePolicy:
        """Return the policy of the crawl."""
        policy = await self._ask("Hello", wire.WirePolicy, wire.Greeting(self.worker))
        self._offset = policy.now - time.monotonic() * 1000
        return policy

    async def lease(
        self, hosts: int, per_host: int, seconds: float, digest: str
    ) -> tuple[list[Lease], dict[bytes, str]]:
        """Hosts that are lent to us, and what there is forgotten: digests of URLs, with the reasons.

        Raises `NotReached`; `Outdated` if the crawl was told something else.
        """
        wish = _GET(
            max_queues=hosts,
            max_urls_per_queue=per_host,
            delay_requestable=math.ceil(seconds),
            worker=self.worker,
            policy=digest,
        )
        path = f"/{FRONTIER}/GetURLs"
        try:
            answers = await self._channel.try_once(path, [wish.SerializeToString()], LEASE_SECONDS)
        except CallFailed as error:
            if error.code == _FAILED_PRECONDITION:
                raise Outdated(str(error)) from error
            raise
        lent = [unpacked(_INFO.FromString(each).lent, wire.Lent) for each in answers]
        return _leases(lent), {key: why for each in lent for key, why in each.forgotten.items()}

    async def renew(self, leases: Iterable[Lease], seconds: float) -> wire.Renewed:
        """The leases that go on. Raises `NotReached`."""
        held = [bare(lease) for lease in leases]
        return await self._ask("Renew", wire.Renewed, held, seconds, patience=seconds / 3)

    async def report_death(self, worker: int, analysed: Sequence[DocumentPlace]) -> None:
        """A worker of ours died over these documents, if any."""
        await self._ask("Mourn", NoneType, worker, analysed)

    async def read_robots(self, lease: Lease, authority: str) -> KnownRobots | None:
        """Rules that somebody fetched lately."""
        kind: Any = KnownRobots | None
        found: KnownRobots | None = await self._ask("GetRobots", kind, bare(lease), authority)
        return found

    async def write_robots(
        self, lease: Lease, authority: str, rules: Rules, status: int | None, seconds: int
    ) -> KnownRobots:
        """Rules that we fetched, for all workers."""
        return await self._ask("PutRobots", KnownRobots, bare(lease), authority, rules, status, seconds)

    async def read_contexts(self, addresses: list[str], since: int) -> dict[str, bytes | None]:
        """Contexts that somebody tried since then."""
        return await self._ask("GetContexts", dict[str, bytes | None], addresses, since)

    async def is_site_open(self, lease: Lease, crawl: int, authority: str, depth: int) -> bool:
        """Tell if the sitemaps of a place were put in this crawl."""
        return await self._ask("IsSiteOpen", bool, bare(lease), crawl, authority, depth)

    async def open_site(self, lease: Lease, crawl: int, authority: str, depth: int) -> None:
        """Report that the sitemaps of a place are being put."""
        await self._ask("OpenSite", NoneType, bare(lease), crawl, authority, depth)

    async def put(self, items: Sequence[Item]) -> None:
        """Makes items known. May be done twice."""
        for start in range(0, len(items), ITEMS_AT_ONCE):
            await self._ask("PutItems", NoneType, items[start : start + ITEMS_AT_ONCE])

    async def put_links(self, reference: Reference) -> int:
        """The links of a document too large to gather them; what kept others out. May be done twice."""
        return await self._ask("PutLinks", int, with_words(reference))

    async def deliver(self, parcels: Iterable[bytes]) -> dict[str, bool]:
        """Return for each visit id if it was committed. Raises `NotReached`."""
        answers = await self._channel.try_once(f"/{WORKERS}/Deliver", parcels, DELIVER_SECONDS)
        receipts = [_RECEIPT.FromString(each) for each in answers]
        return {each.id: each.committed for each in receipts}

    async def _ask(self, name: str, kind: type[T], *arguments: Any, patience: float | None = None) -> T:
        argument = arguments[0] if len(arguments) == 1 else arguments
        path, sent = f"/{WORKERS}/{name}", [_PACKED(value=packed(argument)).SerializeToString()]
        if patience is None:
            answers = await self._channel.call(path, sent)
        else:
            answers = await self._channel.try_once(path, sent, patience)
        if len(answers) != 1:
            raise NotReached(f"{len(answers)} answers to {name}")
        return unpacked(_PACKED.FromString(answers[0]).value, kind)


def _leases(lent: Sequence[wire.Lent]) -> list[Lease]:
    """The leases with their tasks again."""
    tasks: dict[Lease, list[Task]] = {}
    for each in lent:
        tasks.setdefault(each.lease, []).append(each.task)
    return [msgspec.structs.replace(lease, tasks=tuple(each)) for lease, each in tasks.items()]


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


class RemotePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The instructions of the supervisor to a worker without a database."""

    target: ServiceTarget
    scratch: str
    own: Settings
    """Of this machine: its credentials, and whether it may be sent into its own network."""


class RemoteStore:
    """Carries out `WorkerStore` at a frontier service. What takes many requests is not lent to it."""

    hooks: Sequence[CommitHook] = ()
    waits_for: str | None = None
    limit = RunLimit()  # the service keeps to that of the crawl

    def __init__(
        self,
        client: FrontierClient,
        policy: WirePolicy,
        admission: Admission,
        scratch: Path,
    ) -> None:
        settings = admission.settings
        self.number = client.worker
        self.now = client.now
        self.put, self.put_links = client.put, client.put_links
        self.read_robots, self.write_robots = client.read_robots, client.write_robots
        self.read_contexts = client.read_contexts
        self.is_site_open, self.open_site = client.is_site_open, client.open_site
        self.quads = QuadSpool(scratch / "quads" / str(self.number))
        self._client = client
        self._digest = policy.digest
        self._admission = admission
        self._all_links = settings.strategy.links
        self._deliveries = DeliveryQueue(client, admission.remember)
        self.tally = self._deliveries.tally
        self.release, self.run = self._deliveries.release, self._deliveries.run
        self.end = self._deliveries.end
        self.stop, self.close = client.stop, client.close

    async def open(self) -> None:
        pass

    async def lease(self, hosts: int, per_host: int, seconds: float) -> list[Lease]:
        try:
            leases, forgotten = await self._client.lease(hosts, per_host, seconds, self._digest)
        except NotReached:
            return []
        except Outdated as error:
            raise Replaced from error
        self._admission.forgotten.learn(forgotten)
        return leases

    async def renew(self, leases: Iterable[Lease], seconds: float) -> list[Lease] | None:
        try:
            renewed = await self._client.renew(leases, seconds)
        except NotReached:
            return None
        if renewed.digest != self._digest:
            raise Replaced
        return renewed.leases

    async def commit(self, visit: Visit) -> None:
        """Packs the visit; what it means is settled at the service."""
        if visit.capture.retry_after_ms is not None:
            visit.held.blocked_until = self.now() + visit.capture.retry_after_ms
        links = [] if self._all_links else self._narrow(visit)
        quads = self.quads.take(visit.found.extent)
        await self._deliveries.add(_delivered(visit), quads, links)

    async def maintain(self) -> None:
        pass

    def _narrow(self, visit: Visit) -> list[Item]:
        """Takes out what the filters refuse and what is known; returns what will be known by this visit."""
        admitted = [self._admission.admit(each) for each in visit.references]
        fresh = [items for items, _ in admitted]
        for _, cut in admitted:
            visit.found.cut |= cut
        visit.references = [
            msgspec.structs.replace(reference, references=[item.url for item in items])
            for reference, items in zip(visit.references, fresh, strict=True)
            if items
        ]
        return [item for items in fresh for item in items]


@asynccontextmanager
async def remote_worker(line: bytes) -> AsyncIterator[Worker]:
    """The worker of a plan, once the service has said how it is to behave."""
    plan = msgspec.json.decode(line, type=RemotePlan)
    client = FrontierClient(ReconnectingChannel(plan.target), secrets.randbelow(2**31 - 1) + 1)
    policy = await client.hello()
    check_bounds(policy.settings, plan.own)
    scratch = Path(plan.scratch)
    settings = _with_rules(policy, scratch / "rules" / str(client.worker))
    lists = {"filters.blocklists": plan.own.filters.blocklists}  # the service reads those of the crawl
    settings = overlay(plan.own, options_of(settings) | lists)
    settings = with_own_credentials(settings, plan.own.fetch.credentials)
    admission = Admission(settings, policy.seeds)
    store = RemoteStore(client, policy, admission, scratch)
    visitor = Visitor(stage_context(store, admission, scratch), Parking(None))
    yield Worker(settings, store, visitor)


def _delivered(visit: Visit) -> DeliveredVisit:
    held = visit.held
    granted, held.granted = held.granted, None
    return DeliveredVisit(
        lease=bare(held.lease),
        task=visit.task,
        capture=_without_bytes(visit.capture),
        found=msgspec.structs.replace(visit.found, extent=None),
        references=[with_words(each) for each in visit.references],
        items=visit.items,
        put_off=visit.put_off,
        is_context=visit.is_context,
        context=visit.context,
        delay_ms=held.delay_ms,
        blocked_until=held.blocked_until,
        granted=granted,
        due=visit.due,
        news=dict(held.news),
    )


def _without_bytes(capture: Capture) -> Capture:
    if capture.body is None:
        return capture
    body = Body(size=capture.body.size, sha256=capture.body.sha256)
    return msgspec.structs.replace(capture, body=body)


def _with_rules(policy: WirePolicy, folder: Path) -> Settings:
    """The settings, with the scraping rules in files of ours."""
    places = []
    for number, (name, text) in enumerate(policy.rules):
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        place = folder / f"{number}-{Path(name).name}"
        place.write_text(text, encoding="utf-8")
        places.append(str(place))
    analyse = msgspec.structs.replace(policy.settings.analyse, rules=tuple(places))
    return msgspec.structs.replace(policy.settings, analyse=analyse)

"""A worker's store at a frontier service: what it asks is a call, what it brings is delivered."""

import secrets
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from tamias.crawl.plan.admit import Admission, with_words
from tamias.crawl.plan.fetch_options import with_own_credentials
from tamias.crawl.plan.policy import check_bounds, options_of, overlay
from tamias.crawl.plan.run_limit import RunLimit
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.visit import CommitHook, Visit
from tamias.crawl.store.worker_store import After
from tamias.crawl.visit.visitor import Parking, Visitor
from tamias.crawl.worker.worker import Replaced, Worker, stage_context
from tamias.features.remote_workers.client import FrontierClient, Outdated
from tamias.features.remote_workers.delivery_queue import DeliveryQueue
from tamias.features.remote_workers.grpc.channel import NotReached, ReconnectingChannel, ServiceTarget
from tamias.features.remote_workers.quad_spool import QuadSpool
from tamias.features.remote_workers.wire import DeliveredVisit, WirePolicy, bare
from tamias.model.capture import Body, Capture
from tamias.model.item import Item
from tamias.model.lease import Lease
from tamias.settings import Settings


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

    def release(self, held: HeldLease) -> None:
        self._deliveries.release(held)

    async def commit(self, visit: Visit) -> None:
        """Packs the visit; what it means is settled at the service."""
        if visit.capture.retry_after_ms is not None:
            visit.held.blocked_until = self.now() + visit.capture.retry_after_ms
        links = [] if self._all_links else self._narrow(visit)
        packed = self.quads.take(visit.found.extent)
        await self._deliveries.add(_delivered(visit), packed, links)

    async def run(self, after: After) -> None:
        await self._deliveries.run(after)

    async def maintain(self) -> None:
        pass

    def stop(self) -> None:
        self._client.stop()

    def end(self) -> None:
        self._deliveries.end()

    async def close(self) -> None:
        await self._client.close()

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

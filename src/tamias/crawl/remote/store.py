"""A worker's parts without a database: which desk gets what."""

import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from tamias.crawl.admit import Admission
from tamias.crawl.analysing.extractor import Extractor
from tamias.crawl.analysing.marker import AnalysisMarker
from tamias.crawl.commit.committer import Tally
from tamias.crawl.held_lease import HeldLease
from tamias.crawl.remote.client import Outdated, ServiceClient
from tamias.crawl.remote.delivery_queue import DeliveryQueue
from tamias.crawl.remote.desks import (
    FromAfar,
    NoCoverage,
    NoHarvests,
    RobotsFromAfar,
    Sender,
    ask_service,
)
from tamias.crawl.remote.quad_spool import QuadSpool
from tamias.crawl.remote.reconnecting import NotReached, ReconnectingChannel, Target
from tamias.crawl.remote.visiting import FarVisitor
from tamias.crawl.remote.wire import Policy
from tamias.crawl.request.gate import Gate
from tamias.crawl.request.polite import PoliteFetcher
from tamias.crawl.request.robots import RobotsCache
from tamias.crawl.request.robots_redirects import RobotsRedirects
from tamias.crawl.sandbox.pool import SandboxPool
from tamias.crawl.steps import Steps
from tamias.crawl.visit.contexts import ContextCache, ContextLoader
from tamias.crawl.visit.harvesting import harvesters
from tamias.crawl.visit.reader import Reader
from tamias.crawl.visit.runner import VisitRunner
from tamias.crawl.visit.sitemaps import SitemapDiscovery
from tamias.crawl.visit.usage import UsageSignals
from tamias.crawl.visit.visitor import Allowance
from tamias.crawl.worker.worker import Replaced, Worker
from tamias.crawl.worker_store import After
from tamias.model.errors import ConfigError
from tamias.model.lease import Lease
from tamias.permit.traps import Traps
from tamias.settings import Settings


class RemotePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor tells a worker without a database."""

    target: Target
    scratch: str
    concurrency: int | None = None
    allow_private: bool = False
    """Whether the service may send it to addresses of its own network."""


class RemoteStore:
    """Carries out `WorkerStore` at a frontier service."""

    def __init__(
        self, number: int, line: ReconnectingChannel, service: ServiceClient, policy: Policy, scratch: Path
    ) -> None:
        self.number = number
        self.allowance = Allowance(None)
        self.settings = settings = _with_rules(policy, scratch / "rules" / str(number))
        self._line = line
        self._service = service
        self._digest = policy.digest
        self._shelf = QuadSpool(scratch / "quads" / str(number))
        self._marker = AnalysisMarker(scratch / "analysing", number)
        cache = ContextCache()
        self._sandboxes = SandboxPool(settings, cache) if settings.sandbox.use != "never" else None
        admission = Admission(settings, policy.seeds)
        self._gate = Gate(settings, scratch / "spool" / str(number), admission, service.now)
        self.reach = self._gate.reach
        self._post = DeliveryQueue(service, line, admission.remember)
        runner = self._runner(settings, admission, cache)
        self._visitor = FarVisitor(
            runner,
            admission,
            self._post,
            self._shelf,
            service.now,
            all_links=settings.strategy.links,
        )

    @property
    def tally(self) -> Tally:
        return self._post.tally

    async def open(self) -> None:
        pass

    def parked(self) -> int:
        return 0

    async def commit(self, after: After) -> None:
        await self._post.run(after)

    async def lease(self, hosts: int, per_host: int, seconds: float) -> list[Lease]:
        try:
            return await self._service.lease(hosts, per_host, seconds, self._digest)
        except NotReached:
            return []
        except Outdated as error:
            raise Replaced from error

    async def renew(self, leases: Iterable[Lease], seconds: float) -> list[Lease] | None:
        try:
            renewed = await self._service.renew(leases, seconds)
        except NotReached:
            return None
        if renewed.digest != self._digest:
            raise Replaced
        return renewed.leases

    async def repair(self) -> None:
        pass

    async def count(self) -> None:
        pass

    async def work(self, held: HeldLease) -> None:
        await self._visitor.work(held)

    def release(self, held: HeldLease) -> None:
        self._post.release(held)

    def stop(self) -> None:
        self._marker.close()
        self._line.hang_up()

    def end(self) -> None:
        self._post.end()

    async def close(self) -> None:
        await self._gate.close()
        if self._sandboxes is not None:
            self._sandboxes.close()
        self._line.close()

    def _runner(self, settings: Settings, admission: Admission, cache: ContextCache) -> VisitRunner:
        """All that a visit sees with; what asks a database elsewhere asks the service here."""
        service, now, far = self._service, self._service.now, cast("Any", FromAfar(self._service))
        session = cast("Any", None)
        sender = cast("Any", Sender(service))
        store = cast("Any", RobotsFromAfar(service))
        elsewhere = RobotsRedirects(session, far, admission, sender, now)
        robots = RobotsCache(settings, self._gate, store, ask_service, now, elsewhere)
        extractor = Extractor(settings, cache)
        return VisitRunner(
            asker=PoliteFetcher(self._gate, robots, admission),
            robots=robots,
            reach=self._gate.reach,
            usage=UsageSignals(robots, session, far, probed=settings.seeds.probe),
            sites=SitemapDiscovery(
                settings,
                robots,
                session=session,
                in_database=far,
                admission=admission,
                committer=sender,
                now=now,
            ),
            coverage=cast("Any", NoCoverage()),
            harvest_runner=cast("Any", NoHarvests(frozenset(harvesters()))),
            reader=Reader(
                extractor,
                ContextLoader(cache, session, far, admission, sender, now),
                cast("Any", self._shelf),
                sender,
                self._marker,
                Steps(),
                self._sandboxes,
                always_apart=settings.sandbox.use == "always",
            ),
            warc=None,
            archiver=None,
            retries=settings.crawl.retries,
            traps=Traps(settings.permit.host_visits, settings.permit.monotony, settings.permit.host_budget),
        )


@asynccontextmanager
async def remote_worker(told: bytes) -> AsyncIterator[Worker]:
    """The worker of a plan, once the service has said how it is to behave."""
    plan = msgspec.json.decode(told, type=RemotePlan)
    number = secrets.randbelow(2**31 - 1) + 1
    line = ReconnectingChannel(plan.target)
    service = ServiceClient(line, number)
    policy = await service.hello()
    if policy.settings.permit.allow_private and not plan.allow_private:
        raise ConfigError(
            f"the crawl at {plan.target.address} may ask private addresses; those that this worker can reach "
            "are yours: say --allow-private if it may"
        )
    place = RemoteStore(number, line, service, policy, Path(plan.scratch))
    fetch = place.settings.fetch
    if plan.concurrency is not None:
        fetch = msgspec.structs.replace(fetch, concurrency=plan.concurrency)
    yield Worker(msgspec.structs.replace(place.settings, fetch=fetch), place)


def _with_rules(policy: Policy, folder: Path) -> Settings:
    """The settings, with the scraping rules in files of ours."""
    places = []
    for number, (name, text) in enumerate(policy.rules):
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        place = folder / f"{number}-{Path(name).name}"
        place.write_text(text, encoding="utf-8")
        places.append(str(place))
    analyse = msgspec.structs.replace(policy.settings.analyse, rules=tuple(places))
    return msgspec.structs.replace(policy.settings, analyse=analyse)

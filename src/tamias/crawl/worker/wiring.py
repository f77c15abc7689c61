"""A worker's parts on a database: which desk gets what."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path

import msgspec

from tamias.archive.blobs import BlobWriter
from tamias.archive.blobs.store import choose_store, packs_of
from tamias.crawl.admit import Admission
from tamias.crawl.analysing.extractor import Extractor
from tamias.crawl.analysing.marker import AnalysisMarker
from tamias.crawl.commit.committer import Tally, Visited
from tamias.crawl.commit.office import CommitContext
from tamias.crawl.commit.recover import warc_prefix
from tamias.crawl.disk_space import DiskSpace
from tamias.crawl.held_lease import HeldLease
from tamias.crawl.policy import CRAWL, terms_of
from tamias.crawl.request.gate import Gate
from tamias.crawl.request.options import user_agent
from tamias.crawl.request.polite import PoliteFetcher
from tamias.crawl.request.robots import RobotsCache
from tamias.crawl.request.robots_redirects import RobotsRedirects
from tamias.crawl.revisit.archiver import Archiver
from tamias.crawl.revisit.timetable import policy_from
from tamias.crawl.revisit.watching import Watcher
from tamias.crawl.sandbox.pool import SandboxPool
from tamias.crawl.visit.contexts import ContextCache, ContextLoader
from tamias.crawl.visit.harvesting import HarvestRunner, harvesters
from tamias.crawl.visit.reader import Reader
from tamias.crawl.visit.runner import VisitRunner
from tamias.crawl.visit.sitemaps import SitemapDiscovery
from tamias.crawl.visit.usage import UsageSignals
from tamias.crawl.visit.visitor import Allowance
from tamias.crawl.worker.worker import Worker
from tamias.crawl.worker_store import After
from tamias.database.connect import Database
from tamias.database.roles import Role
from tamias.fetch.options import ACCEPT_RDF
from tamias.filters.blocked import count_blocked
from tamias.model.lease import Lease
from tamias.model.url import host
from tamias.permit.store import RobotsStore
from tamias.permit.traps import Traps
from tamias.settings import Settings
from tamias.sinks.warc import WarcWriter


class WorkerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor tells a worker."""

    data: str
    db: str | None
    settings: Settings
    seeds: tuple[str, ...] = ()
    crawl: int = CRAWL
    share: int | None = None
    """URLs it may visit at most."""
    sinks: tuple[int, ...] = ()
    """Numbers of the sinks outside, which are told of every document."""
    warc: bool = False
    archive: bool = False
    """Whether all that is crawled is kept as versions, not only what is under watch."""


class DatabaseStore:
    """Carries out `WorkerStore` on a database and a data directory."""

    def __init__(self, plan: WorkerPlan, database: Database) -> None:
        self.allowance = Allowance(plan.share)
        self._after: After = lambda _released: None
        self._office = office = CommitContext(
            database,
            Path(plan.data),
            plan.settings,
            plan.seeds,
            terms=terms_of(plan.settings, plan.crawl),
            committed=self._committed,
            sinks=plan.sinks,
            warc=(lambda number: _warc(plan, number)) if plan.warc else None,
            archiver=lambda admission: _archiver(plan, database, admission),
        )
        self.number = office.number
        self._space = DiskSpace(office.data, plan.settings.crawl.room)
        self._marker = AnalysisMarker(office.data / "analysing", office.number)
        (office.data / "spool").mkdir(parents=True, mode=0o700, exist_ok=True)
        spool = office.data / "spool" / str(office.number)
        self._gate = Gate(plan.settings, spool, office.admission, office.now)
        self.reach = self._gate.reach
        cache = ContextCache()
        apart = plan.settings.sandbox.use != "never"
        self._sandboxes = SandboxPool(plan.settings, cache) if apart else None
        runner = _runner(office, self._gate, self._marker, cache, self._sandboxes)
        self._visitor = office.visitor(runner, self.allowance)

    @property
    def tally(self) -> Tally:
        return self._office.committer.tally

    async def open(self) -> None:
        await self._office.in_database(self._office.segments.reserve)
        await self._office.in_database(self._office.recover)

    def parked(self) -> int:
        return len(self._office.parking.documents)

    async def commit(self, after: After) -> None:
        self._after = after
        await self._office.committer.run()

    async def lease(self, hosts: int, per_host: int, seconds: float) -> list[Lease]:
        if (trouble := self._office.parking.trouble) is not None:
            raise trouble
        return await self._office.in_database(self._lease, hosts, per_host, seconds)

    async def renew(self, leases: Iterable[Lease], seconds: float) -> list[Lease] | None:
        await self._office.in_database(self._office.renew_parked)
        return await self._office.in_database(self._office.frontier.renew, leases, seconds)

    async def repair(self) -> None:
        await self._office.in_database(self._office.recover)
        await self._office.in_database(self._office.frontier.sweep)

    async def count(self) -> None:
        await self._office.in_database(self._count_blocked)
        await self._office.in_database(self._office.credit_hosts)

    async def work(self, held: HeldLease) -> None:
        await self._visitor.work(held)

    def release(self, held: HeldLease) -> None:
        self._office.committer.release(held)

    def stop(self) -> None:
        self._office.parking.stop()
        self._marker.close()

    def end(self) -> None:
        self._office.committer.end()

    async def close(self) -> None:
        await self.count()
        await self._gate.close()
        if self._sandboxes is not None:
            self._sandboxes.close()
        self._office.close()

    def _lease(self, hosts: int, per_host: int, seconds: float) -> list[Lease]:
        self._space.check()
        with self._office.steps.step("lease"):
            leases = self._office.frontier.lease(hosts, per_host, seconds)
            self._office.coverage.refresh()
            return leases

    def _count_blocked(self) -> None:
        count_blocked(self._office.session, self._office.admission.blocked_counts())

    def _committed(self, released: Sequence[HeldLease], late: Sequence[Visited]) -> None:
        for visited in late:
            self.allowance.give_back(visited.done.task)
        self._after(released)


def database_worker(told: bytes) -> AbstractAsyncContextManager[Worker]:
    """The worker of a plan."""
    return _database_worker(told)


@asynccontextmanager
async def _database_worker(told: bytes) -> AsyncIterator[Worker]:
    plan = msgspec.json.decode(told, type=WorkerPlan)
    with closing(Database(Path(plan.data), plan.db, role=Role.WORKER)) as database:
        yield Worker(plan.settings, DatabaseStore(plan, database))


def _runner(
    office: CommitContext,
    gate: Gate,
    marker: AnalysisMarker,
    cache: ContextCache,
    sandboxes: SandboxPool | None,
) -> VisitRunner:
    """All that a visit sees with."""
    settings, session, in_database, now = office.settings, office.session, office.in_database, office.now
    elsewhere = RobotsRedirects(session, in_database, office.admission, office.committer, now)
    robots = RobotsCache(settings, gate, RobotsStore(session), in_database, now, elsewhere)
    extractor = Extractor(settings, cache)
    contexts = ContextLoader(cache, session, in_database, office.admission, office.committer, now)
    return VisitRunner(
        asker=PoliteFetcher(gate, robots, office.admission),
        robots=robots,
        reach=gate.reach,
        usage=UsageSignals(robots, session, in_database, probed=settings.seeds.probe),
        sites=SitemapDiscovery(
            settings,
            robots,
            session=session,
            in_database=in_database,
            admission=office.admission,
            committer=office.committer,
            now=now,
        ),
        coverage=office.coverage,
        harvest_runner=_harvest_runner(office, extractor),
        reader=Reader(
            extractor,
            contexts,
            office.segments,
            office.committer,
            marker,
            office.steps,
            sandboxes,
            always_apart=settings.sandbox.use == "always",
        ),
        warc=office.warc,
        archiver=office.archiver,
        retries=settings.crawl.retries,
        traps=Traps(settings.permit.host_visits, settings.permit.monotony, settings.permit.host_budget),
    )


def _harvest_runner(office: CommitContext, extractor: Extractor) -> HarvestRunner:
    return HarvestRunner(
        harvesters(),
        office.data / "harvests",
        session=office.session,
        in_database=office.in_database,
        extractor=extractor,
        segments=office.segments,
        committer=office.committer,
        watcher=Watcher(office.session, office.frontier, office.admission),
        hints=office.hints,
        now=office.now,
    )


def _warc(plan: WorkerPlan, number: int) -> WarcWriter:
    robots = "obey" if plan.settings.permit.robots else "ignore"
    agent = user_agent(plan.settings)
    folder = Path(plan.data) / "warc"
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    return WarcWriter(folder, warc_prefix(number), agent=agent, accept=ACCEPT_RDF, robots=robots)


def _archiver(plan: WorkerPlan, database: Database, admission: Admission) -> Archiver:
    session = database.session()
    choose_store(session, plan.settings.archive.store)
    return Archiver(
        BlobWriter(packs_of(session, Path(plan.data)), session),
        session,
        policy_from(plan.settings.schedule),
        key=admission.key,
        host=host,
        everything=plan.archive,
        now=session.now,
    )

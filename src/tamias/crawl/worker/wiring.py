"""Puts the parts of a worker together, wherever it stands."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path

import msgspec

from tamias.archive.blobs import BlobWriter
from tamias.archive.blobs.store import choose_store, packs_of
from tamias.content.formats import accept_header
from tamias.crawl.analysing.contexts import ContextCache
from tamias.crawl.analysing.extractor import Extractor
from tamias.crawl.analysing.marker import AnalysisMarker
from tamias.crawl.commit.database_store import DatabaseStore, worker_number
from tamias.crawl.commit.recover import warc_prefix
from tamias.crawl.plan.admit import Admission
from tamias.crawl.plan.fetch_options import user_agent
from tamias.crawl.plan.policy import terms_of
from tamias.crawl.request.gate import Gate
from tamias.crawl.request.polite import PoliteFetcher
from tamias.crawl.request.robots import RobotsCache
from tamias.crawl.request.robots_redirects import RobotsRedirects
from tamias.crawl.revisit.archiver import Archiver
from tamias.crawl.revisit.timetable import policy_from
from tamias.crawl.sandbox.pool import SandboxPool
from tamias.crawl.store.worker_store import Sinks, WorkerStore
from tamias.crawl.visit.contexts import ContextLoader
from tamias.crawl.visit.harvesting import HarvestRunner
from tamias.crawl.visit.parking import Parking
from tamias.crawl.visit.reader import Reader
from tamias.crawl.visit.runner import VisitRunner
from tamias.crawl.visit.visitor import Visitor
from tamias.crawl.worker.plan import WorkerPlan
from tamias.crawl.worker.worker import Worker
from tamias.database.connect import Database, Session
from tamias.database.roles import Role
from tamias.sinks.warc.warc_writer import WarcWriter

_DAY_MS = 86_400_000


def visit_runner(store: WorkerStore, admission: Admission, folder: Path) -> VisitRunner:
    """All that a visit takes, on any store; `folder` is for the worker's bodies and notes."""
    settings = admission.settings
    (folder / "spool").mkdir(parents=True, mode=0o700, exist_ok=True)
    gate = Gate(settings, folder / "spool" / str(store.number), admission, store.now)
    robots = RobotsCache(settings, gate, store, RobotsRedirects(store, admission))
    cache = ContextCache()
    extractor = Extractor(settings, cache)
    reader = Reader(
        extractor,
        ContextLoader(cache, store, admission),
        store,
        AnalysisMarker(folder / "analysing", store.number),
        SandboxPool(settings, cache) if settings.sandbox.use != "never" else None,
    )
    harvests = HarvestRunner(extractor, store) if isinstance(store, DatabaseStore) else None
    return VisitRunner(store, PoliteFetcher(gate, robots, admission), reader, admission, harvests)


def database_worker(told: bytes) -> AbstractAsyncContextManager[Worker]:
    """The worker of a plan."""
    return _database_worker(told)


@asynccontextmanager
async def _database_worker(told: bytes) -> AsyncIterator[Worker]:
    plan = msgspec.json.decode(told, type=WorkerPlan)
    settings, data = plan.settings, Path(plan.data)
    with closing(Database(data, plan.db, role=Role.WORKER)) as database:
        admission, number = Admission(settings, plan.seeds), worker_number(database)
        session = database.session()
        store = DatabaseStore(
            database,
            data,
            admission,
            session=session,
            number=number,
            lease_filter=terms_of(settings, plan.crawl),
            sinks=Sinks(
                plan.sinks,
                _warc(plan, number) if plan.warc else None,
                _archiver(plan, database, session, admission),
            ),
        )
        runner = visit_runner(store, admission, data)
        yield Worker(settings, store, Visitor(runner, store, Parking(store), plan.share))


def _warc(plan: WorkerPlan, number: int) -> WarcWriter:
    robots = "obey" if plan.settings.permit.robots else "ignore"
    agent = user_agent(plan.settings)
    folder = Path(plan.data) / "warc"
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    return WarcWriter(folder, warc_prefix(number), agent=agent, accept=accept_header(), robots=robots)


def _archiver(plan: WorkerPlan, database: Database, first: Session, admission: Admission) -> Archiver:
    """It has a session of its own, which connects for its first capture; `first` is asked before that."""
    choose_store(first, plan.settings.archive.store)
    packs = packs_of(first, Path(plan.data), plan.settings.archive.patience)
    packs.probe()  # before anything is leased whose body could not be kept
    session = database.session()
    return Archiver(
        BlobWriter(packs, session),
        session,
        policy_from(plan.settings.schedule),
        key=admission.key,
        everything=plan.archive,
        patience_ms=round(plan.settings.archive.suspicious_days * _DAY_MS),
    )

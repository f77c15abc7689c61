"""Puts the parts of a worker together, wherever it stands."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from functools import partial
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
from tamias.crawl.plan.policy import CrawlRow, terms_of
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
from tamias.crawl.visit.progress_files import ProgressFiles
from tamias.crawl.visit.reader import Reader
from tamias.crawl.visit.runner import VisitRunner
from tamias.crawl.visit.visitor import Visitor
from tamias.crawl.worker.plan import Until, WorkerPlan
from tamias.crawl.worker.worker import Replaced, Worker
from tamias.database.connect import Database, Session
from tamias.database.roles import Role
from tamias.settings import Settings
from tamias.sinks.outbox import sink_numbers
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
    files = ProgressFiles(store) if isinstance(store, DatabaseStore) else None
    reader = Reader(
        extractor,
        ContextLoader(cache, store, admission),
        store,
        AnalysisMarker(folder / "analysing", store.number),
        SandboxPool(settings, cache) if settings.sandbox.use != "never" else None,
        files,
    )
    harvests = HarvestRunner(extractor, files) if files is not None else None
    return VisitRunner(store, PoliteFetcher(gate, robots, admission), reader, admission, harvests)


def database_worker(told: bytes) -> AbstractAsyncContextManager[Worker]:
    """The worker of a plan."""
    return _database_worker(told)


@asynccontextmanager
async def _database_worker(told: bytes) -> AsyncIterator[Worker]:
    plan = msgspec.json.decode(told, type=WorkerPlan)
    data = Path(plan.data)
    with closing(Database(data, plan.db, role=Role.WORKER)) as database:
        session = database.session()
        row = CrawlRow(session, plan.crawl)
        settings = row.settings(plan.settings, bounded=plan.until.is_help)
        sinks = settings.crawl.sinks
        admission, number = Admission(settings, row.near(settings)), worker_number(database)
        store = DatabaseStore(
            database,
            data,
            admission,
            session=session,
            number=number,
            lease_filter=terms_of(settings, plan.crawl),
            sinks=Sinks(
                sink_numbers(session, sinks),
                _warc(settings, data, number) if "warc" in sinks else None,
                _archiver(settings, data, database, session, admission),
            ),
            may_lease=partial(_may_lease, row, plan.until),
        )
        runner = visit_runner(store, admission, data)
        yield Worker(settings, store, Visitor(runner, store, Parking(store), plan.share))


def _may_lease(row: CrawlRow, until: Until) -> bool:
    """Whether the row lets these workers go on. Raises `Replaced` if it says something else than before."""
    if row.has_changed():
        raise Replaced
    return row.is_active or until in (Until.DONE, Until.VISITED)


def _warc(settings: Settings, data: Path, number: int) -> WarcWriter:
    robots = "obey" if settings.permit.robots else "ignore"
    folder = data / "warc"
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    return WarcWriter(
        folder, warc_prefix(number), agent=user_agent(settings), accept=accept_header(), robots=robots
    )


def _archiver(
    settings: Settings, data: Path, database: Database, first: Session, admission: Admission
) -> Archiver:
    """It has a session of its own, which connects for its first capture; `first` is asked before that."""
    choose_store(first, settings.archive.store)
    packs = packs_of(first, data, settings.archive.patience)
    packs.probe()  # before anything is leased whose body could not be kept
    session = database.session()
    return Archiver(
        BlobWriter(packs, session),
        session,
        policy_from(settings.schedule),
        key=admission.key,
        everything="archive" in settings.crawl.sinks,
        patience_ms=round(settings.archive.suspicious_days * _DAY_MS),
    )

"""Puts the parts of a worker together, wherever it stands."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from functools import partial
from math import inf
from pathlib import Path

import msgspec

from tamias.crawl.analysis.contexts import ContextCache
from tamias.crawl.analysis.extractor import Extractor
from tamias.crawl.analysis.marker import AnalysisMarker
from tamias.crawl.commit.database_store import DatabaseStore, MakeHook, worker_number
from tamias.crawl.plan.admit import Admission
from tamias.crawl.plan.policy import CrawlRow, terms_of
from tamias.crawl.plan.run_limit import RunLimit, RunShare
from tamias.crawl.request.gate import Gate
from tamias.crawl.request.robots import PoliteFetcher, RobotsCache, RobotsRedirects
from tamias.crawl.sandbox.pool import SandboxPool
from tamias.crawl.store.hooks import hook_of
from tamias.crawl.store.worker_store import WorkerStore
from tamias.crawl.visit.progress_files import ProgressFiles
from tamias.crawl.visit.reader import ContextLoader, Reader
from tamias.crawl.visit.site import UsageSignals
from tamias.crawl.visit.stages import HostTraps, StageContext
from tamias.crawl.visit.visitor import Parking, Visitor
from tamias.crawl.worker.plan import Until, WorkerPlan, run_limit
from tamias.crawl.worker.worker import Replaced, Worker
from tamias.database.connect import Database
from tamias.database.roles import Role
from tamias.plugins import load, load_all, parts


def stage_context(store: WorkerStore, admission: Admission, folder: Path) -> StageContext:
    """Make all that a visit takes, on any store; `folder` is for the worker's bodies and notes."""
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
        hook_of(store.hooks, ProgressFiles),
    )
    usage = UsageSignals(robots, store, probed=settings.seeds.probe)
    fetcher = PoliteFetcher(gate, robots, admission)
    return StageContext(settings, store, admission, fetcher, reader, HostTraps(settings), usage)


def database_worker(line: bytes) -> AbstractAsyncContextManager[Worker]:
    """The worker of a plan."""
    return _database_worker(line)


@asynccontextmanager
async def _database_worker(line: bytes) -> AsyncIterator[Worker]:
    plan = msgspec.json.decode(line, type=WorkerPlan)
    data = Path(plan.data)
    with closing(Database(data, plan.db, patience=_patience(plan), role=Role.WORKER)) as database:
        session = database.session()
        row = CrawlRow(session, plan.crawl)
        settings = row.settings(plan.settings, bounded=plan.until.is_help)
        admission, number = Admission(settings, row.near(settings)), worker_number(database)
        store = DatabaseStore(
            database,
            data,
            admission,
            session=session,
            number=number,
            lease_filter=terms_of(settings, plan.crawl),
            hooks=make_hooks(settings.crawl.sinks),
            limit=RunLimit(
                RunShare(session, plan.crawl, row.run, number),
                run_limit(settings, plan.crawl, plan.until),
                partial(_may_lease, row, plan.until),
            ),
        )
        visitor = Visitor(stage_context(store, admission, data), Parking(store))
        yield Worker(settings, store, visitor, waits=plan.until.is_help)


def _patience(plan: WorkerPlan) -> float | None:
    """Return the patience with a server that is away: its address is right, for it was used before."""
    return inf if plan.db else None


def make_hooks(sinks: Sequence[str]) -> list[MakeHook]:
    """Return what makes the hooks of a crawl; sinks that it names come last."""
    named = parts("crawl_sinks")
    return [*load_all("hooks").values(), *(load("crawl_sinks", sink) for sink in sinks if sink in named)]


def _may_lease(row: CrawlRow, until: Until) -> bool:
    """Return whether the row lets these workers go on. Raises `Replaced` if it has changed."""
    if row.has_changed():
        raise Replaced
    return row.is_active or until in (Until.DONE, Until.VISITED)

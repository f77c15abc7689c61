"""A worker and its parts: visits side by side in the hosts it has leased, wherever those leases come from.

Its process is told what to do by one JSON line on stdin, and tells its progress on stdout. It works until
stdin closes: the supervisor does that to end it, and the system when that one is killed.
"""

import asyncio
import ctypes
import errno
import gc
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from tamias.archive.blobs.packs import StoreUnavailable
from tamias.crawl.analysis.analysers import ContextCache
from tamias.crawl.analysis.extractor import Extractor
from tamias.crawl.analysis.marker import AnalysisMarker
from tamias.crawl.commit.database_store import DatabaseStore, MakeHook, worker_number
from tamias.crawl.plan.admit import Admission
from tamias.crawl.plan.policy import CrawlRow, RunLimit, RunShare, Until, WorkerPlan, run_limit, terms_of
from tamias.crawl.request.gate import Gate
from tamias.crawl.request.robots import PoliteFetcher, RobotsCache, RobotsRedirects
from tamias.crawl.sandbox.pool import SandboxPool
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.progress import Progress
from tamias.crawl.store.visit import WorkerStore, hook_of
from tamias.crawl.visit.progress_files import ProgressFiles
from tamias.crawl.visit.reader import ContextLoader, Reader
from tamias.crawl.visit.stages import HostTraps, StageContext, UsageSignals
from tamias.crawl.visit.visitor import Parking, Visitor
from tamias.crawl.worker.fork_server import is_fork
from tamias.database.connect import Database
from tamias.database.migrate import migrations
from tamias.database.roles import Role
from tamias.model.errors import DatabaseUnavailable, DiskFull, TamiasError
from tamias.model.lease import Task
from tamias.model.log_lines import configure_from_environment
from tamias.model.process import end_process
from tamias.model.url import host_key
from tamias.plugins import load, load_all, load_own, parts
from tamias.settings import Settings

# A lease survives two renewals that fail.
RENEW_PART = 3
MOST_LEASED = 100
IDLE_SECONDS = 0.25
LOOK_SECONDS = 0.5
MAINTAIN_SECONDS = 5.0
STOP_SECONDS = 1.0


class Replaced(Exception):
    """Raised where a worker is to be replaced by a new one, though nothing is wrong."""


class Worker:
    """Leases hosts, lets visits run side by side, renews, and stops cleanly."""

    def __init__(
        self, settings: Settings, store: WorkerStore, visitor: Visitor, *, waits: bool = False
    ) -> None:
        """`waits`: it goes on when the limit of the run is used up, for the next run."""
        self._waits = waits
        self._lease_seconds = settings.frontier.lease
        self._concurrency = settings.fetch.concurrency
        self._per_round = settings.frontier.per_round
        self._buffer = settings.frontier.buffer
        # Hosts are leased when an eighth of the slots is free: one statement for many costs little more
        # than for one.
        self._least_room = 0 if self._buffer else settings.fetch.concurrency // 8
        self._store = store
        self._visitor = visitor
        self._network = visitor.reach.network
        visitor.reach.is_full = self._is_full
        self._held: set[HeldLease] = set()
        self._chance = asyncio.Event()
        self._stopped = False
        self._trouble: Exception | None = None
        self._tell: Callable[[Progress], None] = lambda _progress: None

    def stop(self) -> None:
        """Let `run` come to its end."""
        self._stopped = True
        self._chance.set()

    async def run(self, tell: Callable[[Progress], None]) -> None:
        """Work until `stop` is called, or the limit of the run is used up and committed."""
        committing = asyncio.create_task(self._store.run(self._after_commit))
        background = [
            asyncio.create_task(work)
            for work in (
                self._renew_regularly(),
                _regularly(MAINTAIN_SECONDS, self._store.maintain),
                self._look_regularly(tell),
            )
        ]
        try:
            await self._store.open()
            await self._lease_until_stopped([committing, *background])
        finally:
            await self._end(committing, background)

    async def _lease_until_stopped(self, background: list[asyncio.Task[None]]) -> None:
        while not self._stopped:
            if (trouble := self._trouble or self._visitor.parking.trouble) is not None:
                raise trouble
            for task in background:
                if task.done():
                    task.result()
            self._chance.clear()
            if self._store.limit.used_up and not self._waits:
                if not self._held and not self._visitor.parking:
                    return
            elif self._network.may_lease() and self._room() > self._least_room and await self._lease_some():
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._chance.wait(), IDLE_SECONDS)

    def _room(self) -> int:
        """Return how many more hosts may be held: by requests at once, and by URLs where these are limited.

        Hosts that have not answered yet have as many slots of their own: dead ones keep out no others.
        """
        answered = sum([held.answered for held in self._held])
        room = self._concurrency - max(answered, len(self._held) - answered)
        if not self._buffer:
            return room
        return min(
            room, (self._buffer - sum(len(held.lease.tasks) for held in self._held)) // self._per_round
        )

    async def _lease_some(self) -> bool:
        """Return whether as many came as were asked for, so that more may be ready."""
        # Before the call: by our clock a lease must not end later than by the database's.
        begun_at = time.monotonic()
        # Without a network, one host is enough to notice when it is back.
        most = 1 if self._network.is_lost else MOST_LEASED
        seconds, wanted = self._lease_seconds, min(self._room(), most)
        leases = await self._store.lease(wanted, self._per_round, seconds)
        leased = {lease.qid for lease in leases}
        # A host that we lease again was lost before: its old visits must send no more requests.
        for held in self._held:
            if held.lease.qid in leased:
                held.give_up()
        for lease in leases:
            held = HeldLease(lease, begun_at, seconds)
            self._held.add(held)
            held.task = asyncio.create_task(self._work(held))
            held.task.add_done_callback(lambda _, held=held: self._let_go(held))  # type: ignore[misc]
        return len(leases) >= wanted

    async def _work(self, held: HeldLease) -> None:
        try:
            await self._visitor.work(held)
        except Exception as error:  # noqa: BLE001 (told by whoever waits for the worker)
            self._trouble = self._trouble or error  # the first is the cause of what follows

    def _is_full(self) -> bool:
        return self._room() <= self._least_room

    def _let_go(self, held: HeldLease) -> None:
        self._held.discard(held)
        if self._visitor.parking:
            self._tell(self.progress())  # before the host is free in the database: the crawl is not over
        # Only the host that passes the threshold wakes the loop, not each one that follows.
        if self._room() == self._least_room + 1 or self._trouble or not self._held:
            self._chance.set()

    def _after_commit(self, released: Sequence[HeldLease], late: Sequence[Task]) -> None:
        """Hosts were given back and links put: there is a chance of work, now and after the hosts' delays."""
        for task in late:
            self._store.limit.give_back(task)
        self._chance.set()
        loop = asyncio.get_running_loop()
        for delay_ms in {held.delay_ms for held in released if held.delay_ms}:
            loop.call_later(delay_ms / 1000, self._chance.set)

    async def _renew_regularly(self) -> None:
        """Renew in good time; a visit whose lease was lost is stopped at once."""
        seconds = self._lease_seconds
        while True:
            await asyncio.sleep(seconds / RENEW_PART)
            holding = {held.lease.qid: held for held in self._held if not held.lost}
            begun_at = time.monotonic()
            await self._visitor.parking.renew()
            renewed = await self._store.renew([held.lease for held in holding.values()], seconds)
            if renewed is None:
                continue
            for lease in renewed:
                holding.pop(lease.qid).renewed(lease, begun_at, seconds)
            for held in holding.values():
                if held in self._held:
                    held.give_up()

    async def _look_regularly(self, tell: Callable[[Progress], None]) -> None:
        """Tell how it goes, and stops what goes on longer than its lease."""
        self._tell = tell
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for held in self._held:
                if held.over and not held.lost:
                    held.give_up()
            tell(self.progress())

    def progress(self) -> Progress:
        """Return what was done so far."""
        return Progress(
            worker=self._store.number,
            tally=self._store.tally,
            in_flight=len(self._held) + len(self._visitor.parking),
            paused=self._network.words or self._store.waits_for,
        )

    async def _end(self, committing: asyncio.Task[None], background: list[asyncio.Task[None]]) -> None:
        """Visit under way are dropped, finished ones committed, hosts given back."""
        # In this order: visits must end before hosts are given back, and both before the last commit.
        self._visitor.stop()
        self._store.stop()
        held = [each for each in self._held if not each.lost]
        tasks = [each.task for each in self._held if each.task is not None]
        for task in [*tasks, *background]:
            task.cancel()
        await asyncio.wait([*tasks, *background], timeout=STOP_SECONDS)
        for each in held:
            self._store.release(each)
        self._store.end()
        await asyncio.wait([committing])
        await self._visitor.close()
        await self._store.close()
        committing.result()


async def _regularly(seconds: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        await work()


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


@asynccontextmanager
async def database_worker(line: bytes) -> AsyncIterator[Worker]:
    """Yield the worker of a plan."""
    plan = msgspec.json.decode(line, type=WorkerPlan)
    data = Path(plan.data)
    patience = inf if plan.db else None  # its address is right: it was used before
    with closing(Database(data, plan.db, patience=patience, role=Role.WORKER)) as database:
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


def make_hooks(sinks: Sequence[str]) -> list[MakeHook]:
    """Return what makes the hooks of a crawl; sinks that it names come last."""
    named = parts("crawl_sinks")
    return [*load_all("hooks").values(), *(load("crawl_sinks", sink) for sink in sinks if sink in named)]


def _may_lease(row: CrawlRow, until: Until) -> bool:
    """Return whether the row lets these workers go on. Raises `Replaced` if it has changed."""
    if row.has_changed():
        raise Replaced
    return row.is_active or until in (Until.DONE, Until.VISITED)


_REPLACE_WORKER = 75
"""The exit code that lets a supervisor start another worker."""

_COLLECTED_AFTER = 20_000
"""Objects made and not yet dropped: visits that wait for their commit are many, and never garbage."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""As in `malloc.h`."""
_MOST_FREE_BYTES = 16 << 20
"""At the end of the heap, beyond which they are given back."""
_OWN_MAPPING_BYTES = 4 << 20
"""From this size on a block is mapped by itself."""

Assemble = Callable[[bytes], AbstractAsyncContextManager[Worker]]
"""Makes a worker of what the supervisor says."""


def run_process(assemble: Assemble) -> NoReturn:
    """Serves forks; each runs a worker on the fastest event loop there is, and ends with its exit code."""
    try:
        import uvloop

        run: Callable[..., int] = uvloop.run
    except ImportError:
        run = asyncio.run
    load_ahead()
    if not is_fork():
        sys.exit(0)
    configure_from_environment()
    end_process(run(_main(assemble)))


def load_ahead() -> None:
    """Load what every fork would load, while the database is ready and nothing is fetched yet.

    Done again it takes no time.
    """
    load_own("filters", "fetchers", "taggers", "sinks")
    host_key("http://any.example/")  # reads the public suffixes
    migrations()


async def _main(assemble: Assemble) -> int:
    loop = asyncio.get_running_loop()
    line = await loop.run_in_executor(None, sys.stdin.buffer.readline)
    if not line:
        return 0
    worker: Worker | None = None
    trouble: TamiasError | None = None
    ours = asyncio.current_task()
    assert ours is not None
    loop.add_reader(sys.stdin.fileno(), _at_end_of_stdin, lambda: worker.stop() if worker else ours.cancel())
    try:
        async with assemble(line) as worker:
            _tell(worker.progress())
            _spare_the_collector()
            _keep_freed_memory()
            await worker.run(_tell)
    except Replaced:
        _tell(worker.progress() if worker else Progress())
        return _REPLACE_WORKER
    except asyncio.CancelledError:
        return 0
    except TamiasError as error:
        trouble = error
    except OSError as error:
        trouble = _refused(error)
    end = worker.progress() if worker else Progress()
    if trouble is not None:
        end.error, end.exit_code = str(trouble), trouble.exit_code
        end.retry_can_help = isinstance(trouble, StoreUnavailable | DatabaseUnavailable)
    _tell(end)
    return end.exit_code


def _spare_the_collector() -> None:
    """Exempt imported and assembled objects from garbage collection; they last as long as the process."""
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER)


def _keep_freed_memory() -> None:
    """Keep freed memory in the process: returning it for each page costs a fifth of the analysis."""
    with suppress(AttributeError):  # a C library that is not GNU's
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_M_MMAP_THRESHOLD, _OWN_MAPPING_BYTES)
        allocator.mallopt(_M_TRIM_THRESHOLD, _MOST_FREE_BYTES)


def _at_end_of_stdin(stop: Callable[[], object]) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop()


def _tell(progress: Progress) -> None:
    with suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), msgspec.json.encode(progress) + b"\n")


def _refused(error: OSError) -> TamiasError:
    place = error.filename or "the worker's folder"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"no disk space left for {place}; free some space and continue")
    return TamiasError(f"cannot work with {place}: {error.strerror or error}")

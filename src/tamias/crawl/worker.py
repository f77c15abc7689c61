"""A worker: one process that does every step for the hosts it has leased.

Told what to do by one JSON line on stdin, it works until stdin closes or its share is done, and reports
its progress as JSON lines on stdout. `python -m tamias.crawl.worker`, started by the supervisor only.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tamias.crawl.admit import Admission, same_url
from tamias.crawl.commit import Committer
from tamias.crawl.fetching import fetchers, user_agent
from tamias.crawl.marker import Marker
from tamias.crawl.pace import Held
from tamias.crawl.recover import recover
from tamias.crawl.robots import RobotsDesk
from tamias.crawl.shelf import Shelf
from tamias.crawl.steps import Steps
from tamias.crawl.study import Study
from tamias.crawl.visit import Visitor
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.errors import TamiasError
from tamias.model.lease import Lease
from tamias.permit.store import RobotsStore
from tamias.settings import Settings

RENEW_PART = 3
TASKS_PER_LEASE = 10
IDLE_SECONDS = 0.25
REPORT_SECONDS = 0.5
SWEEP_SECONDS = 60.0
STOP_SECONDS = 1.0

T = TypeVar("T")


class WorkerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor tells a worker."""

    data: str
    db: str | None
    settings: Settings
    seeds: tuple[str, ...] = ()
    share: int | None = None
    """URLs it may visit at most."""


class Progress(msgspec.Struct, kw_only=True):
    """What a worker has done so far."""

    visited: int = 0
    quads: int = 0
    bytes: int = 0
    in_flight: int = 0
    outcomes: dict[str, int] = msgspec.field(default_factory=dict)
    error: str | None = None
    exit_code: int = 0


class Worker:
    """Leases hosts, lets visits run side by side, renews, and stops cleanly."""

    def __init__(self, plan: WorkerPlan, database: Database) -> None:
        settings = plan.settings
        data = Path(plan.data)
        number = database.embedded.enrol() if database.embedded else os.getpid()
        self._settings = settings
        self._share = plan.share
        self._started = 0
        self._thread = ThreadPoolExecutor(1, "database")
        self._session = database.session()
        names = frozenset(settings.filters.session_names)
        self._frontier = PostgresFrontier(
            self._session,
            same_url=same_url(names),
            worker=number,
            delay_ms=int(settings.fetch.delay * 1000),
        )
        self._recover = lambda: recover(database, self._session, self._frontier, data)
        self._steps = Steps()
        self._marker = Marker(data / "studying", number)
        shelf = Shelf(data / "rdf", number, self._session, lambda work: self._thread.submit(work).result())
        admission = Admission(settings, plan.seeds)
        self._committer = Committer(self._frontier, admission, shelf, self._thread, self._steps)
        agent = user_agent(settings)
        self._fetchers = fetchers(settings, data / "spool" / str(number), self._session.time)
        robots = RobotsDesk(
            settings,
            self._fetchers["http"],
            RobotsStore(self._session),
            self._in_database,
            self._session.time,
        )
        self._visitor = Visitor(
            settings,
            fetchers=self._fetchers,
            robots=robots,
            admission=admission,
            study=Study(settings),
            shelf=shelf,
            committer=self._committer,
            marker=self._marker,
            steps=self._steps,
            now=self._session.time,
            worker=str(number),
            agent=agent,
        )
        self._held: dict[int, Held] = {}
        self._trouble: TamiasError | None = None
        self.progress = Progress()

    async def run(self, stop: asyncio.Event) -> None:
        """Until told to stop, or the share is used up and committed."""
        background = [
            asyncio.create_task(work)
            for work in (
                self._committer.run(),
                self._renew_regularly(),
                self._sweep_regularly(),
                self._report_regularly(),
            )
        ]
        try:
            await self._in_database(self._recover)
            await self._lease_until(stop, background)
        finally:
            await self._end(background)

    async def _lease_until(self, stop: asyncio.Event, background: list[asyncio.Task[None]]) -> None:
        while not stop.is_set():
            if self._trouble is not None:
                raise self._trouble
            for task in background:
                if task.done():
                    task.result()
            got = await self._lease_some() if self._may_start() else 0
            if not self._may_start() and not self._held:
                return
            if not got:
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), IDLE_SECONDS)

    async def _lease_some(self) -> int:
        room = self._settings.fetch.concurrency - len(self._held)
        if room <= self._settings.fetch.concurrency // 8 and self._held:
            await asyncio.sleep(0.01)
            return 1
        asked_at = time.monotonic()
        seconds = self._settings.frontier.lease
        leases = await self._in_database(self._lease, min(room, 100), seconds)
        for lease in leases:
            held = Held(lease, asked_at, seconds)
            self._held[lease.qid] = held
            held.task = asyncio.create_task(self._work(held))
        return len(leases)

    def _lease(self, hosts: int, seconds: float) -> list[Lease]:
        with self._steps.step("lease"):
            return self._frontier.lease(hosts, TASKS_PER_LEASE, seconds)

    async def _work(self, held: Held) -> None:
        try:
            await self._visitor.work(held, self._may_start_one)
        except TamiasError as error:
            self._trouble = error
        finally:
            self._held.pop(held.lease.qid, None)

    def _may_start(self) -> bool:
        return self._share is None or self._started < self._share

    def _may_start_one(self) -> bool:
        if not self._may_start():
            return False
        self._started += 1
        return True

    async def _renew_regularly(self) -> None:
        """Renews in good time; a visit whose lease was lost is stopped at once."""
        seconds = self._settings.frontier.lease
        while True:
            await asyncio.sleep(seconds / RENEW_PART)
            holding = dict(self._held)
            asked_at = time.monotonic()
            renewed = await self._in_database(
                self._frontier.renew, [held.lease for held in holding.values()], seconds
            )
            kept = {lease.qid: lease for lease in renewed}
            for qid, held in holding.items():
                if qid in kept:
                    held.renewed(kept[qid], asked_at, seconds)
                elif held.task is not None and qid in self._held:
                    held.task.cancel()

    async def _sweep_regularly(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self._in_database(self._recover)
            await self._in_database(self._frontier.sweep)

    async def _report_regularly(self) -> None:
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            self.report()

    def report(self) -> None:
        """One line for the supervisor."""
        self.progress.visited = self._committer.committed
        self.progress.in_flight = len(self._held)
        self.progress.outcomes = self._committer.outcomes
        self.progress.quads, self.progress.bytes = self._committer.quads, self._committer.bytes
        with suppress(BrokenPipeError):
            sys.stdout.buffer.write(msgspec.json.encode(self.progress) + b"\n")
            sys.stdout.buffer.flush()

    async def _end(self, background: list[asyncio.Task[None]]) -> None:
        """Visits under way are dropped, finished ones committed, hosts given back."""
        visits = {held: held.task for held in self._held.values() if held.task is not None}
        for task in [*visits.values(), *background]:
            task.cancel()
        await asyncio.wait([*visits.values(), *background], timeout=STOP_SECONDS)
        for held in visits:
            self._committer.release(held)
        with suppress(TamiasError):
            await self._committer.flush()
        for fetcher in set(self._fetchers.values()):
            await fetcher.close()
        self._thread.shutdown(wait=True)
        self._steps.write(self._committer.committed)
        self._marker.close()
        self._session.close()

    async def _in_database(self, work: Callable[..., T], *words: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *words)


async def _main() -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    line = await loop.run_in_executor(None, sys.stdin.buffer.readline)
    plan = msgspec.json.decode(line, type=WorkerPlan)
    loop.add_reader(sys.stdin.fileno(), lambda: stop.set() if not os.read(sys.stdin.fileno(), 4096) else None)
    database = Database(Path(plan.data), plan.db)
    worker = Worker(plan, database)
    try:
        await worker.run(stop)
    except TamiasError as error:
        worker.progress.error, worker.progress.exit_code = str(error), error.exit_code
    finally:
        worker.report()
        database.close()
    return worker.progress.exit_code


def main() -> None:
    """Runs a worker on the fastest event loop there is."""
    try:
        import uvloop

        run: Callable[..., int] = uvloop.run
    except ImportError:
        run = asyncio.run
    sys.exit(run(_main()))


if __name__ == "__main__":
    main()

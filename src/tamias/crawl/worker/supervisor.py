"""Looks after the workers of a crawl: starts and restarts them, tells how it goes, knows when it is over."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from tamias import plugins
from tamias.archive.blobs import BlobReader
from tamias.archive.blobs.store import packs_of
from tamias.crawl.commit.deliver import Deliveries, outside
from tamias.crawl.commit.recover import recover, recover_worker
from tamias.crawl.plan.admit import open_frontier, seed_items
from tamias.crawl.plan.policy import (
    CRAWL,
    CrawlRow,
    RunShare,
    Until,
    WorkerPlan,
    count_failed,
    count_first_visits,
    has_page,
    run_limit,
    terms_of,
)
from tamias.crawl.plan.reopening import Reopened, reopen_widened
from tamias.crawl.plan.seed_outcomes import SeedState, unfetched_seeds
from tamias.crawl.store.disk_space import DiskSpace, Pause
from tamias.crawl.store.progress import CrawlSnapshot, Ended, Progress, snapshot
from tamias.crawl.worker.fork_server import DATABASE_WORKER
from tamias.crawl.worker.process_pool import ProcessPool
from tamias.database.connect import Database
from tamias.database.months import divide_months
from tamias.database.threads import SessionThread
from tamias.frontier.crawls import stop
from tamias.frontier.due import LONGEST_WAIT_MS, count_cut, is_first_visit_due
from tamias.frontier.postgres import deferred
from tamias.model.capture import Outcome
from tamias.model.cut import TRAP
from tamias.model.errors import DatabaseUnavailable, DiskFull
from tamias.model.item import WATCH, Item, Seed
from tamias.model.lease import CrawlStats
from tamias.settings import Settings

T = TypeVar("T")

LOOK_SECONDS = 0.25
LONGEST_LOOK_SECONDS = 15.0
DEFERRED_SECONDS = 5.0
LOOK_PART = 10
"""Of the time, at most a tenth is spent on looking how it goes, if that takes long."""
STOP_SECONDS = 3.0
"""A database that is away is waited for no longer by a crawl that is to end."""
HOUSE_CACHE_BYTES = 16 << 20
"""Of bodies, while they are profiled: each is read once."""

NOTHING = CrawlStats(crawl=0, name="", known=0, open=0, hosts=0, leased=0, next_at=None, next_due=None)
"""Of a crawl that somebody deleted."""


class Upkeep(Protocol):
    """Work of a feature beside the workers; made from a session, frontier, settings, seeds and a crawl."""

    def step(self) -> None:
        """Do some of it, quickly: others wait for the same session."""
        ...


class Supervisor:
    """The supervisor of a `tamias crawl`; several may run on the same data and share the work."""

    def __init__(
        self,
        data: Path,
        db: str | None,
        settings: Settings,
        *,
        until: Until = Until.DONE,
        crawl: int = CRAWL,
    ) -> None:
        """`settings` are those of this machine; what the crawl may do stands in its row."""
        self._until = until
        self._crawl = crawl
        self._data = data.absolute()
        self._own = settings
        self._database = Database(data, db, buckets=settings.frontier.buckets)
        self._session = self._database.session()
        self._thread = SessionThread(self._session)
        plan = WorkerPlan(data=str(self._data), db=db, settings=settings, crawl=crawl, until=until)
        self._begun = time.monotonic()
        self._begun_at = self._session.now()
        self._ended: Ended | None = None
        self._configure()
        self._deliveries = self._open_deliveries()
        longest = self._settings.crawl.max_wait if until in (Until.DONE, Until.VISITED) else None
        self._pause = Pause(DiskSpace(self._data, settings.crawl.room), longest)
        count = settings.crawl.workers or os.cpu_count() or 1
        self._pool = ProcessPool(
            DATABASE_WORKER,
            plan,
            self._put_right,
            self._pause,
            count=min(count, run_limit(self._settings, crawl, until) or count),
        )
        self._deferred: tuple[str, ...] = ()
        self._deferred_at = float("-inf")
        self._seeds: list[Item] = []
        self.undelivered = 0
        """Documents that the sinks outside still wait for."""

    def _configure(self) -> None:
        """Take over what the row of the crawl says."""
        self._row = CrawlRow(self._session, self._crawl)
        settings = self._settings = self._row.settings(self._own, bounded=self._until.is_help)
        self._frontier = open_frontier(self._session, settings, lease_filter=terms_of(settings, self._crawl))
        near = self._row.near(settings)
        self._upkeep: list[Upkeep] = [
            make(self._session, self._frontier, settings, near, self._crawl)
            for make in plugins.load_all("upkeep").values()
        ]
        self._continuing = None
        if settings.crawl.continuous and self._until is not Until.VISITED:
            supervision = plugins.load("continuous", "supervision")
            self._continuing = supervision(self._session, self._frontier, settings, self._crawl)

    def _open_deliveries(self) -> Deliveries:
        """Return what delivers to the sinks of the crawl. A helper has no part in them."""
        named = () if self._until.is_help else self._settings.crawl.sinks
        buckets = self._frontier.buckets
        sinks, compress = outside(self._session, named, buckets), self._settings.sinks.gzip
        return Deliveries(self._database, self._data, sinks, buckets, compress=compress)

    def put_seeds(self, seeds: Sequence[Seed]) -> int:
        """Make the seeds known, and put right what an earlier run left. Return how many were new."""
        items = self._seeds = seed_items(self._settings, seeds, self._crawl)
        recover(self._database, self._session, self._frontier, self._data)
        divide_months(self._session)
        self._frontier.resume_deferred()
        if self._continuing is not None:
            self._continuing.open()
        return self._frontier.put(items)

    def reopen_widened(self) -> list[Reopened]:
        """Open what the crawl allows now, and did not allow before."""
        return reopen_widened(self._session, self._frontier, self._crawl)

    async def run_until_signal(self, show: Callable[[CrawlSnapshot], None]) -> CrawlSnapshot:
        """Call `run` in a process that does nothing else."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        return await self.run(show)

    async def run(self, show: Callable[[CrawlSnapshot], None]) -> CrawlSnapshot:
        """Crawl until nothing is left, a limit is reached, or somebody says stop."""
        self._deliveries.start()
        figures = await self._thread.run(self._figures)
        self._ended = self._ended or self._verdict(figures)
        if self._ended is None:
            await self._run_workers(show, figures)
            figures = await self._ask(self._figures, figures)
        if (trouble := self._pool.trouble()) is not None:
            raise trouble
        self._ended = self._ended or (Ended.LIMIT if figures.open else Ended.DONE)
        if self._is_stop(self._ended):
            await self._thread.run(stop, self._session, self._crawl)
        await self._wait_for_deliveries()
        self._deferred = await self._ask(self._read_deferred, ())
        if self._until is Until.VISITED and self._ended is Ended.DONE:
            await self._thread.run(self._keep_house)
        end = self._snapshot(figures)
        if self._until is not Until.DONE or self._ended is not Ended.DONE:
            return end
        trapped = await self._thread.run(count_cut, self._session, self._frontier.buckets, self._crawl, TRAP)
        return msgspec.structs.replace(end, trapped=trapped)

    def _is_stop(self, ended: Ended) -> bool:
        """Return whether the user ended the crawl, so that nobody may go on with it."""
        if self._until is Until.SERVED:
            return ended is Ended.LIMIT
        return self._until is Until.DONE and ended is not Ended.DONE

    def _read_deferred(self) -> tuple[str, ...]:
        found = deferred(self._session, self._frontier.buckets, self._crawl)
        return tuple(f"{each.authority}: {each.reason}" for each in found)

    def _keep_house(self) -> None:
        """Run the regular work for the whole archive, after its resources were visited."""
        from tamias.crawl.revisit.timetable import keep_house

        packs = packs_of(self._session, self._data, self._settings.crawl.max_wait)
        keep_house(self._session, BlobReader(packs, self._session, HOUSE_CACHE_BYTES), self._settings)

    async def _wait_for_deliveries(self) -> None:
        """Wait until the sinks have everything, but not longer than `--max-wait`."""
        deadline = time.monotonic() + self._settings.crawl.max_wait
        while self._ended is not Ended.INTERRUPTED:
            if self._deliveries.trouble is not None:
                raise self._deliveries.trouble
            self.undelivered = await self._thread.run(self._deliveries.waiting, self._session)
            if not self.undelivered:
                return
            if time.monotonic() > deadline:
                self._ended = Ended.WAITING
                return
            await asyncio.sleep(LOOK_SECONDS)

    def refused_deliveries(self) -> list[str]:
        """Documents that a sink does not take, and why."""
        return self._deliveries.refused(self._session)

    def failed_for_good(self) -> int:
        """Return how many URLs of the crawl failed and will not be tried again."""
        return count_failed(self._session, self._crawl)

    def has_page(self, since: int) -> bool:
        """Return whether the crawl has read an HTML page since a time."""
        return has_page(self._session, self._crawl, since)

    def unfetched_seeds(self, end: CrawlSnapshot) -> list[SeedState]:
        """Seeds of this run, or of the crawl if it was given none, when not one could be fetched."""
        others = not {Outcome.OK.word, Outcome.UNCHANGED.word}.isdisjoint(end.outcomes)
        buckets = self._frontier.buckets
        return unfetched_seeds(self._session, buckets, self._crawl, self._seeds, others_fetched=others)

    def close(self) -> None:
        """Let go of the database."""
        self._deliveries.close()
        self._thread.close()
        self._database.close()

    async def _run_workers(self, show: Callable[[CrawlSnapshot], None], figures: CrawlStats) -> None:
        working = asyncio.create_task(self._pool.run())
        pause = 0.0
        try:
            while self._ended is None and not working.done():
                await self._pool.news(working, min(LONGEST_LOOK_SECONDS, max(LOOK_SECONDS, pause)))
                begun = time.monotonic()
                figures = await self._ask(self._figures, figures)
                await self._note_deferred(figures)
                pause = LOOK_PART * (time.monotonic() - begun)
                self._ended = self._ended or self._verdict(figures)
                show(self._snapshot(figures))
        finally:
            self._pool.stop()
            await working

    async def _note_deferred(self, figures: CrawlStats) -> None:
        """Update the list of hosts that are waited for while nothing is under way."""
        if not self._is_idle(figures):
            self._deferred = ()
        elif time.monotonic() - self._deferred_at > DEFERRED_SECONDS and self._pause.why is None:
            self._deferred = await self._ask(self._read_deferred, self._deferred)
            self._deferred_at = time.monotonic()

    async def _ask(self, work: Callable[[], T], otherwise: T) -> T:
        """Return what is found in the database; it may be away while the disk is full, or at the end."""
        try:
            return await self._thread.run(work)
        except (DiskFull, DatabaseUnavailable):
            if self._pause.why is None and self._ended is not Ended.INTERRUPTED:
                raise
            return otherwise

    def stop(self) -> None:
        """Let `run` come to its end."""
        self._ended = Ended.INTERRUPTED
        self._database.outage.give_up(STOP_SECONDS)
        self._pool.stop()

    def _figures(self) -> CrawlStats:
        if self._row.has_changed():
            self._configure()
            self._deliveries.close()
            self._deliveries = self._open_deliveries()
            self._deliveries.start()
            if self._continuing is not None:
                self._continuing.open()
        for each in self._upkeep:
            each.step()
        if self._continuing is not None:
            self._continuing.step()
        found = (each for each in self._frontier.figures().crawls if each.crawl == self._crawl)
        figures = next(found, NOTHING)
        # What a portal offers since a moment ago is still to be visited.
        visited = self._until is Until.VISITED and self._rests(figures)
        if visited and is_first_visit_due(self._session, self._frontier, WATCH):
            figures = msgspec.structs.replace(figures, next_due=self._begun_at)
        return figures

    def _verdict(self, figures: CrawlStats) -> Ended | None:
        if self._until is Until.STOPPED:
            return None
        if self._continuing is not None and figures.open > 0:
            return Ended.LIMIT if self._is_over_time() else None
        if figures.open <= 0 or (self._until is Until.VISITED and self._rests(figures)):
            return Ended.DONE
        if self._is_over_time():
            return Ended.LIMIT
        if self._until is Until.SERVED:
            return None if self._row.is_active else Ended.PAUSED
        if not self._is_idle(figures):
            return None
        if figures.next_at is None:
            return Ended.PAUSED
        wait = self._settings.crawl.max_wait * 1000
        return Ended.WAITING if figures.next_at - self._session.time() > wait else None

    def _is_over_time(self) -> bool:
        limit = self._settings.crawl.max_time
        return limit is not None and time.monotonic() - self._begun > limit

    def _is_idle(self, figures: CrawlStats) -> bool:
        # Hosts may have been given back before their documents were read. A lease for days is nobody's.
        waits_days = (figures.next_at or 0) - self._session.time() > LONGEST_WAIT_MS
        return (waits_days or not figures.leased) and not any(each.in_flight for each in self._pool.working)

    def _rests(self, figures: CrawlStats) -> bool:
        """Return whether nothing is under way, nor left of what was due when it began."""
        return self._is_idle(figures) and (figures.next_due is None or figures.next_due > self._begun_at)

    async def _put_right(self, dead: Progress) -> None:
        await self._thread.run(self._recover, dead.worker)

    def _recover(self, worker: int) -> None:
        """Put right what a dead worker left, and give back what it had taken of the limit."""
        recover(self._database, self._session, self._frontier, self._data)
        if self._database.embedded is None and worker:
            recover_worker(self._session, self._frontier, self._data, worker)
        if (most := run_limit(self._settings, self._crawl, self._until)) is not None:
            visited = count_first_visits(self._session, worker)
            share = RunShare(self._session, self._crawl, self._row.run, worker)
            share.change(most, lambda taken, _left: min(0, visited - taken))

    def _snapshot(self, figures: CrawlStats) -> CrawlSnapshot:
        waiting = self._ended is not None or self._is_idle(figures)
        now = snapshot(self._pool.progress, self._pool.working)
        return msgspec.structs.replace(
            now,
            seconds=time.monotonic() - self._begun,
            known=figures.known,
            open=figures.open,
            hosts=figures.hosts,
            ended=self._ended,
            paused=self._pause.why or now.paused,
            deferred=self._deferred,
            next_in=max(0.0, figures.next_at - self._session.time()) / 1000
            if waiting and figures.next_at
            else None,
        )

"""Looks after the workers of a crawl: starts and restarts them, tells how it goes, knows when it is over."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from tamias.archive.blobs import BlobReader
from tamias.archive.blobs.store import packs_of
from tamias.crawl.admit import same_url, seed_items
from tamias.crawl.archiving.housekeeping import keep_house
from tamias.crawl.archiving.keeping import WATCH
from tamias.crawl.commits.commit import PUT_BATCH
from tamias.crawl.commits.deliver import Deliveries, outside
from tamias.crawl.commits.recover import recover, recover_worker
from tamias.crawl.policy import CRAWL, count_failed, count_first_visits
from tamias.crawl.worker import Progress, WorkerPlan
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.errors import TamiasError
from tamias.model.figures import CrawlFigures
from tamias.model.seed import Seed
from tamias.settings import Settings

LOOK_SECONDS = 0.25
LONGEST_LOOK_SECONDS = 3.0
LOOK_PART = 10
"""Of the time, at most a tenth is spent on looking how it goes, if that takes long."""
STOP_SECONDS = 1.5
DEATH_SECONDS = 0.05
"""Longer from death to death: whatever kills workers may be asked for by each of them."""
MOST_DEATHS = 100
"""Of workers in one run without any page between them: more is a fault of ours, not of a document."""

T = TypeVar("T")
Stopping = asyncio.Task[Literal[True]]
"""Done when the crawl is to stop."""


class Ended(StrEnum):
    """Why a crawl ended."""

    DONE = "done"
    LIMIT = "limit"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """How the crawl stands."""

    seconds: float
    visited: int
    """URLs done with in this run."""
    put_off: int
    """Attempts that are repeated later."""
    outcomes: dict[str, int]
    quads: int
    bytes: int
    in_flight: int
    known: int
    open: int
    hosts: int
    workers: int
    ended: Ended | None = None
    next_in: float | None = None
    """Seconds until the next host can be asked, when the crawl ended before that."""


class Until(StrEnum):
    """How long a supervisor goes on."""

    DONE = "done"
    """Until the crawl has nothing left."""
    VISITED = "visited"
    """Until no resource under watch is due."""
    STOPPED = "stopped"
    """Until somebody says stop."""


class Supervisor:
    """One `tamias crawl`. Several may run on the same data; they share the work."""

    def __init__(
        self,
        data: Path,
        db: str | None,
        settings: Settings,
        seeds: Sequence[str],
        sinks: Sequence[str] = (),
        *,
        until: Until = Until.DONE,
    ) -> None:
        """`sinks` are as users name them: `warc`, `turtle-files:FOLDER`, `sparql:URL`."""
        self._until = until
        self._data = data.absolute()
        self._settings = settings
        self._database = Database(data, db, buckets=settings.frontier.buckets)
        self._session = self._database.session()
        self._thread = ThreadPoolExecutor(1, "database")
        names = frozenset(settings.filters.session_names)
        delay_ms = int(settings.fetch.delay * 1000)
        self._frontier = PostgresFrontier(self._session, same_url=same_url(names), delay_ms=delay_ms)
        near = () if settings.filters.scope == "any" else tuple(seeds)
        buckets = self._frontier.buckets
        named = outside(self._session, sinks, buckets)
        compress = settings.sinks.gzip
        self._deliveries = Deliveries(self._database, self._data, named, buckets, compress=compress)
        self._plan = WorkerPlan(
            data=str(self._data),
            db=db,
            settings=settings,
            seeds=near,
            sinks=tuple(sink.number for sink in named),
            warc="warc" in sinks,
            archive="archive" in sinks,
        )
        self._count = settings.crawl.workers or os.cpu_count() or 1
        self._progress: dict[int, Progress] = {}
        self._finished: list[Progress] = []
        self._begun = time.monotonic()
        self._begun_at = self._session.now()
        self._stop = asyncio.Event()
        self._ended: Ended | None = None
        self._error: Progress | None = None
        self._deaths = 0
        self.undelivered = 0
        """Documents that the sinks outside still wait for."""

    def put_seeds(self, seeds: Sequence[Seed]) -> int:
        """Makes the seeds known, and puts right what an earlier run left. Returns how many were new."""
        items = seed_items(self._settings, seeds, CRAWL)
        recover(self._database, self._session, self._frontier, self._data)
        batches = (items[start : start + PUT_BATCH] for start in range(0, len(items), PUT_BATCH))
        return sum(self._frontier.put(batch).new for batch in batches)

    async def run(self, show: Callable[[Snapshot], None]) -> Snapshot:
        """Crawls until nothing is left, a limit is reached, or somebody says stop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupt)
        self._deliveries.start()
        figures = await self._in_database(self._figures)
        self._ended = self._ended or self._verdict(figures)
        if self._ended is None:
            await self._run_workers(show, asyncio.create_task(self._stop.wait()))
            figures = await self._in_database(self._figures)
        if self._error is not None:
            raise _told(self._error)
        self._ended = self._ended or (Ended.LIMIT if figures.open else Ended.DONE)
        await self._wait_for_deliveries()
        if self._until is Until.VISITED and self._ended is Ended.DONE:
            await self._in_database(self._keep_house)
        return self._snapshot(figures)

    def _keep_house(self) -> None:
        """For the archive as a whole, after its resources were visited."""
        blobs = BlobReader(packs_of(self._session, self._data), self._session)
        keep_house(self._session, blobs, self._settings)

    async def _wait_for_deliveries(self) -> None:
        """What is committed reaches the sinks, unless they stay away for longer than `--max-wait`."""
        deadline = time.monotonic() + self._settings.crawl.max_wait
        while self._ended is not Ended.INTERRUPTED:
            if self._deliveries.trouble is not None:
                raise self._deliveries.trouble
            self.undelivered = await self._in_database(self._deliveries.waiting, self._session)
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
        """How many URLs of the crawl failed and will not be tried again, in this run or an earlier one."""
        return count_failed(self._session)

    def close(self) -> None:
        """Lets go of the database."""
        self._deliveries.close()
        self._thread.shutdown()
        self._session.close()
        self._database.close()

    async def _run_workers(self, show: Callable[[Snapshot], None], stopping: Stopping) -> None:
        keeping = asyncio.gather(*(self._keep_worker(index, stopping) for index in range(self._count)))
        either: list[asyncio.Future[Any]] = [keeping, stopping]
        pause = LOOK_SECONDS
        try:
            while self._ended is None and not keeping.done():
                await asyncio.wait(either, timeout=pause, return_when="FIRST_COMPLETED")
                begun = time.monotonic()
                figures = await self._in_database(self._figures)
                pause = _pause(time.monotonic() - begun)
                self._ended = self._ended or self._verdict(figures)
                show(self._snapshot(figures))
        finally:
            self._stop.set()
            await keeping

    def _interrupt(self) -> None:
        self._ended = Ended.INTERRUPTED
        self._stop.set()

    def _figures(self) -> CrawlFigures:
        crawl = CRAWL if self._until is Until.DONE else WATCH
        return next(each for each in self._frontier.figures().crawls if each.crawl == crawl)

    def _verdict(self, figures: CrawlFigures) -> Ended | None:
        if self._until is Until.STOPPED:
            return None
        if figures.open <= 0 or (self._until is Until.VISITED and self._rests(figures)):
            return Ended.DONE
        limit = self._settings.crawl.max_time
        if limit is not None and time.monotonic() - self._begun > limit:
            return Ended.LIMIT
        wait = self._settings.crawl.max_wait * 1000
        if (
            not figures.leased
            and figures.next_at is not None
            and figures.next_at - self._session.time() > wait
        ):
            return Ended.WAITING
        return None

    def _rests(self, figures: CrawlFigures) -> bool:
        """Whether nothing is under way, nor left of what was due when it began."""
        return not figures.leased and (figures.next_due is None or figures.next_due > self._begun_at)

    async def _keep_worker(self, index: int, stopping: Stopping) -> None:
        """Runs one worker after another until the crawl is over; what a dead one left is put right."""
        share = self._share_of(index)
        while not self._stop.is_set() and share != 0:
            code = await self._one_worker(index, share, stopping)
            progress = self._progress.pop(index, Progress())
            self._finished.append(progress)
            if progress.error is not None:
                self._fail(progress)
            if code == 0 or self._stop.is_set():
                return
            self._count_death(progress)
            await self._in_database(self._put_right, progress.worker)
            await asyncio.wait([stopping], timeout=self._deaths * DEATH_SECONDS)
            if share is not None:
                share -= await self._in_database(count_first_visits, self._session, progress.worker)

    def _share_of(self, index: int) -> int | None:
        """A limit on URLs is shared out among the workers."""
        limit = self._settings.crawl.max_urls
        return None if limit is None else limit // self._count + (index < limit % self._count)

    def _count_death(self, progress: Progress) -> None:
        self._deaths = 1 if progress.tally.visited else self._deaths + 1
        if self._deaths > MOST_DEATHS:
            self._fail(
                Progress(error=f"{MOST_DEATHS} workers died in a row; see what they said", exit_code=1)
            )

    def _fail(self, progress: Progress) -> None:
        self._error = self._error or progress
        self._stop.set()

    def _put_right(self, worker: int) -> None:
        recover(self._database, self._session, self._frontier, self._data)
        if self._database.embedded is None and worker:
            recover_worker(self._session, self._frontier, self._data, worker)

    async def _one_worker(self, index: int, share: int | None, stopping: Stopping) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tamias.crawl.worker",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(msgspec.structs.replace(self._plan, share=share)) + b"\n")
        reading = asyncio.create_task(self._read(index, process.stdout))
        await asyncio.wait([reading, stopping], return_when="FIRST_COMPLETED")
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), None if reading.done() else STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
        await reading
        return process.returncode or 0

    async def _read(self, index: int, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            with suppress(msgspec.DecodeError):
                self._progress[index] = msgspec.json.decode(line, type=Progress)

    async def _in_database(self, work: Callable[..., T], *words: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *words)

    def _snapshot(self, figures: CrawlFigures) -> Snapshot:
        all_progress = [*self._finished, *self._progress.values()]
        outcomes: dict[str, int] = {}
        for each in all_progress:
            for word, count in each.tally.outcomes.items():
                outcomes[word] = outcomes.get(word, 0) + count
        waiting = self._ended is not None and figures.next_at is not None
        return Snapshot(
            seconds=time.monotonic() - self._begun,
            visited=sum(each.tally.visited for each in all_progress),
            put_off=sum(each.tally.put_off for each in all_progress),
            outcomes=outcomes,
            quads=sum(each.tally.quads for each in all_progress),
            bytes=sum(each.tally.bytes for each in all_progress),
            in_flight=sum(each.in_flight for each in self._progress.values()),
            known=figures.known,
            open=figures.open,
            hosts=figures.hosts,
            workers=len(self._progress),
            ended=self._ended,
            next_in=(figures.next_at - self._session.time()) / 1000 if waiting and figures.next_at else None,
        )


def _pause(cost: float) -> float:
    return min(LONGEST_LOOK_SECONDS, max(LOOK_SECONDS, LOOK_PART * cost))


def _told(progress: Progress) -> TamiasError:
    error = TamiasError(progress.error or "a worker failed")
    error.exit_code = progress.exit_code or 1  # type: ignore[misc]
    return error

"""Looks after the workers of a crawl: starts and restarts them, tells how it goes, knows when it is over."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from tamias.crawl.admit import Admission, same_url, seed_url
from tamias.crawl.recover import recover
from tamias.crawl.worker import Progress, WorkerPlan
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.errors import TamiasError, UsageError
from tamias.model.figures import CrawlFigures
from tamias.settings import Settings

CRAWL = 1
LOOK_SECONDS = 0.5
STOP_SECONDS = 1.5
MOST_DEATHS = 100
"""Of workers in one run without any page between them: more is a fault of ours, not of a document."""


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


class Supervisor:
    """One `tamias crawl`. Several may run on the same data; they share the work."""

    def __init__(self, data: Path, db: str | None, settings: Settings, seeds: Sequence[str]) -> None:
        self._data = data.absolute()
        self._settings = settings
        self._database = Database(data, db, buckets=settings.frontier.buckets)
        self._session = self._database.session()
        names = frozenset(settings.filters.session_names)
        delay_ms = int(settings.fetch.delay * 1000)
        self._frontier = PostgresFrontier(self._session, same_url=same_url(names), delay_ms=delay_ms)
        self._plan = WorkerPlan(data=str(self._data), db=db, settings=settings, seeds=tuple(seeds))
        self._count = settings.crawl.workers or os.cpu_count() or 1
        self._progress: dict[int, Progress] = {}
        self._finished: list[Progress] = []
        self._begun = time.monotonic()
        self._stop = asyncio.Event()
        self._ended: Ended | None = None
        self._error: Progress | None = None
        self._deaths = 0

    def put_seeds(self, seeds: Sequence[str]) -> int:
        """Makes the seeds known; a seed that a filter refuses is an error, as nobody meant that."""
        admission = Admission(self._settings, seeds)
        items = [admission.item(seed_url(seed), 0, CRAWL) for seed in seeds]
        for item in items:
            reason = admission.refusal(item.url, 0)
            if reason is not None:
                raise UsageError(f"the seed {item.url} is kept out: {reason}")
        recover(self._database, self._session, self._frontier, self._data)
        return self._frontier.put(items).new

    async def run(self, show: Callable[[Snapshot], None]) -> Snapshot:
        """Crawls until nothing is left, a limit is reached, or somebody says stop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupt)
        keepers = [asyncio.create_task(self._keep_worker(index)) for index in range(self._count)]
        try:
            while self._ended is None and not all(task.done() for task in keepers):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), LOOK_SECONDS)
                figures = await asyncio.to_thread(self._figures)
                self._ended = self._ended or self._verdict(figures)
                show(self._snapshot(figures))
        finally:
            self._stop.set()
            await asyncio.gather(*keepers)
        if self._error is not None:
            raise _told(self._error)
        figures = await asyncio.to_thread(self._figures)
        self._ended = self._ended or (Ended.LIMIT if figures.open else Ended.DONE)
        return self._snapshot(figures)

    def close(self) -> None:
        """Lets go of the database."""
        self._session.close()
        self._database.close()

    def _interrupt(self) -> None:
        self._ended = Ended.INTERRUPTED
        self._stop.set()

    def _figures(self) -> CrawlFigures:
        return next(each for each in self._frontier.figures().crawls if each.crawl == CRAWL)

    def _verdict(self, figures: CrawlFigures) -> Ended | None:
        limit = self._settings.crawl.max_time
        if limit is not None and time.monotonic() - self._begun > limit:
            return Ended.LIMIT
        if figures.open == 0:
            return Ended.DONE
        wait = self._settings.crawl.max_wait * 1000
        if (
            not figures.leased
            and figures.next_at is not None
            and figures.next_at - self._session.time() > wait
        ):
            return Ended.WAITING
        return None

    async def _keep_worker(self, index: int) -> None:
        """Runs one worker after another until the crawl is over; what a dead one left is put right."""
        while not self._stop.is_set():
            code = await self._one_worker(index)
            progress = self._progress.pop(index, Progress())
            self._finished.append(progress)
            if progress.error is not None:
                self._error = progress
                self._stop.set()
            if code == 0 or self._stop.is_set():
                return
            self._deaths = 1 if progress.visited else self._deaths + 1
            if self._deaths > MOST_DEATHS:
                self._error = Progress(
                    error="workers keep dying; run with -v and look at their last words", exit_code=1
                )
                self._stop.set()
            await asyncio.to_thread(recover, self._database, self._session, self._frontier, self._data)

    async def _one_worker(self, index: int) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tamias.crawl.worker",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(self._plan_of(index)) + b"\n")
        reading = asyncio.create_task(self._read(index, process.stdout))
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait([reading, stopping], return_when=asyncio.FIRST_COMPLETED)
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), None if reading.done() else STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
        stopping.cancel()
        await reading
        return process.returncode or 0

    def _plan_of(self, index: int) -> WorkerPlan:
        """Each worker has its share of a limit on URLs, less what those before it have used."""
        limit = self._settings.crawl.max_urls
        if limit is None:
            return self._plan
        used = sum(each.visited for each in self._finished) + sum(
            each.visited for each in self._progress.values()
        )
        left = max(0, limit - used)
        running = max(1, self._count - len(self._finished))
        share = left // running + (index < left % running)
        return msgspec.structs.replace(self._plan, share=share)

    async def _read(self, index: int, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            with suppress(msgspec.DecodeError):
                self._progress[index] = msgspec.json.decode(line, type=Progress)

    def _snapshot(self, figures: CrawlFigures) -> Snapshot:
        all_progress = [*self._finished, *self._progress.values()]
        outcomes: dict[str, int] = {}
        for each in all_progress:
            for word, count in each.outcomes.items():
                outcomes[word] = outcomes.get(word, 0) + count
        waiting = self._ended is not None and figures.next_at is not None
        return Snapshot(
            seconds=time.monotonic() - self._begun,
            visited=sum(each.visited for each in all_progress),
            outcomes=outcomes,
            quads=sum(each.quads for each in all_progress),
            bytes=sum(each.bytes for each in all_progress),
            in_flight=sum(each.in_flight for each in self._progress.values()),
            known=figures.known,
            open=figures.open,
            hosts=figures.hosts,
            workers=len(self._progress),
            ended=self._ended,
            next_in=(figures.next_at - self._session.time()) / 1000 if waiting and figures.next_at else None,
        )


def _told(progress: Progress) -> TamiasError:
    error = TamiasError(progress.error or "a worker failed")
    error.exit_code = progress.exit_code or 1  # type: ignore[misc]
    return error

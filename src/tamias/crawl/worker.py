"""A worker: one process that does every step for the hosts it has leased.

Told what to do by one JSON line on stdin, it works until stdin closes or its share is done, and reports
its progress as JSON lines on stdout. `python -m tamias.crawl.worker`, started by the supervisor only.
"""

import asyncio
import errno
import os
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tamias.archive.blobs import BlobWriter
from tamias.archive.blobs.store import choose_store, packs_of
from tamias.crawl.admit import Admission, same_url
from tamias.crawl.archiving.hinting import HintDesk
from tamias.crawl.archiving.keeping import Keeping
from tamias.crawl.archiving.timetable import policy_from
from tamias.crawl.archiving.watching import Watcher
from tamias.crawl.commits.commit import Committer, Tally, Visited
from tamias.crawl.commits.marker import Marker
from tamias.crawl.commits.records import Recorder
from tamias.crawl.commits.recover import recover, warc_prefix
from tamias.crawl.commits.shelf import Shelf
from tamias.crawl.fetching import fetchers, user_agent
from tamias.crawl.reading.reader import Reader
from tamias.crawl.reading.study import Study
from tamias.crawl.steps import Steps
from tamias.crawl.visits.asking import Asker
from tamias.crawl.visits.contexts import ContextCache, ContextDesk
from tamias.crawl.visits.pace import Held
from tamias.crawl.visits.robots import RobotsDesk
from tamias.crawl.visits.sight import Sight
from tamias.crawl.visits.sites import SiteDesk
from tamias.crawl.visits.usage import UsageDesk
from tamias.crawl.visits.visit import Allowance, Visitor
from tamias.crawl.visits.walking import Walker, doors
from tamias.crawl.visits.wholes import Coverage, Wholes
from tamias.database.connect import Database
from tamias.fetch.options import ACCEPT_RDF
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.errors import DiskFull, TamiasError
from tamias.model.lease import Lease
from tamias.model.url import host
from tamias.permit.store import RobotsStore
from tamias.settings import Settings
from tamias.sinks.warc import WarcWriter

RENEW_PART = 3
MOST_LEASED = 100
TASKS_PER_LEASE = 10
IDLE_SECONDS = 0.25
LOOK_SECONDS = 0.5
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
    sinks: tuple[int, ...] = ()
    """Numbers of the sinks outside, which are told of every document."""
    warc: bool = False
    archive: bool = False
    """Whether all that is crawled is kept as versions, not only what is under watch."""


class Progress(msgspec.Struct, kw_only=True):
    """What a worker has done so far."""

    worker: int = 0
    tally: Tally = msgspec.field(default_factory=Tally)
    in_flight: int = 0
    error: str | None = None
    exit_code: int = 0


class Worker:
    """Leases hosts, lets visits run side by side, renews, and stops cleanly."""

    def __init__(self, plan: WorkerPlan, database: Database) -> None:
        settings = plan.settings
        data = Path(plan.data)
        self.number = database.embedded.enrol() if database.embedded else secrets.randbelow(2**31 - 1) + 1
        self._settings = settings
        self._allowance = Allowance(plan.share)
        self._thread = ThreadPoolExecutor(1, "database")
        self._session = database.session()
        names = frozenset(settings.filters.session_names)
        self._frontier = PostgresFrontier(
            self._session,
            same_url=same_url(names),
            worker=self.number,
            delay_ms=int(settings.fetch.delay * 1000),
        )
        self._recover = lambda: recover(database, self._session, self._frontier, data)
        self._steps = Steps()
        self._marker = Marker(data / "studying", self.number)
        self._warc = _warc(plan, self.number) if plan.warc else None
        self._shelf = Shelf(
            data / "rdf",
            self.number,
            self._session,
            lambda work: self._thread.submit(work).result(),
            self._warc,
        )
        admission = Admission(settings, plan.seeds)
        cache = ContextCache()
        self._keeping = _keeping(plan, database, admission)
        self._committer = Committer(
            self._frontier,
            admission,
            self._shelf,
            self._thread,
            self._steps,
            self._committed,
            sinks=plan.sinks,
            keeping=self._keeping,
        )
        self._fetchers = fetchers(settings, data / "spool" / str(self.number), self._session.time)
        robots = RobotsDesk(
            settings,
            self._fetchers["http"],
            RobotsStore(self._session),
            self._in_database,
            self._session.time,
        )
        study = Study(settings, cache)
        self._coverage = Coverage(self._session)
        in_database = self._in_database
        now = self._session.time
        hints = HintDesk(self._session, self._frontier, admission)
        walker = Walker(
            doors(),
            data / "walks",
            session=self._session,
            in_database=in_database,
            study=study,
            shelf=self._shelf,
            committer=self._committer,
            watcher=Watcher(self._session, self._frontier, admission),
            hints=hints,
            now=now,
        )
        contexts = ContextDesk(cache, self._session, in_database, admission, self._committer, now)
        sites = SiteDesk(
            settings,
            robots,
            session=self._session,
            in_database=in_database,
            admission=admission,
            committer=self._committer,
            now=now,
        )
        sight = Sight(
            asker=Asker(self._fetchers, robots, admission, now),
            usage=UsageDesk(robots, self._session, in_database, probed=settings.seeds.probe),
            sites=sites,
            coverage=self._coverage,
            walker=walker,
            reader=Reader(study, contexts, self._shelf, self._committer, self._marker, self._steps),
            warc=self._warc,
            keeping=self._keeping,
            retries=settings.crawl.retries,
        )
        self._visitor = Visitor(
            settings,
            allowance=self._allowance,
            sight=sight,
            admission=admission,
            wholes=Wholes(self._session, in_database, admission, now),
            hints=hints,
            committer=self._committer,
            recorder=Recorder(str(self.number), user_agent(settings)),
            keeping=self._keeping,
            now=now,
        )
        self._held: set[Held] = set()
        self._chance = asyncio.Event()
        self._stopped = False
        self._trouble: Exception | None = None

    def stop(self) -> None:
        """Lets `run` come to its end."""
        self._stopped = True
        self._chance.set()

    async def run(self, tell: Callable[[Progress], None]) -> None:
        """Until told to stop, or the share is used up and committed."""
        committing = asyncio.create_task(self._committer.run())
        background = [
            asyncio.create_task(work)
            for work in (self._renew_regularly(), self._sweep_regularly(), self._look_regularly(tell))
        ]
        try:
            await self._in_database(self._shelf.reserve)
            await self._in_database(self._recover)
            await self._lease_until_stopped([committing, *background])
        finally:
            await self._end(committing, background)

    async def _lease_until_stopped(self, background: list[asyncio.Task[None]]) -> None:
        while not self._stopped:
            if self._trouble is not None:
                raise self._trouble
            for task in background:
                if task.done():
                    task.result()
            self._chance.clear()
            if self._allowance.used_up:
                if not self._held:
                    return
            elif self._room() > self._settings.fetch.concurrency // 8 and await self._lease_some():
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._chance.wait(), IDLE_SECONDS)

    def _room(self) -> int:
        return self._settings.fetch.concurrency - len(self._held)

    async def _lease_some(self) -> int:
        asked_at = time.monotonic()
        seconds = self._settings.frontier.lease
        leases = await self._in_database(self._lease, min(self._room(), MOST_LEASED), seconds)
        anew = {lease.qid for lease in leases}
        for held in self._held:
            if held.lease.qid in anew:
                held.give_up()
        for lease in leases:
            held = Held(lease, asked_at, seconds)
            self._held.add(held)
            held.task = asyncio.create_task(self._work(held))
            held.task.add_done_callback(lambda _, held=held: self._let_go(held))  # type: ignore[misc]
        return len(leases)

    def _lease(self, hosts: int, seconds: float) -> list[Lease]:
        with self._steps.step("lease"):
            leases = self._frontier.lease(hosts, TASKS_PER_LEASE, seconds)
            self._coverage.refresh()
            return leases

    async def _work(self, held: Held) -> None:
        try:
            await self._visitor.work(held)
        except Exception as error:  # noqa: BLE001 (told by whoever waits for the worker)
            self._trouble = error

    def _let_go(self, held: Held) -> None:
        self._held.discard(held)
        if self._room() == self._settings.fetch.concurrency // 8 + 1 or self._trouble or not self._held:
            self._chance.set()

    def _committed(self, released: Sequence[Held], late: Sequence[Visited]) -> None:
        """Hosts were given back and links put: there is a chance of work, now and after the hosts' delays."""
        for visited in late:
            self._allowance.give_back(visited.done.task)
        self._chance.set()
        loop = asyncio.get_running_loop()
        for delay_ms in {held.delay_ms for held in released}:
            loop.call_later(delay_ms / 1000, self._chance.set)

    async def _renew_regularly(self) -> None:
        """Renews in good time; a visit whose lease was lost is stopped at once."""
        seconds = self._settings.frontier.lease
        while True:
            await asyncio.sleep(seconds / RENEW_PART)
            holding = {held.lease.qid: held for held in self._held if not held.lost}
            asked_at = time.monotonic()
            renewed = await self._in_database(
                self._frontier.renew, [held.lease for held in holding.values()], seconds
            )
            for lease in renewed:
                holding.pop(lease.qid).renewed(lease, asked_at, seconds)
            for held in holding.values():
                if held in self._held:
                    held.give_up()

    async def _sweep_regularly(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self._in_database(self._recover)
            await self._in_database(self._frontier.sweep)

    async def _look_regularly(self, tell: Callable[[Progress], None]) -> None:
        """Tells how it goes, and stops what goes on longer than its lease."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for held in self._held:
                if held.over and not held.lost:
                    held.give_up()
            tell(self.progress())

    def progress(self) -> Progress:
        """What was done so far."""
        return Progress(worker=self.number, tally=self._committer.tally, in_flight=len(self._held))

    async def _end(self, committing: asyncio.Task[None], background: list[asyncio.Task[None]]) -> None:
        """Visits under way are dropped, finished ones committed, hosts given back."""
        self._marker.close()
        held = [each for each in self._held if not each.lost]
        tasks = [each.task for each in self._held if each.task is not None]
        for task in [*tasks, *background]:
            task.cancel()
        await asyncio.wait([*tasks, *background], timeout=STOP_SECONDS)
        for each in held:
            self._committer.release(each)
        self._committer.end()
        await asyncio.wait([committing])
        for fetcher in set(self._fetchers.values()):
            await fetcher.close()
        self._thread.shutdown(wait=True)
        self._keeping.close()
        if self._warc is not None:
            self._warc.close()
        self._steps.write(self._committer.tally.visited)
        self._session.close()
        committing.result()

    async def _in_database(self, work: Callable[..., T], *words: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *words)


def _warc(plan: WorkerPlan, number: int) -> WarcWriter:
    robots = "obey" if plan.settings.permit.robots else "ignore"
    agent = user_agent(plan.settings)
    folder = Path(plan.data) / "warc"
    return WarcWriter(folder, warc_prefix(number), agent=agent, accept=ACCEPT_RDF, robots=robots)


def _keeping(plan: WorkerPlan, database: Database, admission: Admission) -> Keeping:
    session = database.session()
    choose_store(session, plan.settings.archive.store)
    return Keeping(
        BlobWriter(packs_of(session, Path(plan.data)), session),
        session,
        policy_from(plan.settings.schedule),
        key=admission.key,
        host=host,
        everything=plan.archive,
        now=session.now,
    )


async def _main() -> int:
    loop = asyncio.get_running_loop()
    line = await loop.run_in_executor(None, sys.stdin.buffer.readline)
    if not line:
        return 0
    plan = msgspec.json.decode(line, type=WorkerPlan)
    worker: Worker | None = None
    trouble: TamiasError | None = None
    try:
        with closing(Database(Path(plan.data), plan.db)) as database:
            worker = Worker(plan, database)
            loop.add_reader(sys.stdin.fileno(), _at_end_of_stdin, worker.stop)
            _tell(worker.progress())
            await worker.run(_tell)
    except TamiasError as error:
        trouble = error
    except OSError as error:
        trouble = _refused(error, plan.data)
    end = worker.progress() if worker else Progress()
    if trouble is not None:
        end.error, end.exit_code = str(trouble), trouble.exit_code
    _tell(end)
    return end.exit_code


def _at_end_of_stdin(stop: Callable[[], None]) -> None:
    """The supervisor closes it to end us; the system does when the supervisor is killed."""
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop()


def _tell(progress: Progress) -> None:
    with suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), msgspec.json.encode(progress) + b"\n")


def _refused(error: OSError, data: str) -> TamiasError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"no room left under {data}; free some space and go on")
    return TamiasError(f"cannot work under {data}: {error}")


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

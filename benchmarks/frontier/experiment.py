"""The experiment: load, let clients loose on both stores, size by size, then judge against the targets."""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from itertools import chain
from math import ceil
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from benchmarks.frontier.stores import STORES, Store, Workload, check_load, load, make_naive, settle
from benchmarks.measuring.targets import BenchmarkTarget, report_targets
from benchmarks.measuring.workspace import wait_for_quiet, workspace
from tamias.database.connect import Database, Session
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.item import Item

T = TypeVar("T")

BATCH = 1000
_BARRIER_SECONDS = 300.0
_start: Barrier | None = None


class ClientJob(msgspec.Struct, frozen=True, kw_only=True):
    """What a client is to do: at most so many rounds, for at most so long, but always one."""

    data: str
    store: str
    hosts: int
    urls: int
    client: int
    warm: int
    rounds: int
    seconds: float


class Hold(msgspec.Struct, frozen=True):
    """A host in a client's hands, from the end of the lease call to the beginning of the finish call."""

    host: str
    taken: float
    returned: float


class ClientTally(msgspec.Struct):
    """What one client saw. Times in seconds; `began` and `ended` on the system's monotonic clock."""

    put: list[float] = msgspec.field(default_factory=list)
    lease: list[float] = msgspec.field(default_factory=list)
    finish: list[float] = msgspec.field(default_factory=list)
    holds: list[Hold] = msgspec.field(default_factory=list)
    finished: int = 0
    offered: int = 0
    began: float = 0.0
    ended: float = 0.0


def wait_together(start: Barrier) -> None:
    """Runs first in each client process: they begin at the same moment."""
    global _start  # noqa: PLW0603 (a barrier reaches a pool's process only by inheritance)
    _start = start


def work(job: ClientJob) -> ClientTally:
    """The whole life of a client. The rounds that warm it up leave only their holds."""
    with closing(Database(Path(job.data))) as database, closing(database.session()) as session:
        store = STORES[job.store](session)
        batches = Workload(job.hosts).batches(BATCH, job.urls, job.client)
        tally = ClientTally()
        if _start is not None:
            _start.wait(_BARRIER_SECONDS)
        for _ in range(job.warm):
            _round(store, next(batches), tally)
        tally = ClientTally(holds=tally.holds, began=time.monotonic())
        for _ in range(job.rounds):
            _round(store, next(batches), tally)
            if time.monotonic() - tally.began > job.seconds:
                break
        tally.ended = time.monotonic()
    return tally


def _round(store: Store, batch: list[Item], tally: ClientTally) -> None:
    held = _timed(tally.lease, store.lease)
    taken = time.monotonic()
    _timed(tally.put, lambda: store.put(batch))
    returned = time.monotonic()
    _timed(tally.finish, lambda: store.finish(held))
    tally.holds += [Hold(host, taken, returned) for host in held.hosts]
    tally.finished += held.urls
    tally.offered += len(batch)


def _timed(times: list[float], call: Callable[[], T]) -> T:
    began = time.perf_counter()
    result = call()
    times.append(time.perf_counter() - began)
    return result


def held_twice(holds: list[Hold]) -> int:
    """How often a host was taken while another client still held it."""
    twice = 0
    until: dict[str, float] = {}
    for hold in sorted(holds, key=lambda hold: hold.taken):
        twice += hold.taken < until.get(hold.host, 0.0)
        until[hold.host] = max(hold.returned, until.get(hold.host, 0.0))
    return twice


PUTS_PER_SECOND = 25_000
GROWTH = 2.0


class Percentiles(msgspec.Struct, frozen=True):
    """Milliseconds of one operation."""

    p50: float
    p99: float
    count: int


class StoreFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One store at one size with one number of clients."""

    store: str
    urls: int
    clients: int
    put: Percentiles
    lease: Percentiles
    finish: Percentiles
    put_per_second: float
    """URLs put in a second of putting, by all clients together."""
    finish_per_second: float
    urls_per_lease: float
    finished_per_second: float
    """URLs leased, followed by a put, and finished, in a second of the whole round, all clients."""
    offered_per_second: float
    bytes_per_url: float
    held_twice: int
    deadlocks: int
    load: float
    """The machine's load average at the end: much more than the clients means that others were at work."""


def figures(
    store: str, urls: int, tallies: Sequence[ClientTally], *, bytes_per_url: float, deadlocks: int
) -> StoreFigures:
    """Adds up what the clients saw."""
    put = list(chain.from_iterable(tally.put for tally in tallies))
    lease = list(chain.from_iterable(tally.lease for tally in tallies))
    finish = list(chain.from_iterable(tally.finish for tally in tallies))
    wall = max(tally.ended for tally in tallies) - min(tally.began for tally in tallies)
    offered = sum(tally.offered for tally in tallies)
    finished = sum(tally.finished for tally in tallies)
    return StoreFigures(
        store=store,
        urls=urls,
        clients=len(tallies),
        put=times(put),
        lease=times(lease),
        finish=times(finish),
        put_per_second=len(tallies) * offered / sum(put),
        finish_per_second=len(tallies) * finished / sum(finish),
        urls_per_lease=finished / len(lease),
        finished_per_second=finished / wall,
        offered_per_second=offered / wall,
        bytes_per_url=bytes_per_url,
        held_twice=held_twice([hold for tally in tallies for hold in tally.holds]),
        deadlocks=deadlocks,
        load=os.getloadavg()[0],
    )


def times(seconds: Sequence[float]) -> Percentiles:
    """Percentiles by the nearest rank.

    >>> times([0.003, 0.001, 0.002])
    Percentiles(p50=2.0, p99=3.0, count=3)
    """
    ordered = sorted(seconds)
    p50, p99 = (ordered[ceil(share * len(ordered)) - 1] * 1000 for share in (0.50, 0.99))
    return Percentiles(p50, p99, len(ordered))


def heading() -> str:
    """The table's head: what is shown, and the names of the columns."""
    return (
        "put: batches of 1000, 70 % known; lease: 10 hosts x 10 URLs; finish: what was leased. "
        "Milliseconds are p50/p99.\n"
        f"{'URLs':>9} {'clients':>7} {'store':<8} {'lease ms':>17} {'URLs':>4} {'put ms':>15} "
        f"{'finish ms':>13} {'put/s':>7} {'finish/s':>8} {'visited/s':>9} {'B/URL':>5} {'twice':>5} "
        f"{'deadlocks':>9} {'rounds':>6} {'load':>4}"
    )


def line(each: StoreFigures) -> str:
    """One row of the table."""
    lease, put, finish = (f"{shown.p50:.1f}/{shown.p99:.1f}" for shown in (each.lease, each.put, each.finish))
    return (
        f"{each.urls:>9} {each.clients:>7} {each.store:<8} {lease:>17} {each.urls_per_lease:>4.0f} {put:>15} "
        f"{finish:>13} {each.put_per_second:>7.0f} {each.finish_per_second:>8.0f} "
        f"{each.finished_per_second:>9.0f} {each.bytes_per_url:>5.0f} {each.held_twice:>5} "
        f"{each.deadlocks:>9} {each.lease.count:>6} {each.load:>4.1f}"
    )


def targets(measured: Sequence[StoreFigures]) -> list[BenchmarkTarget]:
    """The three promises, judged."""
    ours = [each for each in measured if each.store == "frontier"]
    alone = sorted((each for each in ours if each.clients == 1), key=lambda each: each.urls)
    many = [each for each in ours if each.clients > 1]
    return [_growth(alone), _puts(alone), _beside(many)]


def _growth(alone: Sequence[StoreFigures]) -> BenchmarkTarget:
    text = f"lease p50 at the largest size is at most {GROWTH:.0f}x that at the smallest"
    if len(alone) < 2:
        return BenchmarkTarget(text, "", None)
    ratio = alone[-1].lease.p50 / alone[0].lease.p50
    return BenchmarkTarget(text, f"{alone[0].urls} to {alone[-1].urls} URLs: {ratio:.2f}x", ratio <= GROWTH)


def _puts(alone: Sequence[StoreFigures]) -> BenchmarkTarget:
    text = f"one client puts at least {PUTS_PER_SECOND} URLs/s in batches at every size"
    if not alone:
        return BenchmarkTarget(text, "", None)
    slowest = min(alone, key=lambda each: each.put_per_second)
    shown = f"slowest: {slowest.put_per_second:.0f}/s at {slowest.urls} URLs"
    return BenchmarkTarget(text, shown, slowest.put_per_second >= PUTS_PER_SECOND)


def _beside(many: Sequence[StoreFigures]) -> BenchmarkTarget:
    text = "several clients: no host leased twice, no deadlock"
    if not many:
        return BenchmarkTarget(text, "", None)
    twice, deadlocks = sum(each.held_twice for each in many), sum(each.deadlocks for each in many)
    leases = sum(each.lease.count for each in many)
    return BenchmarkTarget(
        text, f"{twice} twice, {deadlocks} deadlocks in {leases} leases", twice == deadlocks == 0
    )


SIZES = (100_000, 1_000_000, 5_000_000)
CLIENTS = (1, 8)
_SIZE = b"SELECT sum(pg_total_relation_size(name::regclass))::int8 FROM unnest(%(names)b::text[]) AS name"
_DEADLOCKS = b"SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
_TABLES = {"frontier": ("url", "queue", "host"), "naive": ("naive",)}


class Effort(msgspec.Struct, frozen=True):
    """How much is measured on a store."""

    warm: int
    rounds: int
    seconds: float


def run(
    sizes: Sequence[int] = SIZES,
    clients: Sequence[int] = CLIENTS,
    data: Path | None = None,
    out: Callable[[str], None] = print,
    *,
    hosts: int = 10_000,
    rounds: int = 150,
    seconds: float = 15.0,
    patience: float = 30.0,
) -> dict[str, Any]:
    """Measures both stores at each size with each number of clients; returns what it printed, as figures.

    One client does `rounds` rounds; several work for `seconds`. The naive store, being slow, gets less.
    Before each measurement the machine is waited for, at most `patience` seconds, to become quiet.
    """
    measured: list[StoreFigures] = []
    with (
        workspace(data) as folder,
        closing(Database(folder)) as database,
        closing(database.session()) as session,
    ):
        trial = _Trial(database, session, folder, Workload(hosts), patience)
        trial.check()
        out(heading())
        for urls in sizes:
            trial.load(urls)
            for number in clients:
                for store, effort in _efforts(number, rounds, seconds).items():
                    measured.append(trial.measure(store, number, effort))
                    out(line(measured[-1]))
    return {
        "hosts": hosts,
        "figures": [msgspec.to_builtins(each) for each in measured],
        **report_targets(targets(measured), out),
    }


class _Trial:
    """Both stores, filled with the same URLs, and the clients let loose on them."""

    def __init__(
        self, database: Database, session: Session, folder: Path, workload: Workload, patience: float
    ) -> None:
        self._database = database
        self._session = session
        self._folder = folder
        self._workload = workload
        self._patience = patience
        self._urls = 0
        self._sizes: dict[str, float] = {}
        self._clients = 0

    def check(self) -> None:
        """Raises unless the rows we load are those that put would write."""
        check_load(self._session, PostgresFrontier(self._session, same_url=str.__eq__), self._workload)

    def load(self, urls: int) -> None:
        """Fills both stores anew."""
        load(self._session, self._workload, urls)
        self._session.transact(make_naive)
        assert self._database.embedded is not None
        settle(self._database.embedded.address(), self._folder)
        self._urls = urls
        for store, tables in _TABLES.items():
            self._sizes[store] = _count(self._session, _SIZE, names=list(tables)) / urls

    def measure(self, store: str, clients: int, effort: Effort) -> StoreFigures:
        """So many clients at once on one store."""
        jobs = [self._job(store, client, effort) for client in range(self._clients, self._clients + clients)]
        self._clients += clients
        before = _count(self._session, _DEADLOCKS)
        wait_for_quiet(self._patience)
        tallies = _together(jobs)
        deadlocks = _count(self._session, _DEADLOCKS) - before
        return figures(store, self._urls, tallies, bytes_per_url=self._sizes[store], deadlocks=deadlocks)

    def _job(self, store: str, client: int, effort: Effort) -> ClientJob:
        return ClientJob(
            data=str(self._folder),
            store=store,
            hosts=self._workload.hosts,
            urls=self._urls,
            client=client,
            **msgspec.structs.asdict(effort),
        )


def _efforts(clients: int, rounds: int, seconds: float) -> dict[str, Effort]:
    if clients == 1:
        return {"frontier": Effort(10, rounds, 8 * seconds), "naive": Effort(0, 6, 2 * seconds)}
    return {"frontier": Effort(1, 1_000_000, seconds), "naive": Effort(0, 1_000_000, seconds)}


def _together(jobs: list[ClientJob]) -> list[ClientTally]:
    """Each job in a fresh process, all begun together."""
    context = get_context("spawn")
    start = context.Barrier(len(jobs))
    with ProcessPoolExecutor(len(jobs), context, initializer=wait_together, initargs=(start,)) as pool:
        return list(pool.map(work, jobs))


def _count(session: Session, query: bytes, **asked: Any) -> int:
    row = session.fetch_one(query, asked)
    assert row is not None
    return int(row[0])

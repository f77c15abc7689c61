"""One client process: leases, puts and finishes in a loop, and tells how long each took and what it held."""

import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import TypeVar

import msgspec

from benchmarks.frontier.stores import STORES, Store
from benchmarks.frontier.workload import Workload
from tamias.database.connect import Database
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

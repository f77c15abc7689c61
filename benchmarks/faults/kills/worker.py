"""A worker process of the experiment: leases, puts links, renews, finishes, until it is told to end.

`python -m benchmarks.faults.kills.worker OPTIONS`, started by the pool only.
"""

import os
import signal
import sys
import time
from contextlib import closing
from pathlib import Path
from random import Random

import msgspec

from benchmarks.faults.kills.events import WorkerLog
from benchmarks.faults.kills.graph import LinkGraph, number_of
from benchmarks.faults.kills.options import DELAY_MS, HOSTS, LEASE_SECONDS, PER_HOST, WorkerOptions
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Outcome
from tamias.model.item import NEVER
from tamias.model.lease import Done, Lease, Return

_IDLE_SECONDS = 0.05


class KillableWorker:
    """The crawl as one worker sees it."""

    def __init__(self, frontier: PostgresFrontier, graph: LinkGraph, log: WorkerLog, pause: float) -> None:
        self._frontier = frontier
        self._graph = graph
        self._log = log
        self._pause = pause
        self._random = Random()
        self._until: dict[str, float] = {}
        self._ending = False

    def end(self, *_: object) -> None:
        """After this round."""
        self._ending = True

    def crawl(self, pool: int) -> None:
        """Rounds until told to end, or until whoever started us is gone."""
        while not self._ending and os.getppid() == pool:
            if leases := self._take():
                self._round(leases)
            else:
                time.sleep(_IDLE_SECONDS)

    def _take(self) -> list[Lease]:
        until = time.monotonic() + LEASE_SECONDS
        leases = self._frontier.lease(HOSTS, PER_HOST, LEASE_SECONDS)
        for lease in leases:
            self._until[lease.host] = until
            self._log.write("taken", lease.host, until=until, urls=_numbers(lease))
        return leases

    def _round(self, leases: list[Lease]) -> None:
        """Half of the pause before the links are put and half after, so that death can come anywhere."""
        self._fetch()
        links = {link for lease in leases for each in _numbers(lease) for link in self._graph.links(each)}
        self._frontier.put([self._graph.item(number) for number in sorted(links)])
        leases = self._renew(leases)
        self._fetch()
        self._finish(self._still_held(leases))

    def _fetch(self) -> None:
        time.sleep(self._random.uniform(0, self._pause))

    def _renew(self, leases: list[Lease]) -> list[Lease]:
        until = time.monotonic() + LEASE_SECONDS
        renewed = self._frontier.renew(self._still_held(leases), LEASE_SECONDS)
        kept = {lease.host for lease in renewed}
        for lease in leases:
            if lease.host in kept:
                self._until[lease.host] = until
                self._log.write("renewed", lease.host, until=until)
            else:
                self._log.write("lost", lease.host)
        return renewed

    def _still_held(self, leases: list[Lease]) -> list[Lease]:
        """The others ended by themselves: the clock says so, nobody has to be asked."""
        now = time.monotonic()
        for lease in leases:
            if self._until[lease.host] <= now:
                self._log.write("lost", lease.host)
        return [lease for lease in leases if self._until[lease.host] > now]

    def _finish(self, leases: list[Lease]) -> None:
        for lease in leases:
            self._log.write("returned", lease.host, urls=_numbers(lease))
        held = self._frontier.finish([_all_done(lease) for lease in leases])
        for lease in leases:
            event = "finished" if lease.qid in held else "lost"
            self._log.write(event, lease.host, urls=_numbers(lease))


def _numbers(lease: Lease) -> list[int]:
    return [number_of(task.url) for task in lease.tasks]


def _all_done(lease: Lease) -> Return:
    done = (Done(task=task, outcome=Outcome.OK, due=NEVER) for task in lease.tasks)
    return Return(lease=lease, done=tuple(done))


def main() -> None:
    """One worker's life."""
    options = msgspec.json.decode(sys.argv[1], type=WorkerOptions)
    with closing(Database(Path(options.data))) as database, closing(database.session()) as session:
        assert database.embedded is not None
        frontier = PostgresFrontier(
            session, same_url=str.__eq__, worker=database.embedded.enrol(), delay_ms=DELAY_MS
        )
        worker = KillableWorker(frontier, options.graph, WorkerLog(Path(options.log)), options.pause)
        signal.signal(signal.SIGTERM, worker.end)
        worker.crawl(options.pool)


if __name__ == "__main__":
    main()

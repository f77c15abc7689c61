"""A worker process of the experiment: leases, puts links, renews, finishes, until it is told to end.

It writes down what it does line by line, so that it can die at any moment and still testify. The pool starts
it: `python -m benchmarks.faults.kills.worker OPTIONS`."""

import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from hashlib import blake2b
from pathlib import Path
from random import Random

import msgspec

from benchmarks.frontier.experiment import Hold
from benchmarks.frontier.stores import finished
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.item import Item
from tamias.model.lease import Lease

LINKS = 20
OWN_LINKS = 16
SEEDS = 10


class LinkGraph(msgspec.Struct, frozen=True):
    """So many URLs spread evenly over so many hosts; 20 links on each, 16 of them to its own host."""

    urls: int
    hosts: int

    def links(self, number: int) -> list[int]:
        """The numbers of the URLs that this one links to."""
        own = range(number % self.hosts, self.urls, self.hosts)
        anywhere = range(self.urls)
        chances = [_chance(number, place) for place in range(LINKS)]
        return [
            (own if place < OWN_LINKS else anywhere)[chance % len(own if place < OWN_LINKS else anywhere)]
            for place, chance in enumerate(chances)
        ]

    def closure(self) -> set[int]:
        """All that can be reached from the seeds."""
        reached = set(range(min(SEEDS, self.urls)))
        ahead = list(reached)
        while ahead:
            found = set(self.links(ahead.pop())) - reached
            reached |= found
            ahead += found
        return reached

    def item(self, number: int) -> Item:
        """The URL of this number as it is put into a frontier."""
        host = f"h{number % self.hosts}.example"
        url = f"http://{host}/{number}"
        return Item(url=url, key=url, host=host, score=_chance(number, LINKS) % 1000 / 1000)


def number_of(url: str) -> int:
    """The number behind a URL's text.

    >>> number_of(LinkGraph(100, 10).item(42).url)
    42
    """
    return int(url.rpartition("/")[2])


def _chance(number: int, place: int) -> int:
    return int.from_bytes(blake2b(b"%d.%d" % (number, place), digest_size=8).digest(), "big")


class WorkerEvent(msgspec.Struct, array_like=True, frozen=True):
    """One line. Times are the system's monotonic clock, the same for all processes."""

    at: float
    event: str
    """`taken`, `renewed`, `lost` (the worker stops), `returned` (before finish), `finished` (after it)."""
    host: str
    until: float = 0.0
    urls: list[int] = []


class WorkerLog:
    """Appends notes to a file, each by one write."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, event: str, host: str, *, until: float = 0.0, urls: Iterable[int] = ()) -> None:
        """Notes what happens now."""
        note = WorkerEvent(time.monotonic(), event, host, until, list(urls))
        os.write(self._file, msgspec.json.encode(note) + b"\n")


def notes(path: Path) -> list[WorkerEvent]:
    """What was written; a line cut off by death is left out."""
    read = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(msgspec.DecodeError):
            read.append(msgspec.json.decode(line, type=WorkerEvent))
    return read


def holds(written: list[WorkerEvent], died_at: float | None) -> list[Hold]:
    """When the worker held which host: until it gave it back, its lease ended, or it died."""
    held: dict[str, Hold] = {}
    ended: list[Hold] = []
    for note in written:
        if note.event in ("returned", "lost") and note.host in held:
            hold = held.pop(note.host)
            ended.append(Hold(hold.host, hold.taken, min(note.at, hold.returned)))
        elif note.event == "taken":
            ended += [held.pop(note.host)] if note.host in held else []
            held[note.host] = Hold(note.host, note.at, note.until)
        elif note.event == "renewed":
            held[note.host] = Hold(note.host, held[note.host].taken, note.until)
    if died_at is not None and written:
        died_at = max(died_at, written[-1].at)
        return ended + [Hold(hold.host, hold.taken, min(hold.returned, died_at)) for hold in held.values()]
    return ended + list(held.values())


HOSTS, PER_HOST = 2, 3
LEASE_SECONDS = 3.0
DELAY_MS = 200


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Handed over as JSON on the command line."""

    data: str
    log: str
    graph: LinkGraph
    pause: float
    """Seconds of each round that stand for fetching."""
    pool: int


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
        held = self._frontier.finish([finished(lease) for lease in leases])
        for lease in leases:
            event = "finished" if lease.qid in held else "lost"
            self._log.write(event, lease.host, urls=_numbers(lease))


def _numbers(lease: Lease) -> list[int]:
    return [number_of(task.url) for task in lease.tasks]


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

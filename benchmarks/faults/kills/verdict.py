"""The verdict: what the tables hold and what the workers' logs say, against what the graph demands."""

from typing import Any

import msgspec

from benchmarks.faults.kills.events import holds, notes
from benchmarks.faults.kills.graph import LinkGraph, number_of
from benchmarks.faults.kills.pool import WorkerPool
from benchmarks.frontier.client import held_twice
from tamias.database.connect import Cursor
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Outcome
from tamias.model.item import NEVER

_ROWS = "SELECT url, status, due FROM url"


class KillVerdict(msgspec.Struct, kw_only=True):
    """What came of it. All of `missing` to `trouble` must be empty or zero."""

    urls: int
    kills: dict[str, int]
    seconds: float
    workers: int
    """Worker processes, the restarted ones included."""
    leases: int
    lost_leases: int
    given_back: int
    visits: int
    """More than URLs: what the dead held is visited again."""
    swept: int
    """Hosts the sweep had to repair at the end."""
    missing: int
    unfinished: int
    extra: int
    miscounted: int
    held_twice: int
    failures: list[str]
    trouble: list[str]
    left_running: list[int] = []

    def ok(self) -> bool:
        """Whether nothing at all went wrong."""
        counts = (self.missing, self.unfinished, self.extra, self.miscounted, self.held_twice, self.swept)
        return not any(counts) and not (self.failures or self.trouble or self.left_running)

    def lines(self) -> list[str]:
        """The summary."""
        kills = ", ".join(f"{count} {kind}" for kind, count in self.kills.items())
        lines = [
            f"{sum(self.kills.values())} kills ({kills}) in {self.seconds:.0f} s, "
            f"{self.workers} worker processes in all",
            f"{self.leases} leases, {self.lost_leases} ran out, {self.given_back} given back for the dead",
            f"{self.urls} URLs reachable, {self.visits} visits; {self.missing} missing, "
            f"{self.unfinished} unfinished, {self.extra} extra, {self.miscounted} miscounted",
            f"hosts held by two at once: {self.held_twice}; hosts the sweep had to wake: {self.swept}; "
            f"processes left running: {len(self.left_running)}",
        ]
        lines += [f"a worker failed: {failure}" for failure in self.failures[:5]]
        lines += [f"trouble: {trouble}" for trouble in self.trouble[:5]]
        return [*lines, "ok" if self.ok() else "NOT ok"]


def judge(
    graph: LinkGraph,
    pool: WorkerPool,
    frontier: PostgresFrontier,
    rows: list[tuple[Any, ...]],
    seconds: float,
    kills: dict[str, int],
) -> KillVerdict:
    """Reads the logs of all workers and compares the tables with the graph."""
    wanted = graph.closure()
    stored = {number_of(url): (status, due) for url, status, due in rows}
    logs = [(worker, notes(worker.log)) for worker in pool.started]
    written = [note for _, each in logs for note in each]
    crawl = frontier.figures().crawls[0]
    return KillVerdict(
        urls=len(wanted),
        kills=kills,
        seconds=seconds,
        workers=len(pool.started),
        leases=sum(note.event == "taken" for note in written),
        lost_leases=sum(note.event == "lost" for note in written),
        given_back=pool.given_back,
        visits=sum(len(note.urls) for note in written if note.event == "returned"),
        swept=frontier.sweep(),
        missing=len(wanted - stored.keys()),
        unfinished=sum(state != (Outcome.OK, NEVER) for state in stored.values()),
        extra=len(stored.keys() - wanted),
        miscounted=abs(crawl.known - len(rows)) + abs(crawl.open),
        held_twice=held_twice([hold for worker, each in logs for hold in holds(each, worker.killed_at)]),
        failures=[failure for worker in pool.started if (failure := worker.failure())],
        trouble=list(pool.trouble),
    )


def stored_rows(cursor: Cursor) -> list[tuple[Any, ...]]:
    """All URLs as they stand."""
    return cursor.execute(_ROWS).fetchall()

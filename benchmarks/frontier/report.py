"""From tallies to figures, from figures to a table and a verdict."""

import os
from collections.abc import Sequence
from itertools import chain
from math import ceil

import msgspec

from benchmarks.frontier.client import ClientTally, held_twice
from benchmarks.measuring.targets import BenchmarkTarget

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
    return [_growth(alone), _puts(alone), _together(many)]


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


def _together(many: Sequence[StoreFigures]) -> BenchmarkTarget:
    text = "several clients: no host leased twice, no deadlock"
    if not many:
        return BenchmarkTarget(text, "", None)
    twice, deadlocks = sum(each.held_twice for each in many), sum(each.deadlocks for each in many)
    leases = sum(each.lease.count for each in many)
    return BenchmarkTarget(
        text, f"{twice} twice, {deadlocks} deadlocks in {leases} leases", twice == deadlocks == 0
    )

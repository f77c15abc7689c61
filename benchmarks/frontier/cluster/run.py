"""The experiment: fill one server, measure it, then let the simulation grow until it bends."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.frontier.cluster.costs import Costs, measure, sizes
from benchmarks.frontier.cluster.simulation import ClusterFigures, ClusterPlan, Simulation
from benchmarks.frontier.load import load, settle
from benchmarks.frontier.workload import Workload
from benchmarks.measuring.workspace import wait_for_quiet, workspace
from tamias.database.connect import Database

SHARDS = (1, 2, 4, 8, 16, 32, 64)
BUCKETS_EACH = 4
LEAST_BUCKETS = 16
BENT = 0.7
"""Less than this share of what one shard does, for each shard: there it bends."""
PLANNING = 0.5
"""Milliseconds of a Citus coordinator for a statement, as measured with Citus 13.2 (docs/scaling.md)."""
_ROUNDS = 5
"""Of every worker at least, before it is judged."""


class Way(msgspec.Struct, frozen=True):
    """One way to run a cluster."""

    name: str
    leases: int
    planning: float = PLANNING
    one_coordinator: bool = False


WAYS = (
    Way("one coordinator plans, ten leases settled at once", 10, one_coordinator=True),
    Way("every node plans for its own workers, ten leases at once", 10),
    Way("every node plans, one lease at a time", 1),
    Way("no planning: plain servers and workers that know them, ten leases at once", 10, planning=0.0),
)


class ClusterRow(msgspec.Struct, frozen=True, kw_only=True):
    """One size of cluster, one way."""

    way: str
    plan: ClusterPlan
    figures: ClusterFigures
    efficiency: float
    """URLs a second of each shard, as a share of what one shard alone does."""


def run(
    urls: int = 200_000,
    shards: Sequence[int] = SHARDS,
    out: Callable[[str], None] = print,
    *,
    workers_each: int = 8,
    rounds: int = 100,
    patience: float = 30.0,
    data: Path | None = None,
) -> dict[str, Any]:
    """Measures one server with so many URLs, then simulates clusters of it."""
    with (
        workspace(data) as folder,
        closing(Database(folder)) as database,
        closing(database.session()) as session,
    ):
        workload = Workload(10_000)
        load(session, workload, urls)
        assert database.embedded is not None
        settle(database.embedded.address(), folder)
        room = {name: size / urls for name, size in sizes(session).items()}
        wait_for_quiet(patience)
        costs = measure(session, workload, urls, rounds)
    _tell_costs(costs, room, urls, out)
    rows = [row for way in WAYS for row in _grown(way, costs, shards, workers_each, out)]
    return {
        "urls": urls,
        "costs": msgspec.to_builtins(costs),
        "bytes_per_url": room,
        "rows": msgspec.to_builtins(rows),
        "bends_at": {way.name: bend([row for row in rows if row.way == way.name]) for way in WAYS},
    }


def bend(rows: Sequence[ClusterRow]) -> int | None:
    """The first number of shards at which each does markedly less than one alone."""
    return next((row.plan.shards for row in rows if row.efficiency < BENT), None)


def _grown(
    way: Way, costs: Costs, shards: Sequence[int], workers_each: int, out: Callable[[str], None]
) -> Iterator[ClusterRow]:
    out(f"\n{way.name}")
    out("shards  buckets  workers   URLs/s  a shard  share  shards busy  coordinator  puts/100  ms/100")
    rows: list[ClusterRow] = []
    for number in shards:
        plan = ClusterPlan(
            shards=number,
            buckets=max(LEAST_BUCKETS, BUCKETS_EACH * number),
            workers=workers_each * number,
            leases=way.leases,
            planning=way.planning,
            one_coordinator=way.one_coordinator,
        )
        figures = Simulation(plan, costs).run(_requests(plan))
        alone = rows[0].figures.urls / rows[0].plan.shards if rows else figures.urls / number
        rows.append(
            ClusterRow(way=way.name, plan=plan, figures=figures, efficiency=figures.urls / number / alone)
        )
        out(_line(rows[-1]))
        yield rows[-1]
    at = bend(rows)
    out(f"bends at {at} shards" if at else "does not bend within these sizes")


def _requests(plan: ClusterPlan) -> int:
    """Enough for every worker to come round several times."""
    puts = min(plan.buckets, int(plan.links * plan.away * 100) * plan.leases)
    each = (2 * plan.leases + puts + 1) * (2 if plan.planning else 1)
    return max(20_000, _ROUNDS * plan.workers * each)


def _line(row: ClusterRow) -> str:
    plan, found = row.plan, row.figures
    through = f"{found.coordinator_busy:11.0%}" if plan.one_coordinator else f"{'-':>11}"
    return (
        f"{plan.shards:6}  {plan.buckets:7}  {plan.workers:7}  {found.urls:7.0f}"
        f"  {found.urls / plan.shards:7.0f}  {row.efficiency:5.0%}  {found.busy:11.0%}  {through}"
        f"  {found.puts:8.1f}  {found.wait:6.1f}"
    )


def _tell_costs(costs: Costs, room: dict[str, float], urls: int, out: Callable[[str], None]) -> None:
    took = f"{costs.by}, median of the calls of one client"
    out(f"one server with {urls:,} URLs, milliseconds by {took}:")
    out(f"lease of 100 {costs.lease:.2f}, finish of 100 {costs.finish:.2f},")
    out(f"put {costs.put_call:.2f} and {costs.put_row:.4f} for each row")
    out("bytes for each URL: " + ", ".join(f"{name} {size:.0f}" for name, size in room.items()))

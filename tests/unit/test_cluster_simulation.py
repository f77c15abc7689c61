"""The simulation of a cluster against what can be worked out by hand."""

import msgspec
import pytest

from benchmarks.frontier.cluster.costs import Costs
from benchmarks.frontier.cluster.run import ClusterRow, bend
from benchmarks.frontier.cluster.simulation import ClusterPlan, Simulation

COSTS = Costs(by="hand", lease=2.0, finish=4.0, put_call=1.0, put_row=0.01)
PLAN = ClusterPlan(shards=1, buckets=1, workers=1, cores=1, network=0.0)


def figures(**changes):
    return Simulation(msgspec.structs.replace(PLAN, **changes), COSTS).run(8_000)


def test_an_idle_server_lets_a_worker_fetch_as_fast_as_it_can():
    assert figures(pages=400.0).urls == pytest.approx(400, rel=0.02)


def test_a_round_costs_the_sum_of_its_statements():
    assert figures().wait == pytest.approx(2 + 4 + 1 + 1000 * 0.01)


def test_a_server_at_its_limit_sets_the_pace():
    assert figures(workers=50).urls == pytest.approx(100 / 0.017, rel=0.05)


def test_a_busy_server_is_busy():
    assert figures(workers=50).busy == pytest.approx(1.0, rel=0.02)


def test_links_abroad_go_to_other_buckets_in_statements_of_their_own():
    assert figures(buckets=16).puts == pytest.approx(16, rel=0.01)


def test_one_coordinator_bounds_all_shards():
    found = figures(shards=8, buckets=8, workers=50, planning=1.0, one_coordinator=True)
    assert found.urls == pytest.approx(100 / (0.001 * (1 + 8 * 5 + 5)), rel=0.2)


def test_the_same_plan_gives_the_same_figures():
    assert figures(workers=5, buckets=4) == figures(workers=5, buckets=4)


def test_it_bends_where_a_shard_does_less_than_seven_tenths():
    rows = [
        ClusterRow(
            way="", plan=msgspec.structs.replace(PLAN, shards=number), figures=figures(), efficiency=share
        )
        for number, share in ((1, 1.0), (2, 0.9), (4, 0.6), (8, 0.3))
    ]
    assert bend(rows) == 4

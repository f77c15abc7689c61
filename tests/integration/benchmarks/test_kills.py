"""The kill experiment: a small run of it, and proof that it would notice what it looks for."""

from collections import Counter

import pytest

from benchmarks.faults.kills.experiment import SHARES, plan, run
from benchmarks.faults.kills.worker import LINKS, OWN_LINKS, LinkGraph, WorkerEvent, WorkerLog, holds, notes
from benchmarks.frontier.experiment import Hold


@pytest.fixture(scope="module")
def small():
    """The report of a dozen kills."""
    return run(kills=12, urls=1500, hosts=50, workers=3, out=lambda _: None)


@pytest.mark.nightly
def test_a_crawl_among_kills_finishes_every_url_and_no_other(small):
    assert (small["missing"], small["unfinished"], small["extra"], small["miscounted"]) == (0, 0, 0, 0)


@pytest.mark.nightly
def test_no_host_is_held_by_two_workers_at_once(small):
    assert small["held_twice"] == 0


@pytest.mark.nightly
def test_no_worker_fails_because_another_process_was_killed(small):
    assert small["failures"] + small["trouble"] == []


@pytest.mark.nightly
def test_every_kind_of_process_is_killed(small):
    assert sum(small["kills"].values()) == 12
    assert all(small["kills"].values())


@pytest.mark.nightly
def test_nothing_needs_the_sweep_and_nothing_is_left_running(small):
    assert (small["swept"], small["left_running"]) == (0, [])
    assert small["ok"]


def test_the_plan_is_the_same_for_the_same_seed_and_spread_over_the_crawl():
    strikes = plan(100, 10_000, seed=3)
    assert strikes == plan(100, 10_000, seed=3) != plan(100, 10_000, seed=4)
    assert Counter(strike.victim for strike in strikes) == {
        kind: round(100 * share) for kind, share in SHARES.items()
    }
    points = [strike.done for strike in strikes]
    assert points == sorted(points)
    assert points[0] < 1000 < 9000 < points[-1] < 10_000


def test_four_in_five_links_stay_on_their_host():
    graph = LinkGraph(3000, 100)
    links = graph.links(1234)
    assert len(links) == LINKS
    assert all(link % 100 == 34 for link in links[:OWN_LINKS])


def test_a_graph_can_be_reached_almost_completely_from_its_seeds():
    assert len(LinkGraph(3000, 100).closure()) > 2990


def test_a_diary_survives_a_line_that_was_cut_off(tmp_path):
    path = tmp_path / "diary"
    WorkerLog(path).write("taken", "a", until=5.0, urls=[1, 2])
    with path.open("ab") as file:
        file.write(b'[12.5,"retur')
    (note,) = notes(path)
    assert (note.event, note.host, note.until, note.urls) == ("taken", "a", 5.0, [1, 2])


def test_a_worker_that_never_wrote_held_nothing(tmp_path):
    assert holds(notes(tmp_path / "absent"), died_at=4.0) == []


@pytest.mark.parametrize(
    ("written", "died_at", "held"),
    [
        ([WorkerEvent(1, "taken", "a", 9), WorkerEvent(3, "returned", "a")], None, Hold("a", 1, 3)),
        ([WorkerEvent(1, "taken", "a", 9), WorkerEvent(3, "lost", "a")], None, Hold("a", 1, 3)),
        ([WorkerEvent(1, "taken", "a", 9)], 4, Hold("a", 1, 4)),
        ([WorkerEvent(1, "taken", "a", 9)], 20, Hold("a", 1, 9)),
        ([WorkerEvent(1, "taken", "a", 9), WorkerEvent(5, "renewed", "a", 14)], 20, Hold("a", 1, 14)),
        ([WorkerEvent(1, "taken", "a", 2), WorkerEvent(5, "returned", "a")], None, Hold("a", 1, 2)),
    ],
)
def test_a_worker_holds_a_host_until_it_returns_it_dies_or_the_lease_ends(written, died_at, held):
    assert holds(written, died_at) == [held]

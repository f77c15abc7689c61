"""The frontier's benchmark: its workload, its load, its counting, and a small run of the whole."""

from contextlib import closing

import msgspec
import pytest

from benchmarks.frontier.experiment import PUTS_PER_SECOND, Hold, StoreFigures, held_twice, run, targets
from benchmarks.frontier.grpc import experiment as service
from benchmarks.frontier.stores import Workload, check_load
from benchmarks.measuring.workspace import processes_in, workspace
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.errors import DatabaseError, UsageError


@pytest.fixture(scope="module")
def small():
    """`(report, lines)` of a run at two small sizes, with one client and with three."""
    lines = []
    report = run([1000, 3000], [1, 3], None, lines.append, hosts=50, rounds=5, seconds=0.5, patience=0)
    return report, lines


@pytest.mark.nightly
def test_every_size_and_number_of_clients_is_measured_for_both_stores(small):
    report, _ = small
    measured = {(each["store"], each["urls"], each["clients"]) for each in report["figures"]}
    assert measured == {
        (store, urls, clients)
        for store in ("frontier", "naive")
        for urls in (1000, 3000)
        for clients in (1, 3)
    }


@pytest.mark.nightly
def test_no_host_of_the_frontier_is_held_twice(small):
    report, _ = small
    assert [each["held_twice"] for each in report["figures"] if each["store"] == "frontier"] == [0] * 4


@pytest.mark.nightly
def test_every_target_is_judged_in_a_line_of_its_own(small):
    report, lines = small
    told = [line for line in lines if line.startswith("target: ")]
    assert len(told) == len(report["targets"]) == 3


@pytest.mark.nightly
def test_a_row_of_the_table_is_printed_for_every_measurement(small):
    report, lines = small
    assert sum("frontier" in line or "naive" in line for line in lines[1:]) >= len(report["figures"])


@pytest.mark.nightly
def test_a_slow_put_misses_the_target(small):
    report, _ = small
    slow = [each | {"put_per_second": PUTS_PER_SECOND - 1} for each in report["figures"]]
    assert targets([as_figures(each) for each in slow])[1].met is False


@pytest.mark.nightly
def test_a_lease_that_grows_with_the_frontier_misses_the_target(small):
    report, _ = small
    grown = [as_figures(each | {"lease": at(each["urls"])}) for each in report["figures"]]
    assert targets(grown)[0].met is False


def as_figures(row):
    return msgspec.convert(row, StoreFigures)


def at(milliseconds):
    return {"p50": milliseconds, "p99": milliseconds, "count": 1}


def test_a_host_taken_before_it_was_returned_is_held_twice():
    assert held_twice([Hold("a", 1, 3), Hold("a", 2, 4), Hold("b", 2, 3)]) == 1


def test_a_host_taken_when_it_was_returned_is_not_held_twice():
    assert held_twice([Hold("a", 3, 4), Hold("a", 1, 3)]) == 0


def test_a_short_hold_inside_a_long_one_does_not_hide_the_next_overlap():
    assert held_twice([Hold("a", 1, 9), Hold("a", 2, 3), Hold("a", 4, 5)]) == 2


def test_seven_in_ten_urls_of_a_batch_are_known():
    workload = Workload(100)
    known = {workload.item(number).url for number in range(5000)}
    batch = next(workload.batches(1000, 5000, client=0))
    assert sum(item.url in known for item in batch) == 700


def test_clients_never_put_the_same_new_urls():
    workload = Workload(100)
    known = {workload.item(number).url for number in range(50)}
    first, second = (
        {item.url for item in next(workload.batches(100, 50, client))} - known for client in (0, 1)
    )
    assert first.isdisjoint(second)


def test_the_first_host_has_about_as_many_urls_as_the_law_says():
    workload = Workload(100)
    share = sum(workload.host(number) == 0 for number in range(20_000)) / 20_000
    assert share == pytest.approx(1 / sum(1 / rank for rank in range(1, 101)), rel=0.1)


def test_a_load_that_differs_from_a_put_is_refused(clean_database):
    class Boastful(Workload):
        def item(self, number):
            return msgspec.structs.replace(super().item(number), depth=1)

    with closing(clean_database.session()) as session:
        frontier = PostgresFrontier(session, same_url=str.__eq__)
        with pytest.raises(DatabaseError, match="loads other rows"):
            check_load(session, frontier, Boastful(10), 50)


def test_a_folder_with_something_in_it_is_not_taken_for_ground(tmp_path):
    (tmp_path / "precious").touch()
    with pytest.raises(UsageError, match="not empty"), workspace(tmp_path):
        pass


def test_the_ground_is_gone_and_its_server_too(tmp_path):
    with workspace(tmp_path / "new") as folder:
        Database(folder).close()
    assert not folder.exists()
    assert processes_in(folder) == []


@pytest.mark.nightly
def test_the_service_is_measured_phase_by_phase():
    lines = []
    report = service.run(2000, (200,), None, ("--no-sync", "DEFAULT"), lines.append)
    (run,) = report["runs"]
    urls = {phase.name: phase.urls for phase in run.phases["tamias"]}
    assert urls.pop("get 100x10") + urls.pop("drain") == 3000
    assert urls == {
        "serial puts": 1000,
        "put stream": 500,
        "re-put stream": 500,
        "completion": 500,
        "put batch": 1500,
        "re-put batch": 1500,
    }
    assert run.memory["tamias"] > 0
    assert [each["met"] for each in report["targets"]] == [None] * 8

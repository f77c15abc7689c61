"""The benchmark of the service, small: what it fills is served, every page is found, silence is dropped."""

import json
import subprocess
import sys
from contextlib import closing
from urllib.request import urlopen

import msgspec
import pytest

from benchmarks.measuring.ports import free_ports
from benchmarks.serve import page_times
from benchmarks.serve.fill import Filled, fill
from benchmarks.serve.load import RouteLoad, load, wrk
from benchmarks.serve.pages import measure_pages
from benchmarks.serve.report import Route, ServeReport
from benchmarks.serve.servers import bare, service
from benchmarks.serve.silence import Silence, silence
from tamias.database.connect import Database

SMALL = Filled(300, 1200)
SILENT = 2000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The real service over a small archive."""
    data = tmp_path_factory.mktemp("served") / "data"
    with closing(Database(data)) as database:
        fill(database, data, SMALL, lambda: None, 20)
    with service(data, *free_ports(1)) as server:
        yield server


def asked(server, path):
    with urlopen(f"{server.address}{path}", timeout=30) as answer:
        return answer.read()


def test_the_archive_has_as_many_datasets_and_versions_as_were_wanted(server):
    figures = json.loads(asked(server, "/api/v1/stats/basic"))
    assert (figures["datasets"], figures["versions"]) == (SMALL.datasets, SMALL.versions)


def test_a_dataset_of_the_archive_has_versions_whose_bytes_are_there(server):
    versions = json.loads(asked(server, f"/api/v1/get/dataset/{SMALL.url(7)}"))["versions"]
    sizes = [len(asked(server, f"/api/v1/get/file/id/{each['id']}")) for each in versions]
    assert sizes == [each["byte_size"] for each in versions]


def test_every_page_of_the_benchmark_is_found(server):
    assert {page.name: page.status for page in measure_pages(server, SMALL) if page.status != 200} == {}


@pytest.mark.skipif(wrk() is None, reason="wrk is not installed")
def test_requests_are_counted_with_their_processor_time(server):
    found = load(server, "dataset", [f"/api/v1/get/dataset/{SMALL.url(number)}" for number in range(50)], 1)
    assert found.errors == 0
    assert 0 < found.cpu_ms <= found.all_cpu_ms


@pytest.mark.skipif(wrk() is None, reason="wrk is not installed")
def test_answers_that_are_refusals_count_as_errors(server):
    assert load(server, "missing", ["/api/v1/get/dataset/http://nowhere.example/"], 1).errors > 0


def test_the_peer_answers_by_itself():
    with bare() as peer:
        assert asked(peer, "/") == b'{"ok":true}'


def test_connections_that_send_nothing_are_dropped_while_others_are_answered(server):
    found = silence(server, SILENT)
    assert found.connections > 0
    assert found.dropped == found.connections
    assert found.answered == found.asked > 0


def test_a_ratio_below_the_target_is_told_as_missed():
    slow = RouteLoad(
        name="dataset JSON", per_second=10, p50_ms=1, p99_ms=2, errors=0, cpu_ms=1, all_cpu_ms=1, bytes=9
    )
    report = ServeReport(
        datasets=1, versions=1, catalogue=1, filled_seconds=0,
        bare=msgspec.structs.replace(slow, name="bare", per_second=100),
        routes=[Route(load=slow, json=True, ratio=0.1, cpu_ratio=0.1)], pages=[],
        silence=Silence(connections=1, dropped=1, dropped_after=0, answered=1, asked=1, slowest_ms=1),
    )  # fmt: skip
    assert "target: dataset JSON beside bare: at least 0.3 x (0.10 x): MISSED" in map(str, report.targets)


def test_the_verb_tells_its_options():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "serve", "--help"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "--datasets" in done.stdout


def test_every_page_over_datasets_and_documents_is_timed():
    said = []
    report = page_times.run(100, 300, 400, repeats=2, out=said.append)
    assert [each for each in report["pages"] if each["status"] != 200] == []
    assert {"overview", "datasets", "documents", "document", "graph"} <= {
        each["name"] for each in report["pages"]
    }
    assert "400 documents" in said[1]

"""The benchmark of the pages, small: what it fills is served, and every page is found and timed."""

import json
from contextlib import closing
from urllib.request import urlopen

import pytest

from benchmarks.measuring.children import free_ports
from benchmarks.serve import page_times
from benchmarks.serve.fill import Filled, fill
from tamias.database.connect import Database

pytestmark = pytest.mark.nightly

SMALL = Filled(300, 1200)


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """`ask(path)`: what the real service says over a small archive."""
    data = tmp_path_factory.mktemp("served") / "data"
    with closing(Database(data)) as database:
        fill(database, data, SMALL)
    (port,) = free_ports(1)

    def asked(path):
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.read()

    with page_times.service(data, port):
        yield asked


def test_the_archive_has_as_many_datasets_and_versions_as_were_wanted(ask):
    figures = json.loads(ask("/api/v1/stats/basic"))
    assert (figures["datasets"], figures["versions"]) == (SMALL.datasets, SMALL.versions)


def test_a_dataset_of_the_archive_has_versions_whose_bytes_are_there(ask):
    versions = json.loads(ask(f"/api/v1/get/dataset/{SMALL.url(7)}"))["versions"]
    sizes = [len(ask(f"/api/v1/get/file/id/{each['id']}")) for each in versions]
    assert sizes == [each["byte_size"] for each in versions]


def test_every_page_over_datasets_and_documents_is_timed():
    said = []
    report = page_times.run(100, 300, 400, repeats=2, out=said.append)
    assert [each for each in report["pages"] if each["status"] != 200] == []
    assert {"overview", "datasets", "documents", "document", "graph"} <= {
        each["name"] for each in report["pages"]
    }
    assert "400 documents" in said[1]

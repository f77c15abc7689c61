"""The benchmark of captures on a handful of files: every version is there, and every process is told of."""

import pytest

from benchmarks.archive.captures import run, small_file

pytestmark = pytest.mark.nightly


def test_the_cost_of_captures_is_told_by_process():
    said = []
    report = run(resources=6, hosts=2, out=said.append)
    assert [each["version"] for each in report["rounds"]] == [1, 2]
    for each in report["rounds"]:
        assert each["captures"] == 6
        assert {"postgres", "tamias", "tamias.crawl.worker"} <= set(each["cpu_ms"]), each
    assert [line.partition(":")[0] for line in said[:2]] == ["version 1", "version 2"]


def test_versions_of_a_file_differ_in_a_few_rows():
    first, second = (set(small_file(7, version).splitlines()) for version in (0, 1))
    assert (len(first - second), len(second - first)) == (2, 3)

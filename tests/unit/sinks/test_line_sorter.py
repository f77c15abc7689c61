"""Lines come out in the order of their bytes, each once, however little memory there is."""

import os
import random
import subprocess

import pytest

from tamias.features.exports.line_sorter import LineSorter


def some_lines(count):
    chance = random.Random(7)
    letters = 'ab\u00e9\u20ac\U0001f600 "\r\x0b\x85'
    return ["".join(chance.choices(letters, k=chance.randrange(12))).encode() + b"\n" for _ in range(count)]


@pytest.mark.parametrize(("run_bytes", "most_runs"), [(200, 3), (2000, 5), (1 << 20, 64)])
def test_lines_are_sorted_as_sort_does_it(tmp_path, run_bytes, most_runs):
    lines = some_lines(3000)
    sorter = LineSorter(tmp_path / "runs", run_bytes, most_runs)
    for start in range(0, len(lines), 100):
        sorter.add(lines[start : start + 100])
    expected = subprocess.run(
        ["sort", "-u"],
        input=b"".join(lines),
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    ).stdout
    assert b"".join(sorter.pieces()) == expected
    assert b"".join(sorter.lines()) == expected
    assert len(list((tmp_path / "runs").glob("*"))) < most_runs
    sorter.clear()
    assert list(sorter.lines()) == list(tmp_path.glob("runs/*")) == []


def test_a_few_lines_need_no_disk(tmp_path):
    sorter = LineSorter(tmp_path / "runs")
    sorter.add([b"b\n", b"a\n", b"b\n"])
    assert list(sorter.lines()) == [b"a\n", b"b\n"]
    assert not (tmp_path / "runs").exists()

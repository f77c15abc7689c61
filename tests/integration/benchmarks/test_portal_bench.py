"""The portal benchmark on few datasets: what it reads is whole, whatever the figures are."""

import msgspec
import pytest

from benchmarks.harvesters.portal import run
from benchmarks.harvesters.portal.server import package


@pytest.fixture(scope="module")
def measured():
    """What a small run printed and what it gave."""
    said = []
    return run(1200, 300, said.append), said


def test_both_portals_are_read_whole(measured):
    assert [measured[0][size]["datasets"] for size in ("small", "large")] == [300, 1200]
    assert measured[0]["large"]["complete"]
    assert measured[0]["large"]["problems"] == 0


def test_the_plain_loop_reads_the_same_datasets(measured):
    assert measured[0]["loop"]["datasets"] == 1200


def test_every_target_is_told(measured):
    assert sum("target:" in line for line in measured[1]) == 2


def test_the_packages_are_json_of_a_usual_size():
    record = package(7)
    assert msgspec.json.decode(record)["name"] == "trees-7"
    assert 2_000 < len(record) < 5_000

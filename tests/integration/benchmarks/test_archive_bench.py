"""The archive benchmark on little data: what it keeps comes back, whatever the figures are."""

import json
import shutil

import pytest

from benchmarks.archive import run
from benchmarks.archive.corpus import FORMS, versions
from benchmarks.archive.peers import Skipped, peers


@pytest.fixture(scope="module")
def measured():
    """What a small run printed and what it gave."""
    said = []
    return run(300_000, 3, 60, said.append), said


def test_every_dataset_is_measured(measured):
    assert [row["form"] for row in measured[0]["datasets"]] == [form.name for form in FORMS]


def test_later_versions_lean_on_earlier_ones(measured):
    assert {row["tamias"]["codecs"][0] for row in measured[0]["datasets"]} == {"zstd"}
    assert {codec for row in measured[0]["datasets"] for codec in row["tamias"]["codecs"][1:]} <= {
        "zdelta",
        "rows",
    }


def test_versions_are_smaller_than_file_by_file(measured):
    assert all(row["tamias"]["stored"] < row["zstd"]["stored"] for row in measured[0]["datasets"])


def test_small_resources_are_kept(measured):
    small = measured[0]["small"]
    assert (small["resources"], small["bytes"] > 120 * 45_000) == (60, True)
    assert 0 < small["stored"] < small["bytes"]


def test_every_target_is_told_with_its_verdict(measured):
    told = [line for line in measured[1] if line.startswith("target:")]
    assert len(told) == len(measured[0]["targets"]) == 13
    assert all(line.endswith((": met", ": MISSED")) for line in told)


def test_the_figures_are_json(measured):
    assert json.loads(json.dumps(measured[0])) == measured[0]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_the_same_words_give_the_same_versions(form):
    assert list(versions(form, 20_000, 3)) == list(versions(form, 20_000, 3))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_version_has_about_the_size_that_was_asked_for(form):
    assert all(450_000 < len(body) < 550_000 for body in versions(form, 500_000, 2))


def test_a_peer_that_is_absent_is_skipped_with_a_reason(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_args, **_options: None)
    assert Skipped("restic", "it is not installed (Debian: apt-get install restic)") in peers()

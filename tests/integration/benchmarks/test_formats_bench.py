"""The formats benchmark on a few triples: what it reads is whole, whatever the figures are."""

import json
import shutil

import pytest

from benchmarks.formats import peers, run
from benchmarks.formats.corpus import FORMS, triples, written

FEW = 1500


@pytest.fixture(scope="module")
def measured():
    """What a small run printed and what it gave."""
    said = []
    return run(FEW, said.append, dump_triples=20_000), said


def test_every_format_is_read_whole(measured):
    assert [row["fault"] for row in measured[0]["formats"]] == [""] * len(FORMS)


def test_every_format_of_pyoxigraph_is_compared_with_it(measured):
    compared = [row["form"] for row in measured[0]["formats"] if row["ratio"]]
    assert compared == ["N-Triples", "N-Quads", "Turtle", "TriG", "RDF/XML", "JSON-LD"]


def test_the_whole_dump_is_read(measured):
    assert (measured[0]["dump"]["triples"], measured[0]["dump"]["problems"]) == (20_000, [])


def test_the_memory_of_the_dump_is_that_of_its_own_process(measured):
    assert 10_000_000 < measured[0]["dump"]["peak_bytes"] < 200_000_000


def test_pages_are_read_with_or_without_extruct(measured):
    html = measured[0]["html"]
    assert html["four_syntaxes"] > 0
    assert (html["extruct"] is None) == (html["skipped"] is not None)


def test_every_target_is_told_with_its_verdict(measured):
    told = [line for line in measured[1] if line.startswith("target:")]
    assert len(told) == len(measured[0]["targets"]) == 9
    assert all(line.endswith((": met", ": MISSED", ": NOT MEASURED")) for line in told)


def test_the_figures_are_json(measured):
    assert json.loads(json.dumps(measured[0])) == measured[0]


def test_the_same_count_gives_the_same_triples():
    assert list(triples(100)) == list(triples(100))


@pytest.mark.parametrize("form", FORMS[:2], ids=lambda form: form.name)
def test_the_same_count_gives_the_same_bytes(form):
    assert written(form, 100) == written(form, 100)


def test_a_peer_that_is_absent_is_skipped_with_a_reason(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_args, **_options: None)
    assert peers.Skipped("serdi", "it is not installed (Debian: apt-get install serdi)") in peers.peers()

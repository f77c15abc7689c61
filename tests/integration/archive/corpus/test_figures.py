"""Figures of the corpus, against rows that are known."""

import msgspec
import pytest

from tamias.features.stats import figures
from tamias.features.stats.figures import Basic, basic_figures, read_figures
from tamias.model.capture import Outcome

MINUTE = 60_000
HOUR = 60 * MINUTE


@pytest.fixture
def filled(corpus, source):
    """Three resources on two hosts, five versions, two of them with the same body."""
    first = corpus.watch("http://a.example/1.csv", source("x"))
    second = corpus.watch("http://a.example/2.csv", source("x"), source("y"))
    third = corpus.watch("http://b.example/3.json", source("z"))
    corpus.keep(first, b"1" * 100)
    corpus.keep(first, b"2" * 200)
    corpus.keep(second, b"1" * 100)
    corpus.keep(third, b"3" * 1000, "application/json")
    corpus.keep(third, b"4" * 10_000, "application/json", at=corpus.now - 48 * HOUR)
    return corpus


EXPECTED = Basic(datasets=3, versions=5, hosts=2, sources=3, bytes=11_400, stored_bytes=11_300 + 4 * 50)


def test_an_empty_archive_has_zeros(corpus):
    assert basic_figures(corpus.session) == Basic(0, 0, 0, 0, 0, 0)


def test_figures_of_an_empty_archive_are_json(corpus):
    assert msgspec.json.decode(msgspec.json.encode(read_figures(corpus.session)))["sizes"] == []


def test_the_basic_figures_count_what_is_there(filled):
    assert basic_figures(filled.session) == EXPECTED


def test_folding_changes_no_figure(filled, monkeypatch):
    monkeypatch.setattr(figures, "FOLD_AT", 1)
    read_figures(filled.session)
    left = filled.execute("SELECT count(*) FROM tally_news")
    assert (left, basic_figures(filled.session)) == ([(0,)], EXPECTED)


def test_what_is_added_after_folding_counts(filled, monkeypatch):
    monkeypatch.setattr(figures, "FOLD_AT", 1)
    read_figures(filled.session)
    filled.keep(filled.watch("http://c.example/"), b"5" * 10)
    found = basic_figures(filled.session)
    assert (found.datasets, found.hosts, found.versions, found.bytes) == (4, 3, 6, 11_410)


def test_counting_anew_gives_what_was_kept(filled):
    filled.execute("SELECT recount()")
    assert basic_figures(filled.session) == EXPECTED


def test_what_is_named_again_counts_once(filled, source):
    filled.watch("http://a.example/1.csv", source("x"))
    assert basic_figures(filled.session) == EXPECTED


def test_what_is_deleted_counts_no_more(filled):
    filled.execute("DELETE FROM resource WHERE host = 'a.example'")
    filled.execute("DELETE FROM blob")
    assert basic_figures(filled.session) == Basic(1, 2, 1, 1, 11_000, 0)


def test_a_blob_that_is_coded_anew_counts_with_its_new_length(filled):
    filled.execute("UPDATE blob SET length = length - 10")
    assert basic_figures(filled.session).stored_bytes == EXPECTED.stored_bytes - 40


def test_hosts_are_told_in_the_order_of_their_datasets(filled):
    assert [(each.host, each.datasets) for each in read_figures(filled.session).hosts] == [
        ("a.example", 2),
        ("b.example", 1),
    ]


def test_so_many_hosts_are_told_as_asked_for(filled):
    assert len(read_figures(filled.session, top=1).hosts) == 1


def test_sizes_are_told_to_five_per_cent(filled):
    below = {each.share: each.below for each in read_figures(filled.session).sizes}
    assert 200 < below[0.5] <= 1.05 * 201
    assert 10_000 < below[0.99] <= 1.05 * 10_001


def test_types_are_told_overall_and_of_the_last_day(filled):
    found = read_figures(filled.session)
    assert [(each.media_type, each.versions) for each in found.types] == [
        ("text/csv", 3),
        ("application/json", 2),
    ]
    assert [(each.media_type, each.versions) for each in found.latest_types] == [
        ("text/csv", 3),
        ("application/json", 1),
    ]


def test_storage_is_told_raw_and_kept(filled):
    storage = read_figures(filled.session).storage
    assert (storage.bytes, storage.stored_bytes, storage.mean_size, storage.blobs) == (
        11_400,
        11_500,
        2280,
        4,
    )


def test_states_and_what_is_due_are_told(filled):
    resources = [row[0] for row in filled.execute("SELECT resource FROM resource ORDER BY url")]
    filled.visit(resources[0])
    filled.visit(resources[1], state="gone")
    states = read_figures(filled.session).states
    assert (states.active, states.gone, states.stopped, states.due, states.exact) == (2, 1, 0, 2, True)


def test_very_many_resources_are_told_from_a_sample(filled, monkeypatch):
    monkeypatch.setattr(figures, "SAMPLED_RESOURCES", 1)
    states = read_figures(filled.session).states
    assert (states.exact, states.gone) == (False, 0)


def test_attempts_of_the_last_day_are_told_by_outcome(corpus):
    corpus.attempt(Outcome.OK, at=corpus.now - 23 * HOUR, size=3000, took=2000)
    corpus.attempt(Outcome.OK, at=corpus.now - MINUTE, size=1000, took=4000)
    corpus.attempt(Outcome.FAILED, at=corpus.now - 12 * HOUR)
    corpus.attempt(Outcome.OK, at=corpus.now - 30 * HOUR, size=10**9)
    found = read_figures(corpus.session)
    told = [(each.outcome, each.attempts, each.bytes, each.seconds) for each in found.attempts]
    assert (told, found.seconds) == ([("ok", 2, 4000, 3.0), ("failed", 1, 0, 1.0)], 3.0)


def test_looking_again_tells_the_same_attempts(corpus):
    for hours in range(30):
        corpus.attempt(Outcome.OK, at=corpus.now - hours * HOUR - MINUTE, size=hours)
    first = read_figures(corpus.session).attempts
    assert read_figures(corpus.session).attempts == first


def test_a_new_attempt_is_told_at_once(corpus):
    read_figures(corpus.session)
    corpus.attempt(Outcome.UNCHANGED, at=corpus.now)
    assert [each.outcome for each in read_figures(corpus.session).attempts] == ["unchanged"]


def test_traffic_is_told_in_the_mean_and_at_its_busiest(corpus):
    for _ in range(3):
        corpus.attempt(Outcome.OK, at=corpus.now - 5 * HOUR, size=86_400)
    corpus.attempt(Outcome.OK, at=corpus.now - 3 * HOUR, size=86_400)
    traffic = read_figures(corpus.session).traffic
    assert (traffic.mean, traffic.busiest) == (4.0, 3 * 86_400 / 300)


def test_attempts_older_than_a_day_are_not_kept_in_slots(corpus):
    old = (corpus.now - 48 * HOUR) // 300_000
    corpus.execute("INSERT INTO attempts VALUES (0, %s, 1, 1, 1, 1)", [old])
    read_figures(corpus.session)
    assert corpus.execute("SELECT count(*) FROM attempts WHERE slot = %s", [old]) == [(0,)]

"""Lines: the least difference on small texts, near it on large ones."""

import random
import tracemalloc
from array import array

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamias.features.diffs import lines
from tamias.features.diffs.alignment import gaps
from tamias.model.diff import Change, DiffKind, What
from tests.examples import examples
from tests.messages import unsaid

TEXT = "text/plain"
words = st.text(alphabet="abcd", max_size=14)


@given(old=words, new=words)
def test_taking_the_gaps_from_the_new_text_gives_the_new_text(old, new):
    made, at = [], 0
    for gap in gaps(array("q", map(ord, old)), array("q", map(ord, new))):
        made += old[at : gap.old.start] + new[gap.new]
        at = gap.old.stop
    assert "".join(made) + old[at:] == new


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=40), st.data())
def test_of_different_lines_no_more_is_told_than_changed(items, data):
    kept = [item for item in items if data.draw(st.booleans())]
    found = list(gaps(array("q", items), array("q", kept)))
    assert sum(gap.old.stop - gap.old.start for gap in found) == len(items) - len(kept)
    assert all(gap.new.start == gap.new.stop for gap in found)


@pytest.mark.nightly
def test_long_texts_take_little_memory_for_each_line_however_many_differ():
    chance = random.Random(1)
    old = array("q", (chance.getrandbits(60) for _ in range(100_000)))
    for step in (1000, 2):
        new = array("q", old)
        for place in range(0, len(new), step):
            new[place] += 1
        tracemalloc.start()
        try:
            count = sum(1 for _ in gaps(old, new))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert count == len(old) // step
        assert peak < 60 * len(old)


def test_lines_are_told_with_their_numbers(compared):
    found = compared("a\nb\nc\nd\n", "a\nB\nc\nd\ne", TEXT)
    assert found.kind is DiffKind.LINES
    assert found.changes == [
        Change(What.REMOVED, "2", "b", None),
        Change(What.ADDED, "2", None, "B"),
        Change(What.ADDED, "5", None, "e"),
    ]


def test_line_ends_are_not_content(counts):
    assert counts("a\nb\n", "a\r\nb", TEXT) == (DiffKind.LINES, 0, 0, 0)


def test_another_encoding_is_told(compared):
    found = compared("ä\n", "ä\nb\n".encode("cp1252"), TEXT)
    assert (found.added, found.removed) == (1, 0)
    [problem] = found.notes
    assert not unsaid(problem, "8")


def test_a_large_text_is_counted_exactly(counts):
    random_ = random.Random(3)
    old = [f"line {random_.randint(1, 10**12)}" for _ in range(100_000)]
    new = [line + " changed" if number % 1000 == 0 else line for number, line in enumerate(old)]
    new[500:500] = ["new"] * 40
    del new[70_001:70_011]
    assert counts("\n".join(old), "\n".join(new), TEXT) == (DiffKind.LINES, 140, 110, 0)


def test_a_large_text_of_few_different_lines_is_compared_in_time(counts):
    old = [random.Random(1).choice("ab") for _ in range(50_000)]
    kind, added, removed, _ = counts("\n".join(old), "\n".join(old[::-1]), TEXT)
    assert kind is DiffKind.LINES
    assert added == removed


def test_a_text_of_very_many_lines_is_compared_without_their_order(compared, monkeypatch):
    monkeypatch.setattr(lines, "MAX_ALIGNED", 4)
    found = compared("a\nb\nc\nd\ne\n", "e\nd\nc\nb\nb\n", TEXT)
    assert (found.added, found.removed) == (1, 1)
    [problem] = found.notes
    assert not unsaid(problem, "4")


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=st.lists(words, max_size=20), new=st.lists(words, max_size=20))
def test_the_counts_fit_the_lengths(counts, old, new):
    old_text, new_text = ("".join(f"{line}\n" for line in each) for each in (old, new))
    _, added, removed, _ = counts(old_text, new_text, TEXT)
    assert added - removed == len(new) - len(old)

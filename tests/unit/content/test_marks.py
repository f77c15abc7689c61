"""Marks find the bytes of a body wherever they are, and nothing else."""

import random

from hypothesis import given
from hypothesis import strategies as st

from tamias.features.forgetting.marks import MARK_BYTES, WINDOW, MarkSearch, make_marks

KEY = b"key"


def text(seed, words=2000):
    chance = random.Random(seed)
    return " ".join(f"{chance.getrandbits(40):x}" for _ in range(words)).encode()


def found(marks, content):
    return [number for number, *_ in MarkSearch(KEY, [(7, marks)]).find(content)]


def test_marks_are_found_at_any_place_of_any_content():
    body = text(1)
    marks = make_marks(KEY, body)
    assert len(marks) == 32 * MARK_BYTES
    assert len(found(marks, b"x" * 1_048_570 + body + b"y" * 100)) == 32
    assert found(marks, text(2)) == []


def test_marks_are_of_what_others_do_not_have():
    before, own, after = (
        text(1),
        b"Zaphod Beeblebrox lives at 42 Heart of Gold Street, Magrathea, and nowhere else",
        text(3),
    )
    body = before + own + after
    marks = make_marks(KEY, body, [before + after])
    assert marks
    assert found(marks, before + after) == []
    assert found(marks, b"..." + own + b"...")


def test_what_has_nothing_of_its_own_has_no_marks():
    assert make_marks(KEY, text(1), [text(1)]) == b""
    assert make_marks(KEY, b"short") == b""
    assert make_marks(KEY, b"0" * 10_000) == b""


def test_another_key_finds_nothing():
    marks = make_marks(KEY, text(1))
    assert list(MarkSearch(b"other", [(7, marks)]).find(text(1))) == []


@given(st.binary(max_size=3 * WINDOW), st.integers(0, 1000))
def test_a_window_is_found_behind_anything(before, seed):
    body = text(seed, 30)
    marks = make_marks(KEY, body)
    assert found(marks, before + body)

"""Lines of one text are found in another, and never a line that is not the same."""

import random

import pytest

from tamias.archive.blobs.lines import LineStarts, match

WORDS = [b"a", b"ab", b"abcdefgh", b"abcdefghi", b"", b"\x00", b"a\x00", b"\r", b"x" * 40]


def found(text, known):
    return match(LineStarts(text), LineStarts(known)).tolist()


def test_each_line_has_the_number_of_the_same_line():
    assert found(b"c\na\nb", b"a\nb\nc") == [3, 1, 2]


def test_a_line_that_is_new_has_none():
    assert found(b"a\nnew\n", b"a\nb\n") == [1, 0, 3]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_found_is_the_same_and_nothing_is_missed(seed):
    chance = random.Random(seed)
    text, known = (b"\n".join(chance.choices(WORDS, k=chance.randrange(1, 200))) for _ in range(2))
    lines, others = text.split(b"\n"), known.split(b"\n")
    for line, number in zip(lines, found(text, known), strict=True):
        assert (number == 0) == (line not in others)
        assert number == 0 or others[number - 1] == line


def test_lines_that_end_in_zeros_are_told_apart():
    assert found(b"a\x00\na", b"a\na\x00") == [2, 1]


def test_texts_with_a_line_much_longer_than_the_others_are_left_to_others():
    text = b"\n".join([b"short"] * 10_000 + [b"x" * 100_000])
    assert match(LineStarts(text), LineStarts(text)) is None

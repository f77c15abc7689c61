"""Where two long sequences differ, found by what stands once in both: close to the least, in little time."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

CLOSE_LOOK = 20_000_000
"""Pairs of items that may be compared closely, over all gaps."""
_LARGEST_GAP = 2_000


class Gap(NamedTuple):
    """A stretch of the old sequence and what stands there in the new one; one of them may be empty."""

    old: slice
    new: slice


def gaps(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Gap]:
    """All stretches that differ, in order.

    >>> [(gap.old.start, gap.old.stop, gap.new.start, gap.new.stop) for gap in gaps("abcd", "xbd")]
    [(0, 1, 0, 1), (2, 3, 2, 2)]
    """
    left = CLOSE_LOOK
    found: list[Gap] = []
    for gap in _between_anchors(old, new):
        gap = _trimmed(old, new, gap)  # noqa: PLW2901
        lengths = gap.old.stop - gap.old.start, gap.new.stop - gap.new.start
        work = lengths[0] * lengths[1]
        if work and max(lengths) <= _LARGEST_GAP and work <= left:
            left -= work
            found += _closely(old, new, gap)
        elif any(lengths):
            found.append(gap)
    return found


def _between_anchors(old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[Gap]:
    whole = _trimmed(old, new, Gap(slice(0, len(old)), slice(0, len(new))))
    at_old, at_new = whole.old.start, whole.new.start
    for old_place, new_place in _anchors(old, new, whole):
        yield Gap(slice(at_old, old_place), slice(at_new, new_place))
        at_old, at_new = old_place + 1, new_place + 1
    yield Gap(slice(at_old, whole.old.stop), slice(at_new, whole.new.stop))


def _trimmed(old: Sequence[Hashable], new: Sequence[Hashable], gap: Gap) -> Gap:
    """Without what is the same at the beginning and at the end."""
    (start, end), (from_, to) = (gap.old.start, gap.old.stop), (gap.new.start, gap.new.stop)
    while start < end and from_ < to and old[start] == new[from_]:
        start, from_ = start + 1, from_ + 1
    while start < end and from_ < to and old[end - 1] == new[to - 1]:
        end, to = end - 1, to - 1
    return Gap(slice(start, end), slice(from_, to))


def _anchors(old: Sequence[Hashable], new: Sequence[Hashable], gap: Gap) -> list[tuple[int, int]]:
    """Pairs of places with what is there once in both, as many as come in the same order."""
    once_old, once_new = _once(old, gap.old), _once(new, gap.new)
    pairs = [(place, once_new[item]) for item, place in once_old.items() if item in once_new]
    return _rising(pairs)


def _once(items: Sequence[Hashable], part: slice) -> dict[Hashable, int]:
    counts = Counter(items[part])
    return {item: place for place, item in enumerate(items[part], part.start) if counts[item] == 1}


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run whose second places rise; the first ones do already."""
    ends: list[int] = []  # the smallest last second place of a run of each length
    at: list[int] = []
    before: list[int] = []
    for number, (_, second) in enumerate(pairs):
        length = bisect_left(ends, second)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [second]
        at[length : length + 1] = [number]
    run: list[tuple[int, int]] = []
    number = at[-1] if at else -1
    while number >= 0:
        run.append(pairs[number])
        number = before[number]
    return run[::-1]


def _closely(old: Sequence[Hashable], new: Sequence[Hashable], gap: Gap) -> Iterator[Gap]:
    matcher = SequenceMatcher(None, old[gap.old], new[gap.new], autojunk=False)
    for word, start, end, from_, to in matcher.get_opcodes():
        if word != "equal":
            yield Gap(
                slice(gap.old.start + start, gap.old.start + end),
                slice(gap.new.start + from_, gap.new.start + to),
            )

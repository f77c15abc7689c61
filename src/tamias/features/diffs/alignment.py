"""Differences of two long sequences, aligned by items that occur once in both: nearly minimal, and fast."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

CLOSE_LOOK = 20_000_000
"""Pairs of items that may be compared closely, over all gaps."""
_LARGEST_GAP = 2_000

Items: TypeAlias = "array[int]"
"""Digests: eight bytes for each, since there may be millions."""

Places: TypeAlias = "array[int]"
"""Of four bytes each; sequences are shorter than that (`_PLACE` is the type of C that has them)."""
_PLACE = "I"


class Gap(NamedTuple):
    """A stretch of the old sequence and what stands there in the new one; one of them may be empty."""

    old: slice
    new: slice


def gaps(old: Items, new: Items) -> Iterator[Gap]:
    """Yield the stretches that differ, in order; there may be a million.

    >>> found = gaps(array("q", [1, 2, 3, 4]), array("q", [9, 2, 4]))
    >>> [(gap.old.start, gap.old.stop, gap.new.start, gap.new.stop) for gap in found]
    [(0, 1, 0, 1), (2, 3, 2, 2)]
    """
    left = CLOSE_LOOK
    for gap in _between_anchors(old, new):
        gap = _trimmed(old, new, gap)  # noqa: PLW2901
        lengths = gap.old.stop - gap.old.start, gap.new.stop - gap.new.start
        work = lengths[0] * lengths[1]
        if work and max(lengths) <= _LARGEST_GAP and work <= left:
            left -= work
            yield from _closely(old, new, gap)
        elif any(lengths):
            yield gap


def _between_anchors(old: Items, new: Items) -> Iterator[Gap]:
    whole = _trimmed(old, new, Gap(slice(0, len(old)), slice(0, len(new))))
    at_old, at_new = whole.old.start, whole.new.start
    for old_place, new_place in _anchors(old, new, whole):
        yield Gap(slice(at_old, old_place), slice(at_new, new_place))
        at_old, at_new = old_place + 1, new_place + 1
    yield Gap(slice(at_old, whole.old.stop), slice(at_new, whole.new.stop))


def _trimmed(old: Items, new: Items, gap: Gap) -> Gap:
    """Return a gap without the items that are equal at its beginning and at its end."""
    (start, end), (from_, to) = (gap.old.start, gap.old.stop), (gap.new.start, gap.new.stop)
    while start < end and from_ < to and old[start] == new[from_]:
        start, from_ = start + 1, from_ + 1
    while start < end and from_ < to and old[end - 1] == new[to - 1]:
        end, to = end - 1, to - 1
    return Gap(slice(start, end), slice(from_, to))


def _anchors(old: Items, new: Items, gap: Gap) -> Iterator[tuple[int, int]]:
    """Pairs of places with what is there once in both, as many as come in the same order."""
    firsts, seconds = _once_in_both(old, new, gap)
    return ((firsts[number], seconds[number]) for number in _rising(seconds))


def _once_in_both(old: Items, new: Items, gap: Gap) -> tuple[Places, Places]:
    """Return the places of items that occur once in both: in the old sequence, in order, and the new one."""
    (once_old, old_places), (once_new, new_places) = _once(old, gap.old), _once(new, gap.new)
    if not len(once_new):
        return array(_PLACE), array(_PLACE)
    at_new = np.minimum(np.searchsorted(once_new, once_old), len(once_new) - 1)
    both = once_new[at_new] == once_old
    del once_old, once_new
    old_places, new_places = old_places[both], new_places[at_new[both]]
    del at_new, both
    order = np.argsort(old_places)
    return array(_PLACE, old_places[order].tobytes()), array(_PLACE, new_places[order].tobytes())


def _once(items: Items, part: slice) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the items that occur once, sorted, and their places."""
    found = np.asarray(items, np.int64)[part]
    order = np.argsort(found).astype(np.uint32)
    found = found[order]
    differs = np.ones(len(found) + 1, bool)
    differs[1:-1] = found[1:] != found[:-1]
    once = differs[1:] & differs[:-1]
    return found[once], order[once] + np.uint32(part.start)


def _rising(places: Places) -> Places:
    """The numbers of the longest run of places that rise."""
    ends = array(_PLACE)  # the smallest last place of a run of each length
    at = array(_PLACE)
    before = array("q")
    for number, place in enumerate(places):
        length = bisect_left(ends, place)
        before.append(at[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            at.append(number)
        else:
            ends[length], at[length] = place, number
    run = array(_PLACE)
    number = at[-1] if at else -1
    while number >= 0:
        run.append(number)
        number = before[number]
    run.reverse()
    return run


def _closely(old: Items, new: Items, gap: Gap) -> Iterator[Gap]:
    matcher = SequenceMatcher(None, old[gap.old], new[gap.new], autojunk=False)
    for word, start, end, from_, to in matcher.get_opcodes():
        if word != "equal":
            yield Gap(
                slice(gap.old.start + start, gap.old.start + end),
                slice(gap.new.start + from_, gap.new.start + to),
            )

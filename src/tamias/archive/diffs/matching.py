"""Which of two long lists of digests have no partner in the other; eight bytes are held for each."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.int64]
Places = NDArray[np.intp]


class Matched(NamedTuple):
    """Places in the old and in the new list."""

    removed: Places
    added: Places
    changed: list[tuple[int, int]]


def surplus(ours: Digests, theirs: Digests) -> Places:
    """The places in `ours` of what `theirs` has less often, in order.

    >>> surplus(np.array([5, 7, 5, 9]), np.array([5, 9])).tolist()
    [1, 2]
    """
    order = np.argsort(ours, kind="stable")
    sorted_ours, sorted_theirs = ours[order], np.sort(theirs)
    first = np.searchsorted(sorted_ours, sorted_ours, "left")
    rank = np.arange(len(ours)) - first
    there = np.searchsorted(sorted_theirs, sorted_ours, "right") - np.searchsorted(
        sorted_theirs, sorted_ours, "left"
    )
    return np.sort(order[rank >= there])


def by_key(old_keys: Digests, old_rows: Digests, new_keys: Digests, new_rows: Digests) -> Matched:
    """Matches rows by keys, each of which is there once."""
    _, old_places, new_places = np.intersect1d(old_keys, new_keys, assume_unique=True, return_indices=True)
    differ = old_rows[old_places] != new_rows[new_places]
    changed = sorted(zip(old_places[differ].tolist(), new_places[differ].tolist(), strict=True))
    return Matched(_others(len(old_keys), old_places), _others(len(new_keys), new_places), changed)


def _others(length: int, places: Places) -> Places:
    left = np.ones(length, dtype=bool)
    left[places] = False
    return np.flatnonzero(left)


def by_content(old_rows: Digests, new_rows: Digests) -> Matched:
    """Matches equal rows, as often as both have them, in any order."""
    return Matched(surplus(old_rows, new_rows), surplus(new_rows, old_rows), [])


def repeated(keys: Digests) -> int:
    """How many are there more than once, beyond the first."""
    return len(keys) - len(np.unique(keys))


def shared(old_keys: Digests, new_keys: Digests) -> int:
    """How many are in both."""
    return len(np.intersect1d(old_keys, new_keys, assume_unique=True))

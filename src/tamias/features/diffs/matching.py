"""Search for the items of two long lists that have no partner in the other, by digests of eight bytes.

Digests beyond a few megabytes are written to files without a name, which are gone with their process, and
compared a part at a time, so that lists of any length take little memory.
"""

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Digests = NDArray[np.int64]
Places = NDArray[np.intp]

HELD_BYTES = 4 << 20
"""Of one list; longer ones are on disk."""
PIECE = 1 << 18
"""Digests read at once."""
PART = 1 << 19
"""Digests of one list compared at once, about."""


class DigestList:
    """Digests in the order of what they are of."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=HELD_BYTES, prefix="tamias-diff-")  # noqa: SIM115
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def extend(self, digests: Digests) -> None:
        """Adds digests at the end."""
        self._file.write(digests.tobytes())
        self._length += len(digests)

    def pieces(self) -> Iterator[Digests]:
        """Yield all digests in pieces, for one reader at a time."""
        self._file.seek(0)
        while data := self._file.read(8 * PIECE):
            yield np.frombuffer(data, np.int64)

    def whole(self) -> "array[int]":
        """Return all digests at once."""
        return array("q", b"".join(piece.tobytes() for piece in self.pieces()))


def write_digests(lists: list[DigestList], digests: Iterable[int]) -> None:
    """Deals out digests that come in turn, one for each list."""
    flat = iter(digests)
    while len(block := np.fromiter(islice(flat, PIECE * len(lists)), np.int64)):
        for place, each in enumerate(lists):
            each.extend(block[place :: len(lists)])


def items_at(items: Iterator[T], places: Iterable[int]) -> dict[int, T]:
    """Return the items at some places, by these."""
    found: dict[int, T] = {}
    read = 0
    for place in sorted(places):
        found[place] = next(islice(items, place - read, None))
        read = place + 1
    return found


class _Part(NamedTuple):
    """The digests that end in some bits."""

    number: int
    mask: int

    def of(self, digests: DigestList, *beside: DigestList) -> Iterator[list[Digests]]:
        """Places, digests, and what other lists have at these places; piece by piece."""
        start = 0
        for piece, *others in zip(digests.pieces(), *(each.pieces() for each in beside), strict=True):
            there = np.flatnonzero(piece & self.mask == self.number)
            yield [there + start, piece[there], *(other[there] for other in others)]
            start += len(piece)

    def distinct(self, digests: DigestList) -> Digests:
        """Return each digest once, without holding repeated ones in memory."""
        return np.unique(_joined(np.unique(piece) for _, piece in self.of(digests)))

    def counted(self, digests: DigestList) -> tuple[Digests, Digests]:
        """Return each digest once, and its counts."""
        found = [np.unique(piece, return_counts=True) for _, piece in self.of(digests)]
        distinct, at = np.unique(_joined(each for each, _ in found), return_inverse=True)
        counts = np.zeros(len(distinct), np.int64)
        np.add.at(counts, at, _joined(count for _, count in found))
        return distinct, counts


def _joined(pieces: Iterable[Digests]) -> Digests:
    return np.concatenate([np.empty(0, np.int64), *pieces])


def _parts(old: DigestList, new: DigestList) -> Iterator[_Part]:
    """Yield parts, enough of them that each is small."""
    parts = 1 << ((max(len(old), len(new)) - 1) // PART).bit_length() if old or new else 1
    return (_Part(number, parts - 1) for number in range(parts))


class FirstPlaces:
    """Counts places, or pairs of them, and keeps the first ones."""

    def __init__(self, most: int) -> None:
        self.count = 0
        self._most = most
        self._first: tuple[Places, ...] = ()

    def add(self, *places: Places) -> None:
        """Places of the first list, and with them those of the second where both have one."""
        self.count += len(places[0])
        if self._first:
            places = tuple(map(np.concatenate, zip(self._first, places, strict=True)))
        order = np.argsort(places[0])[: self._most]
        self._first = tuple(each[order] for each in places)

    def first(self, most: int) -> list[tuple[int, ...]]:
        """Return the first places, ordered by the place in the first list."""
        return list(zip(*(each[:most].tolist() for each in self._first), strict=True))


class Matched(NamedTuple):
    """The places without a partner in the old and in the new list, and of pairs that differ."""

    removed: FirstPlaces
    added: FirstPlaces
    changed: FirstPlaces


def by_key(old: tuple[DigestList, DigestList], new: tuple[DigestList, DigestList], most: int) -> Matched:
    """Matches rows by keys, each of which is there once; both sides are keys and rows."""
    found = Matched(FirstPlaces(most), FirstPlaces(most), FirstPlaces(most))
    for part in _parts(old[0], new[0]):
        was, old_keys, old_rows = map(_joined, zip(*part.of(*old), strict=True))
        now, new_keys, new_rows = map(_joined, zip(*part.of(*new), strict=True))
        _, at_old, at_new = np.intersect1d(old_keys, new_keys, assume_unique=True, return_indices=True)
        found.removed.add(np.delete(was, at_old))
        found.added.add(np.delete(now, at_new))
        differ = old_rows[at_old] != new_rows[at_new]
        found.changed.add(was[at_old[differ]], now[at_new[differ]])
    return found


def by_content(old: DigestList, new: DigestList, most: int) -> Matched:
    """Matches equal rows, as often as both have them, in any order."""
    found = Matched(FirstPlaces(most), FirstPlaces(most), FirstPlaces(most))
    for part in _parts(old, new):
        was, now = part.counted(old), part.counted(new)
        _add_surplus(found.removed, part.of(old), was, now)
        _add_surplus(found.added, part.of(new), now, was)
    return found


def _add_surplus(
    found: FirstPlaces,
    pieces: Iterator[list[Digests]],
    ours: tuple[Digests, Digests],
    theirs: tuple[Digests, Digests],
) -> None:
    """The last places of each digest that is there more often than in the other list."""
    matched = np.zeros(len(ours[0]), np.int64)
    _, at, at_theirs = np.intersect1d(ours[0], theirs[0], assume_unique=True, return_indices=True)
    matched[at] = theirs[1][at_theirs]
    more = ours[1] > matched
    digests, left = ours[0][more], matched[more]
    for places, piece in pieces if len(digests) else ():
        which = np.minimum(np.searchsorted(digests, piece), len(digests) - 1)
        is_more = digests[which] == piece
        order = np.argsort(which[is_more], kind="stable")
        which, at_places = which[is_more][order], places[is_more][order]
        rank = np.arange(len(which)) - np.searchsorted(which, which)
        found.add(at_places[rank >= left[which]])
        left = np.maximum(left - np.bincount(which, minlength=len(left)), 0)


def key_fitness(old: DigestList, new: DigestList) -> tuple[int, int]:
    """Return the most rows of a version that repeat a key, and the number of keys in both versions."""
    old_count, new_count, both = 0, 0, 0
    for part in _parts(old, new):
        was, now = part.distinct(old), part.distinct(new)
        old_count, new_count = old_count + len(was), new_count + len(now)
        both += len(np.intersect1d(was, now, assume_unique=True))
    return max(len(old) - old_count, len(new) - new_count), both

"""Reference tables: columns whose values are contained in another column's, found by their sketches.

An index from hashes to columns gives the pairs worth a look; nobody compares all with all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from tamias.features.tables.sketches import SIZE


def unpacked(sketch: bytes) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """The hashes of a sketch, ascending."""
    return np.frombuffer(sketch, "<u8").astype(np.uint64)


class Distinct:
    """Counts different values in bounded memory: exactly up to `SIZE`, about 4 % wrong beyond."""

    def __init__(self) -> None:
        self._least_hashes = np.empty(0, np.uint64)
        self._new: set[int] = set()
        self._least = 1 << 64

    def add(self, value: object) -> None:
        """Add one value; equal values count once within one run of the program."""
        mixed = (hash(value) * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 29
        if mixed < self._least:
            self._new.add(mixed)
            if len(self._new) >= 8 * SIZE:
                self._settle()

    def _settle(self) -> None:
        new = np.fromiter(self._new, np.uint64, len(self._new))
        self._least_hashes = np.unique(np.concatenate([self._least_hashes, new]))[:SIZE]
        self._new.clear()
        if len(self._least_hashes) == SIZE:
            self._least = int(self._least_hashes[-1])

    @property
    def count(self) -> int:
        """Estimated number of distinct values."""
        self._settle()
        if len(self._least_hashes) < SIZE:
            return len(self._least_hashes)
        return round((SIZE - 1) * 2.0**64 / float(self._least_hashes[-1]))


LEAST_CONTAINED = 0.8
LEAST_VALUES = 5
"""A column of fewer different values is contained in too many others."""

LEAST_SHARED = 4
"""Hashes that two sketches must have in common for their likeness to mean something."""

LONGEST_LIST = 500
"""A value that stands in more groups of columns than this says nothing about any of them."""

_PARTS = 16
"""In which the hashes are looked at one after another, to save memory."""


class ColumnSketch(msgspec.Struct, frozen=True, kw_only=True):
    """A column as it is compared: whose it is, how many different values it has, and their sketch."""

    table: str
    """Any name that tells tables apart, such as the id of a version and of a sheet."""
    column: str
    distinct: int
    sketch: bytes


class Join(msgspec.Struct, frozen=True, kw_only=True):
    """The values of `of` are, as far as can be seen, among those of `within`."""

    of: ColumnSketch
    within: ColumnSketch
    containment: float
    """The estimated share of the different values of `of` that `within` has."""
    shared: int
    """Hashes that both sketches have: the more, the surer."""


def containment(a: bytes, b: bytes) -> tuple[float, int]:
    """The share of the values of sketch `a` that `b` has as well, and by how many hashes this is known.

    A full sketch knows nothing beyond its greatest hash, so only what both can know is compared.
    """
    one, other = unpacked(a), unpacked(b)
    horizon = min(_horizon(one), _horizon(other))
    seen = one[one <= horizon]
    if not len(seen):
        return 0.0, 0
    shared = int(np.isin(seen, other, assume_unique=True).sum())
    return shared / len(seen), shared


def candidates(sketches: Iterable[ColumnSketch]) -> list[Join]:
    """The joins between columns of different tables, the surest first.

    Columns with the same sketch are one group: each of its columns is joined with the first of them, and
    the first with other groups, so that a thousand tables with one column in common are no million pairs.
    """
    groups = _groups(sketches)
    joins = [join for group in groups for join in _within_group(group)]
    for (a, b), shared in _pairs(groups).items():
        if shared >= LEAST_SHARED:
            joins += _between(groups[a][0], groups[b][0])
            joins += _between(groups[b][0], groups[a][0])
    return sorted(joins, key=lambda join: (-join.containment, -join.shared, join.of.table, join.of.column))


def _groups(sketches: Iterable[ColumnSketch]) -> list[list[ColumnSketch]]:
    groups: defaultdict[bytes, list[ColumnSketch]] = defaultdict(list)
    for sketch in sketches:
        if sketch.distinct >= LEAST_VALUES and sketch.sketch:
            groups[sketch.sketch].append(sketch)
    return list(groups.values())


def _pairs(groups: list[list[ColumnSketch]]) -> Counter[tuple[int, int]]:
    """Count the hashes that each two groups share, for those that share any."""
    pairs: Counter[tuple[int, int]] = Counter()
    for part in range(_PARTS):
        for holders in _holders(groups, part):
            pairs.update((a, b) for place, a in enumerate(holders) for b in holders[place + 1 :])
    return pairs


def _holders(groups: list[list[ColumnSketch]], part: int) -> Iterator[list[int]]:
    """The groups that have a hash in common, for each hash of this part that some, but not too many, have."""
    chosen = [_of_part(group[0].sketch, part) for group in groups]
    if not chosen:
        return
    hashes = np.concatenate(chosen)
    numbers = np.repeat(np.arange(len(chosen)), [len(each) for each in chosen])
    order = np.argsort(hashes, kind="stable")
    hashes, numbers = hashes[order], numbers[order]
    starts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])) if len(hashes) else hashes
    lengths = np.diff(np.append(starts, len(hashes)))
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        if 1 < length <= LONGEST_LIST:
            yield numbers[start : start + length].tolist()


def _of_part(sketch: bytes, part: int) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    hashes = unpacked(sketch)
    chosen: np.ndarray[tuple[int], np.dtype[np.uint64]] = hashes[hashes % np.uint64(_PARTS) == part]
    return chosen


def _within_group(group: list[ColumnSketch]) -> Iterable[Join]:
    first = group[0]
    for other in group[1:]:
        if other.table != first.table:
            yield Join(of=other, within=first, containment=1.0, shared=len(first.sketch) // 8)


def _between(of: ColumnSketch, within: ColumnSketch) -> Iterable[Join]:
    # More values cannot be among fewer, unless the count is an estimate.
    if of.table == within.table or of.distinct * LEAST_CONTAINED > within.distinct * 1.1:
        return
    share, shared = containment(of.sketch, within.sketch)
    if share >= LEAST_CONTAINED and shared >= LEAST_SHARED:
        yield Join(of=of, within=within, containment=round(share, 3), shared=shared)


def _horizon(hashes: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> np.uint64:
    return hashes[-1] if len(hashes) >= SIZE else np.uint64(2**64 - 1)

"""Sketches of the values of a column: the smallest of their hashes, by which sets can be compared.

They are kept for years, so the hash is one that stays: the second half of MD5 of the value in lower case.
"""

from collections.abc import Iterable

import numpy as np

SIZE = 512
"""Hashes of one sketch. A column of fewer different values is in it as a whole."""

HASH_SQL = "md5_number_lower(lower({v}))"
"""64 bits, in DuckDB's words."""


def packed(hashes: Iterable[int]) -> bytes:
    """The smallest hashes, ascending, 8 bytes each."""
    return np.sort(np.unique(np.fromiter(hashes, np.uint64)))[:SIZE].astype("<u8").tobytes()


def unpacked(sketch: bytes) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """The hashes of a sketch, ascending."""
    return np.frombuffer(sketch, "<u8").astype(np.uint64)


class Distinct:
    """Counts different values in bounded memory: exactly up to `SIZE`, about 4 % wrong beyond."""

    def __init__(self) -> None:
        self._kept = np.empty(0, np.uint64)
        self._new: set[int] = set()
        self._least = 1 << 64

    def add(self, value: object) -> None:
        """One more value; equal ones count once within one run of the program."""
        mixed = (hash(value) * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 29
        if mixed < self._least:
            self._new.add(mixed)
            if len(self._new) >= 8 * SIZE:
                self._settle()

    def _settle(self) -> None:
        new = np.fromiter(self._new, np.uint64, len(self._new))
        self._kept = np.unique(np.concatenate([self._kept, new]))[:SIZE]
        self._new.clear()
        if len(self._kept) == SIZE:
            self._least = int(self._kept[-1])

    @property
    def count(self) -> int:
        """How many there are."""
        self._settle()
        if len(self._kept) < SIZE:
            return len(self._kept)
        return round((SIZE - 1) * 2.0**64 / float(self._kept[-1]))

"""Cuts a stream of JSON into its items without holding it: lines, or the elements of a large array.

Brackets outside strings are found for a whole chunk at once; only items are ever parsed.
"""

import re
from collections.abc import Iterable, Iterator

import numpy as np

from tamias.features.archive.canonical.json_digest import Brackets

_LAST_KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:\s*\[?\s*\Z')
_LONGEST_FRAME = 1 << 10


class Items:
    """The objects and arrays that stand `depth` brackets deep: 0 for lines, 1 for elements of an array."""

    def __init__(self, depth: int, longest: int) -> None:
        self._depth = depth
        self._longest = longest
        self._brackets = Brackets()
        self._item: list[bytes] = []
        self._size = 0
        self._frame = b""
        self.key: str | None = None
        """The last key before the item: what an array, or the item itself, is the value of."""
        self.too_long = 0
        """Items that were longer than the limit; they are left out."""

    def cut(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The items, in order; an unfinished one at the end is left out."""
        for text in chunks:
            within = self._brackets.level > self._depth
            place = 0
            for edge in self._edges(text):
                if within:
                    yield from self._ended(text[place:edge])
                else:
                    self._around(text[place:edge])
                within, place = not within, edge
            if within:
                self._goes_on(text[place:])
            else:
                self._around(text[place:])

    def _edges(self, text: bytes) -> list[int]:
        """Return the positions at which items begin and end, alternately."""
        _, steps, levels = self._brackets.levels(text)
        starts = np.flatnonzero((steps == 1) & (levels == self._depth + 1))
        ends = np.flatnonzero((steps == -1) & (levels == self._depth)) + 1
        return [int(edge) for edge in np.sort(np.concatenate([starts, ends]))]

    def _goes_on(self, piece: bytes) -> None:
        self._size += len(piece)
        self._item = [*self._item, piece] if self._size <= self._longest else []

    def _ended(self, piece: bytes) -> Iterator[bytes]:
        self._goes_on(piece)
        if self._size <= self._longest:
            yield b"".join(self._item)
        else:
            self.too_long += 1
        self._item, self._size = [], 0

    def _around(self, piece: bytes) -> None:
        if piece.strip(b" \t\r\n,"):
            self._frame = (self._frame + piece)[-_LONGEST_FRAME:]
            found = _LAST_KEY.search(self._frame)
            self.key = found[1].decode("utf-8", "replace") if found else None

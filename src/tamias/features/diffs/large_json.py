"""JSON documents that are too large to be held in memory, compared as small ones are.

Of each item of an array, its place in the file and a digest are held. Items are read again where they differ.
"""

import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

import msgspec

from tamias.content.canonical import Unreadable
from tamias.content.canonical.canonical_json import IN_ORDER, SMALL, key_of, key_paths, value_of
from tamias.content.canonical.json_stream import LEVELS, JsonText
from tamias.content.canonical.text import CHUNK, marked_chunks
from tamias.features.diffs.json_paths import (
    JsonComparison,
    JsonItems,
    StoredText,
    Value,
    item_digest,
)
from tamias.model.diff import Diff, DiffLimits

MOST_ITEMS: Final = 2_000_000
"""Of all arrays of a document."""
_MOST_MEMBERS: Final = 200_000


def large_json_diff(old: Path, new: Path, limits: DiffLimits) -> Diff:
    """Compare two JSON documents. Raises `Unreadable`."""
    for path in (old, new):
        if (size := path.stat().st_size) > limits.read_bytes:
            raise Unreadable(f"{size} bytes of JSON, more than the {limits.read_bytes} that are compared")
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile(prefix="tamias-diff-")) for _ in range(2)]
        was, now = (
            _DocumentScan(_plain(path, file), limits).document()
            for path, file in zip((old, new), files, strict=True)
        )
        comparison = JsonComparison(limits)
        comparison.values("$", was, now)
        return comparison.found()


def _plain(path: Path, file: IO[bytes]) -> IO[bytes]:
    """Write the text as UTF-8 without a mark into a file of its own."""
    for chunk in marked_chunks(path):
        file.write(chunk)
    file.seek(0)
    return file


class _InFile(StoredText):
    """A part of a file."""

    def __init__(self, file: IO[bytes], start: int) -> None:
        self._file = file
        self._start = start
        self.end = start

    def beginning(self, most: int) -> msgspec.Raw:
        return self._read(self._start, min(self.end - self._start, most + 1))

    def _read(self, start: int, size: int) -> msgspec.Raw:
        self._file.seek(start)
        return msgspec.Raw(self._file.read(size))


class _Members(_InFile, dict[str, Value]):
    """The members of an object in a file."""


class _Items(_InFile, JsonItems):
    """Items by their places in the file."""

    def __init__(self, file: IO[bytes], start: int, in_order: bool) -> None:
        super().__init__(file, start)
        self._in_order = in_order
        self._starts = array("q")
        self._lengths = array("I")
        self._keys: dict[Sequence[str], array[int]] = {}
        self.digests = array("q")

    def __len__(self) -> int:
        return len(self.digests)

    def __getitem__(self, place: int) -> msgspec.Raw:
        return self._read(self._starts[place], self._lengths[place])

    def add(self, start: int, text: bytes) -> None:
        raw = msgspec.Raw(text)
        value = value_of(text) if len(text) <= SMALL else raw
        if not self.digests:
            self._keys = {tuple(names): array("q") for names in key_paths([raw])}
        for names in list(self._keys):
            key = key_of(value, names)
            if key is None:
                del self._keys[names]
            else:
                self._keys[names].append(hash(key))
        self._starts.append(start)
        self._lengths.append(len(text))
        self.digests.append(item_digest(text, self._in_order))

    def paths(self) -> Iterator[Sequence[str]]:
        return iter(self._keys)

    def _found_keys(self, names: Sequence[str]) -> "array[int] | None":
        return self._keys.get(tuple(names))

    def is_same(self, place: int, others: JsonItems, there: int) -> bool:
        return self.digests[place] == others.digests[there]


class _DocumentScan:
    """Goes through a document once."""

    def __init__(self, file: IO[bytes], limits: DiffLimits) -> None:
        self._file = file
        chunks = iter(lambda: self._file.read(CHUNK), b"")
        self._reader = JsonText(chunks, limits.held_bytes)
        self._held = limits.held_bytes
        self._items = 0
        self._members = 0

    def document(self) -> Value:
        found = self._value(0, in_order=False)
        self._reader.end()
        return found

    def _value(self, level: int, *, in_order: bool) -> Value:
        sign = self._reader.sign()
        start = self._reader.place
        if sign == b"{" and level < LEVELS:
            return self._object(start, level, in_order)
        if sign == b"[":
            return self._array(start, in_order)
        text = self._reader.value()
        value_of(text)
        self._held -= len(text)
        if self._held < 0:
            raise Unreadable("too much JSON beside its arrays")
        return msgspec.Raw(text)

    def _object(self, start: int, level: int, in_order: bool) -> Value:
        found = _Members(self._file, start)
        for name in self._reader.members():
            self._members += 1
            if self._members > _MOST_MEMBERS:
                raise Unreadable(f"more than {_MOST_MEMBERS} members of JSON objects")
            found[name] = self._value(level + 1, in_order=in_order or name in IN_ORDER)
        found.end = self._reader.place
        return found

    def _array(self, start: int, in_order: bool) -> Value:
        found = _Items(self._file, start, in_order)
        for text in self._reader.items():
            self._items += 1
            if self._items > MOST_ITEMS:
                raise Unreadable(f"more than {MOST_ITEMS} items of JSON arrays")
            found.add(self._reader.place - len(text), text)
        found.end = self._reader.place
        return found

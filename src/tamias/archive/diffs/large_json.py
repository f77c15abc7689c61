"""The difference of two JSON documents that are too large to be held in memory; the same as of small ones.

Of each item of an array, its place in the file and a digest are held. Items are read again where they differ.
"""

import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tamias.archive.diffs.alignment import gaps
from tamias.archive.diffs.json_paths import JsonComparison, child_path
from tamias.archive.diffs.values import Diff, DiffLimits, What
from tamias.content.canonical import Unreadable
from tamias.content.canonical.canonical_json import (
    FEATURES,
    IN_ORDER,
    SMALL,
    canonical_pieces,
    is_collection,
    is_identifier,
    key_of,
    key_paths,
    value_of,
)
from tamias.content.canonical.json_stream import LEVELS, JsonText
from tamias.content.canonical.text import CHUNK, marked_chunks

MOST_ITEMS: Final = 2_000_000
"""Of all arrays of a document."""
_MOST_MEMBERS: Final = 200_000

_Keys = NDArray[np.int64]


def large_json_diff(old: Path, new: Path, limits: DiffLimits) -> Diff:
    """Compares two JSON documents. Raises `Unreadable`."""
    for path in (old, new):
        if (size := path.stat().st_size) > limits.read_bytes:
            raise Unreadable(f"{size} bytes of JSON, more than the {limits.read_bytes} that are compared")
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile(prefix="tamias-diff-")) for _ in range(2)]
        was, now = (
            _DocumentScan(_plain(path, file), limits).document()
            for path, file in zip((old, new), files, strict=True)
        )
        comparison = _LargeComparison(limits)
        comparison.nodes("$", was, now, in_order=False)
        return comparison.told()


def _plain(path: Path, file: IO[bytes]) -> IO[bytes]:
    """The text as UTF-8 without a mark, in a file of its own."""
    for chunk in marked_chunks(path):
        file.write(chunk)
    file.seek(0)
    return file


class _JsonNode:
    """A value, and where it is."""

    def __init__(self, file: IO[bytes], start: int) -> None:
        self._file = file
        self._start = start
        self._end = start

    def ends(self, end: int) -> None:
        self._end = end

    def raw(self, most: int) -> msgspec.Raw:
        """Its text, or a beginning that is longer than so many bytes."""
        return self._read(self._start, min(self._end - self._start, most + 1))

    def _read(self, start: int, size: int) -> msgspec.Raw:
        self._file.seek(start)
        return msgspec.Raw(self._file.read(size))


class _WholeValue(_JsonNode):
    """A value that is compared as a whole."""

    def __init__(self, file: IO[bytes], start: int, text: bytes) -> None:
        super().__init__(file, start)
        self.text = msgspec.Raw(text)
        self.ends(start + len(text))


class _ObjectNode(_JsonNode):
    def __init__(self, file: IO[bytes], start: int) -> None:
        super().__init__(file, start)
        self.members: dict[str, _JsonNode] = {}

    def is_collection(self) -> bool:
        kind = self.members.get("type")
        return isinstance(kind, _WholeValue) and is_collection({"type": kind.text})


class _ArrayNode(_JsonNode):
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
        self.digests.append(hash(b"".join(canonical_pieces(text, in_order=self._in_order))))

    def item(self, place: int) -> msgspec.Raw:
        return self._read(self._starts[place], self._lengths[place])

    def paths(self) -> Iterator[Sequence[str]]:
        """Where all items have an identifier."""
        return iter(self._keys)

    def keys(self, names: Sequence[str]) -> _Keys | None:
        """The identifiers of all items there; None if one has none, or two have the same."""
        found = self._keys.get(tuple(names))
        keys = np.asarray(found if found is not None else [], np.int64)
        if found is None:
            return None
        in_order = np.sort(keys)
        return None if (in_order[1:] == in_order[:-1]).any() else keys


class _DocumentScan:
    """Goes through a document once."""

    def __init__(self, file: IO[bytes], limits: DiffLimits) -> None:
        self._file = file
        chunks = iter(lambda: self._file.read(CHUNK), b"")
        self._reader = JsonText(chunks, limits.held_bytes)
        self._held = limits.held_bytes
        self._items = 0
        self._members = 0

    def document(self) -> _JsonNode:
        found = self._value(0, in_order=False)
        self._reader.end()
        return found

    def _value(self, level: int, *, in_order: bool) -> _JsonNode:
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
        return _WholeValue(self._file, start, text)

    def _object(self, start: int, level: int, in_order: bool) -> _JsonNode:
        found = _ObjectNode(self._file, start)
        for name in self._reader.members():
            self._members += 1
            if self._members > _MOST_MEMBERS:
                raise Unreadable(f"more than {_MOST_MEMBERS} members of JSON objects")
            below = in_order or name in IN_ORDER
            found.members[name] = self._value(level + 1, in_order=below)
        found.ends(self._reader.place)
        return found

    def _array(self, start: int, in_order: bool) -> _JsonNode:
        found = _ArrayNode(self._file, start, in_order)
        for text in self._reader.items():
            self._items += 1
            if self._items > MOST_ITEMS:
                raise Unreadable(f"more than {MOST_ITEMS} items of JSON arrays")
            found.add(self._reader.place - len(text), text)
        found.ends(self._reader.place)
        return found


class _LargeComparison(JsonComparison):
    """The same comparison, of what is in files."""

    def nodes(
        self, path: str, old: _JsonNode, new: _JsonNode, *, in_order: bool, as_set: bool = False
    ) -> None:
        if isinstance(old, _ObjectNode) and isinstance(new, _ObjectNode):
            self._members(path, old, new, in_order)
        elif isinstance(old, _ArrayNode) and isinstance(new, _ArrayNode):
            self._arrays(path, old, new, in_order, as_set)
        elif isinstance(old, _WholeValue) and isinstance(new, _WholeValue):
            self.values(path, old.text, new.text, LEVELS, in_order=in_order)
        else:
            self._tell_node(What.CHANGED, path, old, new)

    def _tell_node(self, what: What, path: str, old: _JsonNode | None, new: _JsonNode | None) -> None:
        was, now = (None if each is None else each.raw(4 * self.limits.text) for each in (old, new))
        self.tell(what, path, was, now)

    def _members(self, path: str, old: _ObjectNode, new: _ObjectNode, in_order: bool) -> None:
        features = None if in_order or not (old.is_collection() and new.is_collection()) else FEATURES
        for name, node in old.members.items():
            where = child_path(path, name)
            if name in new.members:
                below = in_order or name in IN_ORDER
                self.nodes(where, node, new.members[name], in_order=below, as_set=name == features)
            else:
                self._tell_node(What.REMOVED, where, node, None)
        for name, node in new.members.items():
            if name not in old.members:
                self._tell_node(What.ADDED, child_path(path, name), None, node)

    def _arrays(self, path: str, old: _ArrayNode, new: _ArrayNode, in_order: bool, as_set: bool) -> None:
        for names in old.paths() if len(new) else ():
            was, now = old.keys(names), new.keys(names)
            if was is None or now is None:
                continue
            if not as_set and (in_order or not is_identifier(names)) and _is_moved(was, now):
                continue
            self._by_key(path, names, (old, was), (new, now), in_order)
            return
        if as_set and self._in_any_order(path, old, new):
            return
        for gap in gaps(old.digests, new.digests):
            self._gap(path, old, new, gap.old, gap.new, in_order)

    def _by_key(
        self,
        path: str,
        names: Sequence[str],
        old: tuple[_ArrayNode, _Keys],
        new: tuple[_ArrayNode, _Keys],
        in_order: bool,
    ) -> None:
        (was, keys), (now, new_keys) = old, new
        query = "".join(child_path("", name) for name in names)
        counterparts = _places_of(keys, new_keys)
        for place, counterpart in enumerate(counterparts):
            if counterpart >= 0 and was.digests[place] == now.digests[counterpart]:
                continue
            item = was.item(place)
            where = f"{path}[?@{query}=={_key_text(item, names)}]"
            if counterpart < 0:
                self.tell(What.REMOVED, where, item, None)
            else:
                self.values(where, item, now.item(int(counterpart)), LEVELS, in_order=in_order)
        for added in np.flatnonzero(_places_of(new_keys, keys) < 0):
            item = now.item(int(added))
            self.tell(What.ADDED, f"{path}[?@{query}=={_key_text(item, names)}]", None, item)

    def _in_any_order(self, path: str, old: _ArrayNode, new: _ArrayNode) -> bool:
        """Tells what only one side has; False, and nothing is told, if the rest is in the same order."""
        was, now = np.asarray(old.digests, np.int64), np.asarray(new.digests, np.int64)
        gone, come = _is_surplus(was, now), _is_surplus(now, was)
        if np.array_equal(was[~gone], now[~come]):
            return False
        for place in np.flatnonzero(gone):
            self.tell(What.REMOVED, f"{path}[{place}]", old.item(int(place)), None)
        for place in np.flatnonzero(come):
            self.tell(What.ADDED, f"{path}[{place}]", None, new.item(int(place)))
        return True

    def _gap(
        self, path: str, old: _ArrayNode, new: _ArrayNode, was: slice, now: slice, in_order: bool
    ) -> None:
        both = min(was.stop - was.start, now.stop - now.start)
        for step in range(both):
            where = f"{path}[{now.start + step}]"
            pair = old.item(was.start + step), new.item(now.start + step)
            self.values(where, *pair, LEVELS, in_order=in_order)
        for place in range(was.start + both, was.stop):
            self.tell(What.REMOVED, f"{path}[{place}]", old.item(place), None)
        for place in range(now.start + both, now.stop):
            self.tell(What.ADDED, f"{path}[{place}]", None, new.item(place))


def _key_text(item: msgspec.Raw, names: Sequence[str]) -> str:
    return (key_of(item, names) or b"").decode()


def _is_moved(was: _Keys, now: _Keys) -> bool:
    """Whether items that both have are in another order."""
    return not np.array_equal(was[np.isin(was, now)], now[np.isin(now, was)])


def _places_of(keys: _Keys, among: _Keys) -> _Keys:
    """Where each key is among others, -1 where it is not."""
    if not len(among):
        return np.full(len(keys), -1)
    order = np.argsort(among)
    places = order[np.minimum(np.searchsorted(among, keys, sorter=order), len(among) - 1)]
    return np.where(among[places] == keys, places, -1)


def _is_surplus(digests: _Keys, others: _Keys) -> NDArray[np.bool_]:
    """Whether each is there more often than among the others; of equal ones the last are.

    >>> _is_surplus(np.array([5, 7, 5, 5]), np.array([5, 5, 8])).tolist()
    [False, True, False, True]
    """
    order = np.argsort(digests, kind="stable")
    ordered, known = digests[order], np.sort(others)
    number = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    allowed = np.searchsorted(known, ordered, "right") - np.searchsorted(known, ordered)
    found = np.empty(len(ordered), bool)
    found[order] = number >= allowed
    return found

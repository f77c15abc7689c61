"""The difference of two JSON values, path by path (paths as in RFC 9535).

Values are compared as text first and taken apart only where they differ, so that little of them is in memory.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from tamias.features.archive.canonical.canonical_json import (
    FEATURES,
    IN_ORDER,
    Raws,
    canonical_pieces,
    is_collection,
    is_identifier,
    key_of,
    key_paths,
    parts_of_array,
    parts_of_object,
)
from tamias.features.archive.canonical.content_digest import MOST_BYTES
from tamias.features.archive.canonical.json_digest import json_text
from tamias.features.archive.canonical.text import marked_chunks
from tamias.features.diffs.alignment import Gap, gaps
from tamias.model.diff import Change, Diff, DiffKind, DiffLimits, What
from tamias.model.document import Unreadable

MAX_DEPTH = 100
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def json_diff(old: Path, new: Path, limits: DiffLimits) -> Diff:
    """Compare two JSON documents. Raises `Unreadable`."""
    comparison = JsonComparison(limits)
    was, now = (json_text(path, limits.held_bytes, limits.read_bytes) for path in (old, new))
    comparison.values("$", was, now)
    return comparison.found()


def json_lines_diff(old: Path, new: Path, limits: DiffLimits) -> Diff:
    """Compare two texts of one JSON value a line, as if they were one array. Raises `Unreadable`."""
    comparison = JsonComparison(limits)
    was, now = (_line_values(path, limits) for path in (old, new))
    comparison.arrays("$", was, now, 1, in_order=False, as_set=False)
    return comparison.found()


def _line_values(path: Path, limits: DiffLimits) -> "JsonItems":
    size = path.stat().st_size
    if size > limits.held_bytes:
        raise Unreadable(f"{size} bytes of JSON lines, more than the {limits.held_bytes} that are compared")
    lines = map(bytes.strip, b"".join(marked_chunks(path)).splitlines())
    return JsonItems([msgspec.Raw(line) for line in lines if line], in_order=False)


class JsonItems:
    """The items of an array, in memory."""

    def __init__(self, values: Raws, in_order: bool) -> None:
        self._values = values
        self._in_order = in_order

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: int) -> msgspec.Raw:
        return self._values[place]

    @cached_property
    def digests(self) -> "array[int]":
        """A digest of what each item says."""
        return array("q", (item_digest(each, self._in_order) for each in self._values))

    def paths(self) -> Iterator[Sequence[str]]:
        """Yield the paths at which items may have an identifier."""
        return key_paths(self._values)

    def keys(self, names: Sequence[str]) -> dict[int, int] | None:
        """Return digests of the identifiers of all items, with the place of each.

        None if one has none, or two have the same.
        """
        found: dict[int, int] = {}
        for place, value in enumerate(self._values):
            key = key_of(value, names)
            if key is None or hash(key) in found:
                return None
            found[hash(key)] = place
        return found

    def is_same(self, place: int, others: "JsonItems", there: int) -> bool:
        """Return whether two items are equal as texts, without parsing them."""
        return memoryview(self._values[place]) == memoryview(others[there])


Members: TypeAlias = dict[str, msgspec.Raw]


def item_digest(text: msgspec.Raw, in_order: bool) -> int:
    """Return a digest that is the same for items that say the same."""
    if len(memoryview(text)) > MOST_BYTES:
        raise Unreadable(f"a value of more than {MOST_BYTES} bytes")
    return hash(b"".join(canonical_pieces(text, in_order=in_order)))


class JsonComparison:
    """Goes through two values at once and counts what is not the same."""

    def __init__(self, limits: DiffLimits) -> None:
        self._limits = limits
        self._counts = dict.fromkeys(What, 0)
        self._changes: list[Change] = []

    def found(self) -> Diff:
        """Return what was found."""
        return Diff(
            kind=DiffKind.JSON,
            added=self._counts[What.ADDED],
            removed=self._counts[What.REMOVED],
            changed=self._counts[What.CHANGED],
            changes=self._changes,
            truncated=sum(self._counts.values()) > len(self._changes),
        )

    def values(
        self,
        path: str,
        old: msgspec.Raw,
        new: msgspec.Raw,
        depth: int = 0,
        *,
        in_order: bool = False,
        as_set: bool = False,
    ) -> None:
        """Compare two values at a path."""
        was, now = memoryview(old), memoryview(new)
        if was == now:
            return
        opening = bytes(was[:1])
        if opening not in {b"{", b"["} or opening != bytes(now[:1]) or depth > MAX_DEPTH:
            if not _equal(old, new):
                self._note(What.CHANGED, path, old, new)
        elif opening == b"{":
            self._objects(path, parts_of_object(old), parts_of_object(new), depth + 1, in_order)
        else:
            items, others = (JsonItems(parts_of_array(each), in_order) for each in (old, new))
            self.arrays(path, items, others, depth + 1, in_order=in_order, as_set=as_set)

    def _objects(self, path: str, old: Members, new: Members, depth: int, in_order: bool) -> None:
        features = None if in_order or not (is_collection(old) and is_collection(new)) else FEATURES
        for name, value in old.items():
            where = child_path(path, name)
            if name in new:
                below, is_set = in_order or name in IN_ORDER, name == features
                self.values(where, value, new[name], depth, in_order=below, as_set=is_set)
            else:
                self._note(What.REMOVED, where, value, None)
        for name, value in new.items():
            if name not in old:
                self._note(What.ADDED, child_path(path, name), None, value)

    def arrays(
        self, path: str, old: JsonItems, new: JsonItems, depth: int, *, in_order: bool, as_set: bool
    ) -> None:
        """Compare two arrays: match objects by an identifier where all have one, other values by their order.

        With `as_set`, what has no identifier and is in another order is matched by its content.
        """
        keyed = _identified(old, new, in_order=in_order, as_set=as_set)
        if keyed is not None:
            self._keyed(path, keyed[0], (old, new), keyed[1], depth, in_order)
            return
        if as_set and self._unordered(path, old, new):
            return
        for gap in gaps(old.digests, new.digests):
            self._gap(path, old, new, gap, depth, in_order)

    def _keyed(
        self,
        path: str,
        names: Sequence[str],
        both: tuple[JsonItems, JsonItems],
        places: Sequence[int],
        depth: int,
        in_order: bool,
    ) -> None:
        """Compare items with their counterparts, whose places in the new array are given."""
        old, new = both
        query = "".join(child_path("", name) for name in names)

        def where(item: msgspec.Raw) -> str:
            return f"{path}[?@{query}=={(key_of(item, names) or b'').decode()}]"

        for place, there in enumerate(places):
            if there >= 0 and old.is_same(place, new, there):
                continue
            item = old[place]
            if there < 0:
                self._note(What.REMOVED, where(item), item, None)
            else:
                self.values(where(item), item, new[there], depth, in_order=in_order)
        for place in sorted({*range(len(new))}.difference(places)):
            self._note(What.ADDED, where(new[place]), None, new[place])

    def _unordered(self, path: str, old: JsonItems, new: JsonItems) -> bool:
        """Note what only one side has; False, and nothing is noted, if the rest is in the same order."""
        gone, left = _surplus(old.digests, new.digests)
        come, there = _surplus(new.digests, old.digests)
        if left == there:
            return False
        for place in gone:
            self._note(What.REMOVED, f"{path}[{place}]", old[place], None)
        for place in come:
            self._note(What.ADDED, f"{path}[{place}]", None, new[place])
        return True

    def _gap(self, path: str, old: JsonItems, new: JsonItems, gap: Gap, depth: int, in_order: bool) -> None:
        was, now = gap
        both = min(was.stop - was.start, now.stop - now.start)
        for step in range(both):
            pair = old[was.start + step], new[now.start + step]
            self.values(f"{path}[{now.start + step}]", *pair, depth, in_order=in_order)
        for place in range(was.start + both, was.stop):
            self._note(What.REMOVED, f"{path}[{place}]", old[place], None)
        for place in range(now.start + both, now.stop):
            self._note(What.ADDED, f"{path}[{place}]", None, new[place])

    def _note(self, what: What, path: str, old: msgspec.Raw | None, new: msgspec.Raw | None) -> None:
        """Count a change, and store it if it is one of the first."""
        self._counts[what] += 1
        if len(self._changes) < self._limits.changes:
            where = self._limits.shorten(path)
            self._changes.append(Change(what, where, _shown(old, self._limits), _shown(new, self._limits)))


def _identified(
    old: JsonItems, new: JsonItems, *, in_order: bool, as_set: bool
) -> tuple[Sequence[str], list[int]] | None:
    """Return the path of an identifier that all items have, and the place of each old one among the new."""
    for names in old.paths() if len(new) else ():
        was = old.keys(names)
        now = None if was is None else new.keys(names)
        if was is None or now is None:
            continue
        places = [now.get(key, -1) for key in was]
        both = [place for place in places if place >= 0]
        if as_set or both == sorted(both) or not (in_order or not is_identifier(names)):
            return names, places
    return None


def _equal(old: msgspec.Raw, new: msgspec.Raw) -> bool:
    return b"".join(canonical_pieces(old)) == b"".join(canonical_pieces(new))


def _surplus(digests: Sequence[int], others: Iterable[int]) -> tuple[list[int], list[int]]:
    """Return the places of those that are there more often than among the others, and all but these.

    >>> _surplus([5, 7, 5, 5], [5, 5, 8])
    ([1, 3], [5, 5])
    """
    matched, places, rest = Counter(others), [], []
    for place, digest in enumerate(digests):
        if matched[digest]:
            matched[digest] -= 1
            rest.append(digest)
        else:
            places.append(place)
    return places, rest


def child_path(path: str, name: str) -> str:
    """Return the path of a member."""
    if _PLAIN_NAME.fullmatch(name):
        return f"{path}.{name}"
    return path + "['" + name.replace("\\", "\\\\").replace("'", "\\'") + "']"


def _shown(text: msgspec.Raw | None, limits: DiffLimits) -> Any:
    """Return the value; of a long one the beginning of its text."""
    if text is None:
        return None
    if len(memoryview(text)) > limits.text:
        return limits.shorten(bytes(memoryview(text)[: 4 * limits.text]).decode("utf-8", "ignore"))
    return msgspec.json.decode(text)

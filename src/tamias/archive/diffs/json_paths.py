"""The difference of two JSON values, path by path (paths as in RFC 9535).

Values are compared as text first and taken apart only where they differ, so that little of them is in memory.
"""

import re
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tamias.archive.diffs.alignment import gaps
from tamias.archive.diffs.values import Change, Diff, DiffKind, DiffLimits, What, told_text
from tamias.content.canonical import Unreadable
from tamias.content.canonical.canonical_json import (
    FEATURES,
    IN_ORDER,
    Raws,
    by_key,
    canonical_pieces,
    is_collection,
    is_identifier,
    key_paths,
    parts_of_array,
    parts_of_object,
)
from tamias.content.canonical.text import marked_chunks

MAX_DEPTH = 100
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def json_diff(old: Path, new: Path, limits: DiffLimits) -> Diff:
    """Compares two JSON documents. Raises `Unreadable`."""
    comparison = JsonComparison(limits)
    comparison.values("$", _document(old, limits), _document(new, limits), 0)
    return comparison.told()


def json_lines_diff(old: Path, new: Path, limits: DiffLimits) -> Diff:
    """Compares two texts of one JSON value a line, as if they were one array. Raises `Unreadable`."""
    comparison = JsonComparison(limits)
    comparison.arrays("$", _line_values(old, limits), _line_values(new, limits), 0)
    return comparison.told()


def _document(path: Path, limits: DiffLimits) -> msgspec.Raw:
    size = path.stat().st_size
    if size > limits.held_bytes:
        raise Unreadable(f"{size} bytes of JSON, more than the {limits.held_bytes} that are compared")
    text = b"".join(marked_chunks(path)).strip()
    try:
        return msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, ValueError) as fault:
        raise Unreadable(f"not JSON: {fault}") from fault
    except RecursionError as fault:
        raise Unreadable("JSON nested too deep") from fault


def _line_values(path: Path, limits: DiffLimits) -> list[msgspec.Raw]:
    size = path.stat().st_size
    if size > limits.held_bytes:
        raise Unreadable(f"{size} bytes of JSON lines, more than the {limits.held_bytes} that are compared")
    lines = b"".join(marked_chunks(path)).splitlines()
    return [msgspec.Raw(line) for line in map(bytes.strip, lines) if line]


class JsonComparison:
    """Goes through two values at once and counts what is not the same."""

    def __init__(self, limits: DiffLimits) -> None:
        self.limits = limits
        self._counts = dict.fromkeys(What, 0)
        self._changes: list[Change] = []

    def told(self) -> Diff:
        """What was found."""
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
        depth: int,
        *,
        in_order: bool = False,
        as_set: bool = False,
    ) -> None:
        """Compares two values at a path."""
        was, now = memoryview(old), memoryview(new)
        if was == now:
            return
        opening = bytes(was[:1])
        if opening not in {b"{", b"["} or opening != bytes(now[:1]) or depth > MAX_DEPTH:
            if not _equal(old, new):
                self.tell(What.CHANGED, path, old, new)
        elif opening == b"{":
            self._objects(path, parts_of_object(old), parts_of_object(new), depth + 1, in_order)
        else:
            self.arrays(path, parts_of_array(old), parts_of_array(new), depth + 1, in_order, as_set)

    def _objects(
        self, path: str, old: dict[str, msgspec.Raw], new: dict[str, msgspec.Raw], depth: int, in_order: bool
    ) -> None:
        features = None if in_order or not (is_collection(old) and is_collection(new)) else FEATURES
        for name, value in old.items():
            if name in new:
                below, is_set = in_order or name in IN_ORDER, name == features
                self.values(child_path(path, name), value, new[name], depth, in_order=below, as_set=is_set)
            else:
                self.tell(What.REMOVED, child_path(path, name), value, None)
        for name, value in new.items():
            if name not in old:
                self.tell(What.ADDED, child_path(path, name), None, value)

    def arrays(
        self, path: str, old: Raws, new: Raws, depth: int, in_order: bool = False, as_set: bool = False
    ) -> None:
        """Objects are matched by an identifier where all have one, other values by their order.

        With `as_set`, what has no identifier and is in another order is matched by its content.
        """
        for names in key_paths(old) if new else ():
            was, now = by_key(old, names), by_key(new, names)
            if was is None or now is None:
                continue
            if not as_set and (in_order or not is_identifier(names)) and _is_moved(was, now):
                continue
            self._keyed(path, names, was, now, depth, in_order)
            return
        if as_set and self._unordered(path, old, new):
            return
        self._ordered(path, old, new, depth, in_order)

    def _keyed(
        self,
        path: str,
        names: Sequence[str],
        old: dict[bytes, msgspec.Raw],
        new: dict[bytes, msgspec.Raw],
        depth: int,
        in_order: bool,
    ) -> None:
        query = "".join(child_path("", name) for name in names)
        for key, value in old.items():
            where = f"{path}[?@{query}=={key.decode()}]"
            if key in new:
                self.values(where, value, new[key], depth, in_order=in_order)
            else:
                self.tell(What.REMOVED, where, value, None)
        for key, value in new.items():
            if key not in old:
                self.tell(What.ADDED, f"{path}[?@{query}=={key.decode()}]", None, value)

    def _unordered(self, path: str, old: Raws, new: Raws) -> bool:
        """Tells what only one side has; False, and nothing is told, if the rest is in the same order."""
        was, now = _digests(old, False), _digests(new, False)
        both = Counter(was) & Counter(now)
        gone, kept = _surplus(was, both)
        come, kept_now = _surplus(now, both)
        if [was[place] for place in kept] == [now[place] for place in kept_now]:
            return False
        for place in gone:
            self.tell(What.REMOVED, f"{path}[{place}]", old[place], None)
        for place in come:
            self.tell(What.ADDED, f"{path}[{place}]", None, new[place])
        return True

    def _ordered(self, path: str, old: Raws, new: Raws, depth: int, in_order: bool) -> None:
        for gap in gaps(_digests(old, in_order), _digests(new, in_order)):
            was, now = old[gap.old], new[gap.new]
            both = min(len(was), len(now))
            for place in range(both):
                where = f"{path}[{gap.new.start + place}]"
                self.values(where, was[place], now[place], depth, in_order=in_order)
            for place in range(both, len(was)):
                self.tell(What.REMOVED, f"{path}[{gap.old.start + place}]", was[place], None)
            for place in range(both, len(now)):
                self.tell(What.ADDED, f"{path}[{gap.new.start + place}]", None, now[place])

    def tell(self, what: What, path: str, old: msgspec.Raw | None, new: msgspec.Raw | None) -> None:
        """Counts a change, and tells it if it is one of the first."""
        self._counts[what] += 1
        if len(self._changes) < self.limits.changes:
            where = told_text(path, self.limits)
            self._changes.append(Change(what, where, _told(old, self.limits), _told(new, self.limits)))


def _equal(old: msgspec.Raw, new: msgspec.Raw) -> bool:
    return b"".join(canonical_pieces(old)) == b"".join(canonical_pieces(new))


def _is_moved(old: dict[bytes, msgspec.Raw], new: dict[bytes, msgspec.Raw]) -> bool:
    """Whether items that both have are in another order."""
    return [key for key in old if key in new] != [key for key in new if key in old]


def _digests(values: Raws, in_order: bool) -> "array[int]":
    return array("q", (hash(b"".join(canonical_pieces(value, in_order=in_order))) for value in values))


def _surplus(digests: "array[int]", both: Counter[int]) -> tuple[list[int], list[int]]:
    """The places of what is there more often than in both, and of the rest."""
    left = both.copy()
    more: list[int] = []
    rest: list[int] = []
    for place, digest in enumerate(digests):
        (rest if left[digest] > 0 else more).append(place)
        left[digest] -= 1
    return more, rest


def child_path(path: str, name: str) -> str:
    """The path of a member."""
    if _PLAIN_NAME.fullmatch(name):
        return f"{path}.{name}"
    return path + "['" + name.replace("\\", "\\\\").replace("'", "\\'") + "']"


def _told(value: msgspec.Raw | None, limits: DiffLimits) -> Any:
    """The value; of a long one the beginning of its text."""
    if value is None:
        return None
    if len(memoryview(value)) > limits.text:
        return told_text(bytes(memoryview(value)[: 4 * limits.text]).decode("utf-8", "ignore"), limits)
    return msgspec.json.decode(value)

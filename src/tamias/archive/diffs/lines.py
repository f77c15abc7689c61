"""The difference of two texts, line by line."""

from array import array
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from tamias.archive.diffs.alignment import Gap, gaps
from tamias.archive.diffs.matching import surplus
from tamias.archive.diffs.values import Change, Diff, DiffKind, DiffLimits, What, told_text
from tamias.content.canonical.text import FoundText, found_text

MAX_ALIGNED = 2_000_000
"""Texts of more lines are compared without regard to the order of the lines."""


def lines_diff(old: Path, new: Path, limits: DiffLimits) -> Diff:
    """Compares two texts; line ends do not count. Raises `Unreadable` for what is not text."""
    was, now = found_text(old, limits.read_bytes), found_text(new, limits.read_bytes)
    notes = [] if was.encoding == now.encoding else [f"encoded in {was.encoding}, then in {now.encoding}"]
    old_digests, new_digests = _digests(was), _digests(now)
    if max(len(old_digests), len(new_digests)) > MAX_ALIGNED:
        notes.append(f"more than {MAX_ALIGNED} lines: compared without regard to their order")
        found = _without_order(old_digests, new_digests)
    else:
        found = gaps(old_digests, new_digests)
    removed = sum(gap.old.stop - gap.old.start for gap in found)
    added = sum(gap.new.stop - gap.new.start for gap in found)
    changes = _told(was, now, found, limits)
    return Diff(
        kind=DiffKind.LINES,
        added=added,
        removed=removed,
        changes=changes,
        truncated=added + removed > len(changes),
        notes=notes,
    )


def _digests(text: FoundText) -> "array[int]":
    return array("q", map(hash, _lines(text)))


def _without_order(old: "array[int]", new: "array[int]") -> list[Gap]:
    was, now = np.frombuffer(old, np.int64), np.frombuffer(new, np.int64)
    none = slice(0, 0)
    removed = [Gap(slice(place, place + 1), none) for place in surplus(was, now).tolist()]
    return removed + [Gap(none, slice(place, place + 1)) for place in surplus(now, was).tolist()]


def _lines(text: FoundText) -> Iterator[str]:
    with text.opened() as file:
        for line in file:
            yield line.removesuffix("\n")


def _told(was: FoundText, now: FoundText, found: list[Gap], limits: DiffLimits) -> list[Change]:
    places = islice(_places(found), limits.changes)
    wanted = list(places)
    old = _lines_at(was, [place for what, place in wanted if what is What.REMOVED])
    new = _lines_at(now, [place for what, place in wanted if what is What.ADDED])
    return [
        Change(what, str(place + 1), old=told_text(old[place], limits))
        if what is What.REMOVED
        else Change(what, str(place + 1), new=told_text(new[place], limits))
        for what, place in wanted
    ]


def _places(found: list[Gap]) -> Iterator[tuple[What, int]]:
    for gap in found:
        yield from ((What.REMOVED, place) for place in range(gap.old.start, gap.old.stop))
        yield from ((What.ADDED, place) for place in range(gap.new.start, gap.new.stop))


def _lines_at(text: FoundText, places: list[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    lines, read = _lines(text), 0
    for place in places:
        found[place] = next(islice(lines, place - read, None))
        read = place + 1
    return found

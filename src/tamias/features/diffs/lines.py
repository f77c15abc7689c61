"""The difference of two texts, line by line."""

from collections.abc import Iterator
from itertools import islice

from tamias.features.archive.canonical.text import FoundText
from tamias.features.diffs.alignment import Gap, gaps
from tamias.features.diffs.matching import DigestList, by_content, items_at, write_digests
from tamias.model.diff import Change, Diff, DiffKind, DiffLimits, What

MAX_ALIGNED = 2_000_000
"""Texts of more lines are compared without regard to the order of the lines."""


def lines_diff(was: FoundText, now: FoundText, limits: DiffLimits) -> Diff:
    """Compares two texts; line ends do not count."""
    notes = [] if was.encoding == now.encoding else [f"encoded in {was.encoding}, then in {now.encoding}"]
    with DigestList() as old_digests, DigestList() as new_digests:
        write_digests([old_digests], map(hash, _lines(was)))
        write_digests([new_digests], map(hash, _lines(now)))
        if max(len(old_digests), len(new_digests)) > MAX_ALIGNED:
            notes.append(f"more than {MAX_ALIGNED} lines: compared without regard to their order")
            removed, added, found = _without_order(old_digests, new_digests, limits.changes)
        else:
            removed, added, found = _in_order(old_digests, new_digests, limits.changes)
    changes = _shown(was, now, found, limits)
    return Diff(
        kind=DiffKind.LINES,
        added=added,
        removed=removed,
        changes=changes,
        truncated=added + removed > len(changes),
        notes=notes,
    )


def _in_order(old: DigestList, new: DigestList, most: int) -> tuple[int, int, list[Gap]]:
    """Count the lines removed and added, and return the first places of both."""
    removed, added = 0, 0
    first: list[Gap] = []
    for gap in gaps(old.whole(), new.whole()):
        removed += gap.old.stop - gap.old.start
        added += gap.new.stop - gap.new.start
        if len(first) < most:  # each has a line at least
            first.append(gap)
    return removed, added, first


def _without_order(old: DigestList, new: DigestList, most: int) -> tuple[int, int, list[Gap]]:
    """Count the lines removed and added in any order, and return the first of both."""
    matched, none = by_content(old, new, most), slice(0, 0)
    removed = [Gap(slice(place, place + 1), none) for (place,) in matched.removed.first(most)]
    added = [Gap(none, slice(place, place + 1)) for (place,) in matched.added.first(most)]
    return matched.removed.count, matched.added.count, removed + added


def _lines(text: FoundText) -> Iterator[str]:
    with text.opened() as file:
        for line in file:
            yield line.removesuffix("\n")


def _shown(was: FoundText, now: FoundText, found: list[Gap], limits: DiffLimits) -> list[Change]:
    places = islice(_places(found), limits.changes)
    wanted = list(places)
    old = items_at(_lines(was), [place for what, place in wanted if what is What.REMOVED])
    new = items_at(_lines(now), [place for what, place in wanted if what is What.ADDED])
    return [
        Change(what, str(place + 1), old=limits.shorten(old[place]))
        if what is What.REMOVED
        else Change(what, str(place + 1), new=limits.shorten(new[place]))
        for what, place in wanted
    ]


def _places(found: list[Gap]) -> Iterator[tuple[What, int]]:
    for gap in found:
        yield from ((What.REMOVED, place) for place in range(gap.old.start, gap.old.stop))
        yield from ((What.ADDED, place) for place in range(gap.new.start, gap.new.stop))

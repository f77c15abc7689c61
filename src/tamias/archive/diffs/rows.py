"""The difference of two tables, row by row: matched by a key where there is one, else by their content."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice

import msgspec

from tamias.archive.diffs.columns import Pairing, paired
from tamias.archive.diffs.matching import (
    DigestList,
    Matched,
    by_content,
    by_key,
    key_fitness,
    write_digests,
)
from tamias.archive.diffs.values import (
    Change,
    Columns,
    Diff,
    DiffKind,
    DiffLimits,
    What,
    fair_shares,
    told_text,
)
from tamias.content.canonical import Unreadable
from tamias.content.canonical.tables import FileTable, Row
from tamias.model.errors import UsageError


class UnknownKey(UsageError):
    """No column of both versions has the name that was given as the key."""

    def __init__(self, key: str, columns: Sequence[str]) -> None:
        super().__init__(
            f"no column {key!r} in both versions; they have {', '.join(map(repr, columns[:20]))}"
        )


def tables_diff(old: FileTable, new: FileTable, key: str | None, limits: DiffLimits) -> Diff:
    """Compares two tables. Raises `Unreadable` when one is none."""
    was, now = _with_like_headers(old, new)
    try:
        return _diff(was, now, key, limits)
    except Unreadable:
        if not (was.quoted or now.quoted):
            raise
        return _diff(was.without_quotes(), now.without_quotes(), key, limits)


def _with_like_headers(old: FileTable, new: FileTable) -> tuple[FileTable, FileTable]:
    """Both with a header or both without; an empty file counts as a table that lost its rows."""
    if old.is_empty or new.is_empty:
        return new.with_text(old.text) if old.is_empty else old, old.with_text(
            new.text
        ) if new.is_empty else new
    if old.header is None or new.header is None:
        return old.without_header(), new.without_header()
    return old, new


def _diff(old: FileTable, new: FileTable, key: str | None, limits: DiffLimits) -> Diff:
    pairing, notes = paired(old, new), []
    if not pairing.names:
        raise Unreadable("the two tables have no column in common")
    if pairing.columns is not None:
        notes.append(f"rows are compared by the {len(pairing.names)} columns that both versions have")
    if old.above != new.above:
        notes.append("the lines above the table are not the same")
    if key is not None:
        if key not in pairing.names:
            raise UnknownKey(key, pairing.names)
        pairing = msgspec.structs.replace(pairing, keys=[pairing.names.index(key)])
    matched, used = _matched(old, new, pairing, notes, key, limits.changes)
    return _told(_Sides(old, new, pairing, used), matched, notes, limits)


def _matched(
    old: FileTable, new: FileTable, pairing: Pairing, notes: list[str], asked: str | None, most: int
) -> tuple[Matched, int | None]:
    with ExitStack() as stack:
        was, now = ([stack.enter_context(DigestList()) for _ in (0, *pairing.keys)] for _ in "on")
        write_digests(was, _digests(old, pairing.old, [pairing.old[place] for place in pairing.keys]))
        write_digests(now, _digests(new, pairing.new, [pairing.new[place] for place in pairing.keys]))
        chosen, largest = None, 0
        for number, place in enumerate(pairing.keys, 1):
            doubles, both = key_fitness(was[number], now[number])
            if doubles and pairing.names[place] == asked:
                notes.append(
                    f"the key {asked!r} is not unique ({doubles} rows repeat a value): rows are matched whole"
                )
            if not doubles and both > largest:
                chosen, largest = number, both
        if chosen is None:
            return by_content(was[0], now[0], most), None
        matched = by_key((was[chosen], was[0]), (now[chosen], now[0]), most)
        return matched, pairing.keys[chosen - 1]


def _digests(table: FileTable, places: Sequence[int], keys: Sequence[int]) -> Iterator[int]:
    """For each row the digest of its cells, then of each candidate for a key."""
    is_whole = list(places) == list(range(table.width))
    for row in table.rows():
        yield hash(tuple(row) if is_whole else tuple([row[place] for place in places]))
        for place in keys:
            yield hash(row[place])


class _Sides(msgspec.Struct, frozen=True):
    """Both tables, and how a change in them is told."""

    old: FileTable
    new: FileTable
    pairing: Pairing
    key: int | None

    def added(self, row: Row, limits: DiffLimits) -> Change:
        where = None if self.key is None else told_text(row[self.pairing.new[self.key]], limits)
        return Change(What.ADDED, where, new=cells_told(self.new.columns, row, limits))

    def removed(self, row: Row, limits: DiffLimits) -> Change:
        where = None if self.key is None else told_text(row[self.pairing.old[self.key]], limits)
        return Change(What.REMOVED, where, old=cells_told(self.old.columns, row, limits))

    def changed(self, was: Row, now: Row, limits: DiffLimits) -> Change:
        assert self.key is not None
        pairs = zip(self.pairing.names, self.pairing.old, self.pairing.new, strict=True)
        cells = [(name, was[old], now[new]) for name, old, new in pairs if was[old] != now[new]][
            : limits.cells
        ]
        return Change(
            What.CHANGED,
            told_text(now[self.pairing.new[self.key]], limits),
            {name: told_text(old, limits) for name, old, _ in cells},
            {name: told_text(new, limits) for name, _, new in cells},
        )


def cells_told(names: Sequence[str], row: Row, limits: DiffLimits) -> dict[str, str]:
    """The cells of a row by their columns, as far as they are shown."""
    return {
        name: told_text(cell, limits) for name, cell in islice(zip(names, row, strict=True), limits.cells)
    }


def _told(sides: _Sides, matched: Matched, notes: list[str], limits: DiffLimits) -> Diff:
    found = {What.CHANGED: matched.changed, What.ADDED: matched.added, What.REMOVED: matched.removed}
    sizes = {what: places.count for what, places in found.items()}
    shares = fair_shares(sizes, limits.changes)
    changed = matched.changed.first(shares[What.CHANGED])
    removed = [place for (place,) in matched.removed.first(shares[What.REMOVED])]
    added = [place for (place,) in matched.added.first(shares[What.ADDED])]
    was = _rows_at(sides.old, {*removed, *(place for place, _ in changed)})
    now = _rows_at(sides.new, {*added, *(place for _, place in changed)})
    changes = [sides.changed(was[old], now[new], limits) for old, new in changed]
    changes += [sides.added(now[place], limits) for place in added]
    changes += [sides.removed(was[place], limits) for place in removed]
    return Diff(
        kind=DiffKind.ROWS,
        added=sizes[What.ADDED],
        removed=sizes[What.REMOVED],
        changed=sizes[What.CHANGED],
        changes=changes,
        truncated=sum(sizes.values()) > len(changes),
        key=None if sides.key is None else sides.pairing.names[sides.key],
        columns=_capped(sides.pairing.columns, limits),
        notes=notes,
    )


def _capped(columns: Columns | None, limits: DiffLimits) -> Columns | None:
    if columns is None:
        return None
    return Columns(
        columns.added[: limits.cells],
        columns.removed[: limits.cells],
        columns.renamed[: limits.cells],
        columns.moved,
    )


def _rows_at(table: FileTable, places: set[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    rows, read = table.rows(), 0
    for place in sorted(places):
        found[place] = next(islice(rows, place - read, None))
        read = place + 1
    return found

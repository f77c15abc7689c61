"""The difference of two tables, row by row: matched by a key where there is one, else by their content."""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice

import msgspec

from tamias.features.archive.canonical.tables import FileTable, Row
from tamias.features.diffs.matching import (
    DigestList,
    Matched,
    by_content,
    by_key,
    items_at,
    key_fitness,
    write_digests,
)
from tamias.model.diff import (
    Change,
    Columns,
    Diff,
    DiffKind,
    DiffLimits,
    What,
)
from tamias.model.document import Unreadable
from tamias.model.errors import UsageError

_KEY_NAME = re.compile(
    r"(?i)(?:.*[_ .-])?(?:id|identifier|uuid|guid|key|code|no|nr|num|number|uri|url|iri)|fid|gid|oid|\w+id"
)
CANDIDATES = 4


class Pairing(msgspec.Struct, frozen=True):
    """The columns that both versions have, by their places in each, and what happened to the others."""

    names: list[str]
    old: list[int]
    new: list[int]
    columns: Columns | None = None
    keys: list[int] = []
    """Places in `names` that may serve as a key, the likeliest first."""


def paired(old: FileTable, new: FileTable) -> Pairing:
    """Columns are the same when their names are, or when only the name changed."""
    old_rows, new_rows = old.sample(), new.sample()
    was, now = old.columns, new.columns
    renamed = _renamed(was, now, old_rows, new_rows)
    of_old = {renamed.get(name, name): place for place, name in enumerate(was)}
    of_new = {name: place for place, name in enumerate(now)}
    names = [name for name in now if name in of_old]
    pairing = Pairing(names, [of_old[name] for name in names], [of_new[name] for name in names])
    columns = Columns(
        added=[name for name in now if name not in of_old],
        removed=[name for name in of_old if name not in of_new],
        renamed=list(renamed.items()),
        moved=pairing.old != sorted(pairing.old),
    )
    keys = [
        place
        for place in range(len(names))
        if _tells_apart(old_rows, pairing.old[place]) and _tells_apart(new_rows, pairing.new[place])
    ]
    keys.sort(key=lambda place: _KEY_NAME.fullmatch(names[place]) is None)
    shown = columns if columns != Columns() else None
    return msgspec.structs.replace(pairing, columns=shown, keys=keys[:CANDIDATES])


def _renamed(
    was: Sequence[str], now: Sequence[str], old_rows: Sequence[Row], new_rows: Sequence[Row]
) -> dict[str, str]:
    if len(was) != len(now):
        return {}
    gone, come = set(was) - set(now), set(now) - set(was)
    return {
        old: new
        for place, (old, new) in enumerate(zip(was, now, strict=True))
        if old in gone and new in come and _alike(old_rows, new_rows, place)
    }


def _alike(old_rows: Sequence[Row], new_rows: Sequence[Row], place: int) -> bool:
    old, new = {row[place] for row in old_rows}, {row[place] for row in new_rows}
    return 2 * len(old & new) >= min(len(old), len(new))


def _tells_apart(rows: Sequence[Row], place: int) -> bool:
    values = {row[place] for row in rows}
    return len(values) == len(rows) and "" not in values


class UnknownKey(UsageError):
    """The column given as the key is not in both versions."""

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
    """Return both tables with a header or both without; an empty file is a table without rows."""
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
    return _shown(_Sides(old, new, pairing, used), matched, notes, limits)


def _matched(
    old: FileTable, new: FileTable, pairing: Pairing, notes: list[str], wanted: str | None, most: int
) -> tuple[Matched, int | None]:
    with ExitStack() as stack:
        was, now = ([stack.enter_context(DigestList()) for _ in (0, *pairing.keys)] for _ in "on")
        write_digests(was, _digests(old, pairing.old, [pairing.old[place] for place in pairing.keys]))
        write_digests(now, _digests(new, pairing.new, [pairing.new[place] for place in pairing.keys]))
        chosen, largest = None, 0
        for number, place in enumerate(pairing.keys, 1):
            doubles, both = key_fitness(was[number], now[number])
            if doubles and pairing.names[place] == wanted:
                notes.append(
                    f"the key {wanted!r} is not unique ({doubles} rows repeat a value):"
                    " rows are matched whole"
                )
            if not doubles and both > largest:
                chosen, largest = number, both
        if chosen is None:
            return by_content(was[0], now[0], most), None
        matched = by_key((was[chosen], was[0]), (now[chosen], now[0]), most)
        return matched, pairing.keys[chosen - 1]


def _digests(table: FileTable, places: Sequence[int], keys: Sequence[int]) -> Iterator[int]:
    """Yield for each row the digest of its cells, then of each candidate for a key."""
    is_whole = list(places) == list(range(table.width))
    for row in table.rows():
        yield hash(tuple(row) if is_whole else tuple([row[place] for place in places]))
        for place in keys:
            yield hash(row[place])


class _Sides(msgspec.Struct, frozen=True):
    """The two tables, and the way a change in them is shown."""

    old: FileTable
    new: FileTable
    pairing: Pairing
    key: int | None

    def added(self, row: Row, limits: DiffLimits) -> Change:
        where = None if self.key is None else limits.shorten(row[self.pairing.new[self.key]])
        return Change(What.ADDED, where, new=shown_cells(self.new.columns, row, limits))

    def removed(self, row: Row, limits: DiffLimits) -> Change:
        where = None if self.key is None else limits.shorten(row[self.pairing.old[self.key]])
        return Change(What.REMOVED, where, old=shown_cells(self.old.columns, row, limits))

    def changed(self, was: Row, now: Row, limits: DiffLimits) -> Change:
        assert self.key is not None
        pairs = zip(self.pairing.names, self.pairing.old, self.pairing.new, strict=True)
        cells = [(name, was[old], now[new]) for name, old, new in pairs if was[old] != now[new]][
            : limits.cells
        ]
        return Change(
            What.CHANGED,
            limits.shorten(now[self.pairing.new[self.key]]),
            {name: limits.shorten(old) for name, old, _ in cells},
            {name: limits.shorten(new) for name, _, new in cells},
        )


def shown_cells(names: Sequence[str], row: Row, limits: DiffLimits) -> dict[str, str]:
    """The cells of a row by their columns, as far as they are shown."""
    return {name: limits.shorten(cell) for name, cell in islice(zip(names, row, strict=True), limits.cells)}


def _shown(sides: _Sides, matched: Matched, notes: list[str], limits: DiffLimits) -> Diff:
    found = {What.CHANGED: matched.changed, What.ADDED: matched.added, What.REMOVED: matched.removed}
    sizes = {what: places.count for what, places in found.items()}
    shares = limits.shares(sizes)
    changed = matched.changed.first(shares[What.CHANGED])
    removed = [place for (place,) in matched.removed.first(shares[What.REMOVED])]
    added = [place for (place,) in matched.added.first(shares[What.ADDED])]
    was = items_at(sides.old.rows(), {*removed, *(place for place, _ in changed)})
    now = items_at(sides.new.rows(), {*added, *(place for _, place in changed)})
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

"""The difference of two workbooks: sheets are matched by their names, and compared as tables."""

from itertools import islice

import msgspec

from tamias.features.archive.canonical.tables import FileTable
from tamias.features.archive.canonical.text import Source
from tamias.features.archive.canonical.workbooks import opened_workbook
from tamias.features.diffs.rows import UnknownKey, shown_cells, tables_diff
from tamias.model.diff import Change, Diff, DiffKind, DiffLimits, SheetDiff, What
from tamias.model.document import Unreadable


def sheets_diff(old: Source, new: Source, key: str | None, limits: DiffLimits) -> Diff:
    """Compares two workbooks sheet by sheet; counts are of rows. Raises `Unreadable`."""
    with opened_workbook(old) as was, opened_workbook(new) as now:
        _check_key(key, [(was[name], now[name]) for name in was.keys() & now.keys()])
        found = [_sheet(name, was.get(name), now.get(name), key, limits) for name in {**was, **now}]
    differing = [(sheet, rows) for sheet, rows in found if sheet is not None]
    changes = [change for _, rows in differing for change in rows.changes]
    counts = [sum(getattr(rows, what) for _, rows in differing) for what in ("added", "removed", "changed")]
    return Diff(
        kind=DiffKind.SHEETS,
        added=counts[0],
        removed=counts[1],
        changed=counts[2],
        changes=changes[: limits.changes],
        truncated=sum(counts) > min(len(changes), limits.changes),
        sheets=[sheet for sheet, _ in differing[: limits.cells]],
        notes=[f"{sheet.sheet}: {note}" for sheet, rows in differing for note in rows.notes][: limits.cells],
    )


def _check_key(key: str | None, pairs: list[tuple[FileTable, FileTable]]) -> None:
    """Raises `UnknownKey` where no sheet of both versions has such a column."""
    shared = {name: None for was, now in pairs for name in was.columns if name in now.columns}
    if key is not None and key not in shared:
        raise UnknownKey(key, list(shared))


def _sheet(
    name: str, was: FileTable | None, now: FileTable | None, key: str | None, limits: DiffLimits
) -> tuple[SheetDiff | None, Diff]:
    if was is None or now is None:
        rows = _whole(now, What.ADDED, limits) if now else _whole(was, What.REMOVED, limits)
        what = What.ADDED if now else What.REMOVED
    else:
        rows, what = _tables(was, now, key, limits), What.CHANGED
        if rows.is_empty:
            return None, rows
    sheet = SheetDiff(
        sheet=name, what=what, added=rows.added, removed=rows.removed, changed=rows.changed, key=rows.key,
        columns=rows.columns,
    )  # fmt: skip
    changes = [_placed(change, name) for change in rows.changes]
    return sheet, msgspec.structs.replace(rows, changes=changes)


def _tables(was: FileTable, now: FileTable, key: str | None, limits: DiffLimits) -> Diff:
    key = key if key in was.columns and key in now.columns else None
    try:
        return tables_diff(was, now, key, limits)
    except Unreadable:  # no column in common: the cells are compared by their places
        return tables_diff(was.without_header(), now.without_header(), key, limits)


def _whole(table: FileTable | None, what: What, limits: DiffLimits) -> Diff:
    """A sheet that came or went, with all its rows."""
    if table is None or table.is_empty:
        return Diff(kind=DiffKind.ROWS)
    count = sum(1 for _ in table.rows())
    shown = [shown_cells(table.columns, row, limits) for row in islice(table.rows(), limits.changes)]
    if what is What.ADDED:
        return Diff(kind=DiffKind.ROWS, added=count, changes=[Change(what, new=cells) for cells in shown])
    return Diff(kind=DiffKind.ROWS, removed=count, changes=[Change(what, old=cells) for cells in shown])


def _placed(change: Change, sheet: str) -> Change:
    """Return a change with its sheet in its place, as in `Prices!12`."""
    where = sheet if change.where is None else f"{sheet}!{change.where}"
    return msgspec.structs.replace(change, where=where)

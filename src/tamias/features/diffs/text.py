"""A diff as lines for the terminal. What comes from outside cannot move the cursor or hide itself."""

from collections.abc import Iterator
from typing import Any

import msgspec

from tamias.model.diff import Change, CollectionDiff, Columns, Diff, SheetDiff, What

_SIGNS = {What.ADDED: "+", What.REMOVED: "-", What.CHANGED: "~"}


def escaped(text: str) -> str:
    """The text with everything that is not seen as itself written as an escape.

    >>> escaped("a\\x1b[2J\\u202eb")
    'a\\\\x1b[2J\\\\u202eb'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def diff_lines(diff: Diff) -> Iterator[str]:
    """Yield the lines that `tamias diff` prints."""
    by_key = f" by {escaped(diff.key)}" if diff.key is not None else ""
    yield f"{diff.kind}{by_key}: {diff.added:,} added, {diff.removed:,} removed, {diff.changed:,} changed"
    if diff.columns is not None:
        yield from _column_lines(diff.columns)
    for sheet in diff.sheets:
        yield from _sheet_lines(sheet)
    for change in diff.changes:
        yield _change_line(change)
    if diff.truncated:
        more = diff.added + diff.removed + diff.changed - len(diff.changes)
        yield f"… and {more:,} more"
    yield from (f"note: {escaped(note)}" for note in diff.notes)


def collection_lines(diff: CollectionDiff) -> Iterator[str]:
    """The resources of a collection that came, changed or went."""
    yield f"resources: {len(diff.added):,} added, {len(diff.changed):,} changed, {len(diff.gone):,} gone"
    yield from (f"+ {escaped(name)}" for name in diff.added)
    yield from (f"~ {escaped(name)}" for name in diff.changed)
    yield from (f"- {escaped(name)}" for name in diff.gone)


def _column_lines(columns: Columns) -> Iterator[str]:
    yield from (f"+ column {escaped(name)}" for name in columns.added)
    yield from (f"- column {escaped(name)}" for name in columns.removed)
    yield from (f"~ column {escaped(old)} → {escaped(new)}" for old, new in columns.renamed)
    if columns.moved:
        yield "~ columns in another order"


def _sheet_lines(sheet: SheetDiff) -> Iterator[str]:
    by_key = f" by {escaped(sheet.key)}" if sheet.key is not None else ""
    counts = f"{sheet.added:,} added, {sheet.removed:,} removed, {sheet.changed:,} changed"
    yield f"{_SIGNS[sheet.what]} sheet {escaped(sheet.sheet)}{by_key}: {counts}"
    if sheet.columns is not None:
        yield from _column_lines(sheet.columns)


def _change_line(change: Change) -> str:
    where = f"{escaped(change.where)}: " if change.where is not None else ""
    return f"{_SIGNS[change.what]} {where}{_content(change)}"


def _content(change: Change) -> str:
    if change.what is not What.CHANGED:
        return _value(change.new if change.what is What.ADDED else change.old)
    if isinstance(change.old, dict) and isinstance(change.new, dict):
        names = [name for name in change.old if change.old[name] != change.new.get(name)]
        return ", ".join(
            f"{escaped(name)} {_cell(change.old[name])} → {_cell(change.new[name])}" for name in names
        )
    return f"{_value(change.old)} → {_value(change.new)}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, dict):
        return ", ".join(f"{escaped(name)}={_cell(cell)}" for name, cell in value.items())
    return _cell(value)


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return escaped(text) if text else "(empty)"

"""Workbooks (XLSX, XLS, ODS): a child under limits writes the sheets as CSV, each is profiled as a table."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from tamias.content.formats import CSV
from tamias.features.archive.canonical.sheet_rows import Order, Report, Sheet
from tamias.features.archive.canonical.workbooks import ENCRYPTED, MEMORY, is_encrypted, read_sheets
from tamias.features.tables.encoding import as_utf8
from tamias.features.tables.limits import ProfileLimits, Watch
from tamias.features.tables.scratch import ScratchFolder
from tamias.features.tables.tables import Tables
from tamias.model.profile import TableProfile


def sheet_tables(
    path: Path, folder: ScratchFolder, limits: ProfileLimits, watch: Watch, problems: list[str]
) -> Iterator[TableProfile]:
    """A table for each sheet that has rows."""
    if is_encrypted(path):
        problems.append(ENCRYPTED)
        return
    report = _sheets(path, folder.path, limits, watch)
    problems.extend(report.problems)
    tables = Tables(folder, limits, watch, problems)
    for sheet in report.sheets:
        copy = folder.path / sheet.file
        text = as_utf8(copy, folder, "sheet.txt", None, limits, watch)
        copy.unlink()
        table = tables.table(text, sheet.name, CSV, ",")
        if table is not None:
            yield _as_sheet(table, sheet, limits, problems)


def _as_sheet(table: TableProfile, sheet: Sheet, limits: ProfileLimits, problems: list[str]) -> TableProfile:
    wide = sheet.width > limits.columns
    if wide:
        problems.append(
            f"{sheet.name}: {sheet.width} columns, of which the first {limits.columns} are profiled"
            " (limit profile.columns)"
        )
    return msgspec.structs.replace(
        table,
        encoding=None,
        delimiter=None,
        quote=None,
        width=sheet.width if wide else table.width,
        complete=table.complete and sheet.complete,
    )


def _sheets(path: Path, folder: Path, limits: ProfileLimits, watch: Watch) -> Report:
    seconds = max(1, round(watch.left))
    order = Order(
        workbook=str(path.absolute()),
        folder=str(folder),
        memory=MEMORY,
        seconds=seconds,
        sheets=limits.sheets,
        rows=limits.rows,
        columns=limits.columns,
        bytes=limits.bytes,
    )
    try:
        return read_sheets(order)
    except TimeoutError:
        return Report(sheets=[], problems=[str(watch.over())])

"""Workbooks (XLSX, XLS, ODS): a child under limits writes the sheets as CSV, each is profiled as a table."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from tamias.content.formats import CSV
from tamias.features.archive.canonical.sheet_rows import Order
from tamias.features.archive.canonical.workbooks import ENCRYPTED, MEMORY, is_encrypted, read_sheets
from tamias.features.tables.encoding import as_utf8
from tamias.features.tables.limits import ProfileRun
from tamias.features.tables.tables import table_profile
from tamias.model.profile import TableProfile


def sheet_tables(path: Path, run: ProfileRun) -> Iterator[TableProfile]:
    """A table for each sheet that has rows."""
    if is_encrypted(path):
        run.problems.append(ENCRYPTED)
        return
    limits, folder = run.limits, run.folder.path
    order = Order(
        workbook=str(path.absolute()),
        folder=str(folder),
        memory=MEMORY,
        seconds=max(1, round(run.left)),
        sheets=limits.sheets,
        rows=limits.rows,
        columns=limits.columns,
        bytes=limits.bytes,
    )
    try:
        report = read_sheets(order)
    except TimeoutError:
        run.problems.append(str(run.over()))
        return
    run.problems += report.problems
    for sheet in report.sheets:
        copy = folder / sheet.file
        text = as_utf8(copy, run, "sheet.txt", None)
        copy.unlink()
        table = table_profile(run, text, sheet.name, CSV, ",")
        if table is None:
            continue
        wide = sheet.width > limits.columns
        if wide:
            run.problems.append(
                f"{sheet.name}: {sheet.width} columns, of which the first {limits.columns} are profiled"
                " (limit profile.columns)"
            )
        yield msgspec.structs.replace(
            table,
            encoding=None,
            delimiter=None,
            quote=None,
            width=sheet.width if wide else table.width,
            complete=table.complete and sheet.complete,
        )

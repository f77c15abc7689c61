"""The rows of a page as CSV, for spreadsheets: what was crawled must not become a formula there."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.responses import Response

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class CsvTable(msgspec.Struct, frozen=True):
    """Columns and rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def table_of(items: Sequence[msgspec.Struct], *columns: str) -> CsvTable:
    """Items with some of their fields as columns."""
    return CsvTable(columns, [[getattr(each, name) for name in columns] for each in items])


def csv_answer(table: CsvTable) -> Response:
    """The table as RFC 4180 writes it, in UTF-8.

    >>> csv_answer(CsvTable(["=1+1"], [["=2+2"]])).body
    b"'=1+1\\r\\n'=2+2\\r\\n"
    """
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow([cell(name) for name in table.columns])
    lines.writerows([cell(value) for value in row] for row in table.rows)
    headers = {"Cache-Control": "no-cache", "Content-Disposition": 'inline; filename="tamias.csv"'}
    return Response(text.getvalue(), headers=headers, media_type="text/csv; header=present")


def cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula begins with an apostrophe.

    >>> cell("=1+1"), cell(-1), cell(None)
    ("'=1+1", -1, '')
    """
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value

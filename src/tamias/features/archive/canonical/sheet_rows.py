"""A program of its own: writes the sheets of a workbook as CSV files, and says on stdout what they are.

Its reader holds a sheet as a full rectangle, so that few bytes can ask for much memory: it runs under limits.
"""

import csv
import os
import resource
import sys
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

Cell = int | float | str | bool | date | datetime | time | timedelta


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The workbook to read, the folder to write to, and the limits."""

    workbook: str
    folder: str
    memory: int
    seconds: int
    sheets: int
    rows: int
    columns: int
    bytes: int


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """The file written from one sheet."""

    name: str
    file: str
    width: int
    complete: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The sheets written from a workbook, and the problems met."""

    sheets: list[Sheet]
    problems: list[str]


def main() -> None:
    """Carries out the order in the first argument."""
    order = msgspec.json.decode(sys.argv[1], type=Order)
    resource.setrlimit(resource.RLIMIT_AS, (order.memory, order.memory))
    resource.setrlimit(resource.RLIMIT_CPU, (order.seconds, order.seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.buffer.write(msgspec.json.encode(_written(order)))
    sys.stdout.flush()
    os._exit(0)  # what a hostile workbook left behind need not be cleaned up


def _written(order: Order) -> Report:
    from python_calamine import CalamineError, CalamineWorkbook

    sheets: list[Sheet] = []
    problems: list[str] = []
    try:
        with open(order.workbook, "rb") as file, CalamineWorkbook.from_filelike(file) as workbook:
            names = workbook.sheet_names
            if len(names) > order.sheets:
                problems.append(
                    f"{len(names)} sheets, of which the first {order.sheets} are profiled"
                    " (limit profile.sheets)"
                )
            for number, name in enumerate(names[: order.sheets], 1):
                try:
                    sheet = workbook.get_sheet_by_name(name)
                    sheets.append(_sheet(sheet, name, f"sheet-{number}.csv", order))
                except CalamineError as error:
                    problems.append(f"sheet {name!r}: {error}")
    except CalamineError as error:
        problems.append(f"no workbook that can be read: {error}")
    return Report(sheets=sheets, problems=problems)


def _sheet(sheet: "CalamineSheet", name: str, file: str, order: Order) -> Sheet:
    count = 0
    with (Path(order.folder) / file).open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target, lineterminator="\n")
        for row in _rows(sheet, order.columns):
            if count == order.rows or target.tell() > order.bytes:
                return Sheet(name=name, file=file, width=sheet.width, complete=False)
            writer.writerow(row)
            count += 1
    return Sheet(name=name, file=file, width=sheet.width, complete=True)


def _rows(sheet: "CalamineSheet", columns: int) -> Iterator[list[str]]:
    for row in sheet.iter_rows():
        cells = [_text(cell) for cell in row[:columns]]
        if any(cells):  # an empty row says nothing, like a blank line of CSV
            yield cells


def _text(cell: Cell) -> str:
    """Return a cell as CSV has it, whole numbers without a decimal point."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, date | time):
        return cell.isoformat()
    return str(cell).replace("\0", "")


if __name__ == "__main__":
    main()

"""Workbooks (XLSX, XLS, ODS): a child under limits writes the sheets as CSV, each is profiled as a table."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tamias.analyse.profile.dialect import Marks
from tamias.analyse.profile.encoding import as_utf8
from tamias.analyse.profile.files import sheet_rows
from tamias.analyse.profile.files.sheet_rows import Order, Report, Sheet
from tamias.analyse.profile.limits import MIB, ProfileLimits, Watch
from tamias.analyse.profile.tables import Tables
from tamias.model.environment import environment_without_secrets
from tamias.model.profile import TableProfile

_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")

MEMORY = 2048 * MIB
"""Of addresses, which Python and its libraries take more of than of memory."""


def sheet_tables(
    path: Path, folder: Path, limits: ProfileLimits, watch: Watch, problems: list[str]
) -> Iterator[TableProfile]:
    """A table for each sheet that has rows."""
    if is_encrypted(path):
        problems.append("encrypted: not read without its password")
        return
    report = _sheets(path, folder, limits, watch)
    problems.extend(report.problems)
    tables = Tables(folder, limits, watch, problems)
    for sheet in report.sheets:
        copy = folder / sheet.file
        text = as_utf8(copy, folder / "sheet.txt", None, limits, watch)
        copy.unlink()
        table = tables.table(text, sheet.name, Marks(","))
        if table is not None:
            yield _as_sheet(table, sheet, limits, problems)


def is_encrypted(path: Path) -> bool:
    """Whether it is a compound file that has a workbook behind a password, as its directory says."""
    with path.open("rb") as file:
        head = file.read(512)
        if not head.startswith(_COMPOUND):
            return False
        file.seek((int.from_bytes(head[48:52], "little") + 1) << min(head[30], 16))
        return _ENCRYPTED in file.read(4096)


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
    command = [sys.executable, "-P", sheet_rows.__file__, msgspec.json.encode(order).decode()]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds + 1,
            check=False,
            env=environment_without_secrets(),
        )
        return msgspec.json.decode(done.stdout, type=Report)
    except subprocess.TimeoutExpired:
        return Report(sheets=[], problems=[str(watch.over())])
    except msgspec.DecodeError:
        return Report(sheets=[], problems=[_ended(done.returncode)])


def _ended(code: int) -> str:
    return (
        f"not read: the reader of workbooks ended with {f'signal {-code}' if code < 0 else f'code {code}'},"
        f" as when it needs more than {MEMORY // MIB} MiB of memory"
    )

"""Workbooks (XLSX, XLS, ODS): a child process under limits writes the sheets as CSV files.

Pictures, comments, embedded files, macros and links beside the cells are compared by their checksums.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import msgspec

from tamias.content.containers.archives import bounded_zip
from tamias.features.archive.canonical import sheet_rows
from tamias.features.archive.canonical.directory import members
from tamias.features.archive.canonical.sheet_rows import Order, Report
from tamias.features.archive.canonical.tables import FileTable, found_table
from tamias.features.archive.canonical.text import Source, open_source, size_of
from tamias.model.document import LimitExceeded, Unreadable
from tamias.model.process import environment_without_secrets

_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
ENCRYPTED = "encrypted: not read without its password"

MIB = 1 << 20
MEMORY = 2048 * MIB
"""Of addresses, which Python and its libraries take more of than of memory."""
MOST_WORKBOOK = 64 * MIB
MOST_SHEET = 256 * MIB
MOST_ROWS = 2_000_000
MOST_COLUMNS = 16_384
MOST_SHEETS = 500
MOST_SECONDS = 60
MOST_LINKS = 1 << 22
"""Bytes of all relations that are read; those of a larger workbook are compared by their checksums."""
_PART = re.compile(r"/media/|/embeddings/|comment[^/]*$|/vbaproject\.bin$|^pictures/", re.IGNORECASE)
_RELATIONS = re.compile(r"/worksheets/_rels/[^/]+\.rels$")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\b[^>]*>")
_OUTSIDE = re.compile(rb"""\bTargetMode\s*=\s*["']External["']""")
_TARGET = re.compile(rb"""\bTarget\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_FAULTS = (
    zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, OverflowError, EOFError, LimitExceeded,
)  # fmt: skip


@contextmanager
def opened_workbook(source: Source) -> Iterator[dict[str, FileTable]]:
    """The sheets of a workbook by their names, in order, all of them whole. Raises `Unreadable`."""
    if size_of(source) > MOST_WORKBOOK:
        raise Unreadable(f"a workbook of more than {MOST_WORKBOOK} bytes")
    with tempfile.TemporaryDirectory(prefix="tamias-sheets-") as name:
        folder = Path(name)
        path = folder / "workbook" if isinstance(source, bytes) else source
        if isinstance(source, bytes):
            path.write_bytes(source)
        yield {name: found_table(file, MOST_SHEET, ",") for name, file in _sheet_files(path, folder).items()}


def _sheet_files(path: Path, folder: Path) -> dict[str, Path]:
    if is_encrypted(path):
        raise Unreadable(ENCRYPTED)
    order = Order(
        workbook=str(path.absolute()), folder=str(folder), memory=MEMORY, seconds=MOST_SECONDS,
        sheets=MOST_SHEETS, rows=MOST_ROWS, columns=MOST_COLUMNS, bytes=MOST_SHEET,
    )  # fmt: skip
    try:
        report = read_sheets(order)
    except TimeoutError as fault:
        raise Unreadable(f"a workbook that takes more than {MOST_SECONDS} s") from fault
    if report.problems:
        raise Unreadable(report.problems[0])
    if not all(sheet.complete and sheet.width <= MOST_COLUMNS for sheet in report.sheets):
        raise Unreadable("a sheet that is too large to be compared")
    return {sheet.name: folder / sheet.file for sheet in report.sheets}


def is_encrypted(path: Path) -> bool:
    """Return whether a compound file has a workbook behind a password, by its directory."""
    with path.open("rb") as file:
        head = file.read(512)
        if not head.startswith(_COMPOUND):
            return False
        file.seek((int.from_bytes(head[48:52], "little") + 1) << min(head[30], 16))
        return _ENCRYPTED in file.read(4096)


def read_sheets(order: Order) -> Report:
    """Has the sheets written. Raises `TimeoutError`; whatever else goes wrong is among the problems."""
    command = [sys.executable, "-P", sheet_rows.__file__, msgspec.json.encode(order).decode()]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=order.seconds + 1,
            check=False,
            env=environment_without_secrets(),
        )
        return msgspec.json.decode(done.stdout, type=Report)
    except subprocess.TimeoutExpired as late:
        raise TimeoutError from late
    except msgspec.DecodeError:
        return Report(sheets=[], problems=[_ended(done.returncode)])


def _ended(code: int) -> str:
    return (
        f"not read: the reader of workbooks ended with {f'signal {-code}' if code < 0 else f'code {code}'},"
        f" as when it needs more than {MEMORY // MIB} MiB of memory"
    )


def beside_cells(source: Source) -> list[str]:
    """The checksums of its parts and the addresses of its links, sorted; without names, which are numbers.

    Nothing of what is no zip archive.
    """
    try:
        found = members(source)
    except Unreadable:
        return []
    parts = [f"{each.crc:08x} {each.size}" for each in found if _PART.search(each.name)]
    relations = [each for each in found if _RELATIONS.search(each.name)]
    try:
        links = _links(source, [each.name for each in relations])
    except _FAULTS:
        links = [f"{each.crc:08x} {each.size}" for each in relations]
    return sorted(parts) + sorted(links)


def _links(source: Source, names: list[str]) -> list[str]:
    links: list[str] = []
    if not names:
        return links
    left = MOST_LINKS
    with open_source(source) as file, bounded_zip(file) as archive:
        for name in names:
            with archive.open(name) as member:
                text = member.read(left + 1)
            left -= len(text)
            if left < 0:
                raise LimitExceeded(f"more than {MOST_LINKS} bytes of relations")
            links += map(_address, filter(_OUTSIDE.search, _RELATION.findall(text)))
    return links


def _address(relation: bytes) -> str:
    found = _TARGET.search(relation)
    return unescape((found[1] or found[2] or b"").decode("utf-8", "replace")) if found else ""

"""Results that are bytes: to stdout, or to a file that appears under its name only when it is complete."""

import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from tamias.database.disk import write_errors
from tamias.model.errors import UsageError

Write = Callable[[BinaryIO], object]
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_output(write: Write, output: Path | None) -> None:
    """Write a result to a file, or to stdout if none is named."""
    to_file(write, output) if output else to_stdout(write)


def to_stdout(write: Write) -> None:
    """Writes a result to stdout."""
    with write_errors("the result"):
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()


def to_file(write: Write, output: Path) -> None:
    """Writes a result to a file. A device or a pipe is written to directly: it must not be replaced."""
    if output.exists() and not output.is_file():
        with write_errors(output), output.open("wb") as file:
            write(file)
        return
    partial = output.with_name(output.name + ".part")
    try:
        with write_errors(output):
            with partial.open("wb") as file:
                write(file)
            partial.replace(output)
    finally:
        with suppress(OSError):
            partial.unlink()


def to_folder(write: Callable[[Path], None], output: Path) -> None:
    """Writes a result to a new folder; `write` makes the one that it is given."""
    partial = output.with_name(output.name + ".part")
    for each in (output, partial):
        if each.exists():
            raise UsageError(f"{each} already exists; name a new folder")
    try:
        with write_errors(output):
            write(partial)
            partial.rename(output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def csv_cell(value: Any) -> Any:
    """Return a value for a CSV file; a text that a spreadsheet would take for a formula gets an apostrophe.

    >>> csv_cell("=1+1"), csv_cell(-1), csv_cell(None)
    ("'=1+1", -1, '')
    """
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value

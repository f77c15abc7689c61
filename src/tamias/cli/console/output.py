"""Results that are bytes: to stdout, or to a file that appears under its name only when it is complete."""

import errno
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tamias.model.errors import DiskFull, TamiasError, UsageError

Write = Callable[[BinaryIO], None]


def to_stdout(write: Write) -> None:
    """Writes a result to stdout."""
    with _failures_told("the result"):
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()


def to_file(write: Write, output: Path) -> None:
    """Writes a result to a file. A device or a pipe is written to directly: it must not be replaced."""
    if output.exists() and not output.is_file():
        with _failures_told(str(output)), output.open("wb") as file:
            write(file)
        return
    partial = output.with_name(output.name + ".part")
    try:
        with _failures_told(str(output)):
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
        with _failures_told(str(output)):
            write(partial)
            partial.rename(output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _failures_told(target: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else TamiasError
        raise kind(f"cannot write {target}: {error.strerror}") from error

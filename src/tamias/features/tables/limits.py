"""Limits of a profile, the work on one body within them, and temporary places for it.

A place is a folder that is deleted, or a database without access to anything else.
"""

import errno
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import duckdb


KIB = 1 << 10
MIB = 1 << 20


class ProfileLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the profile of one body. The field names are the setting words of `[profile]`."""

    seconds: float = 60.0
    """For all of it; what is known by then counts."""
    bytes: int = 512 * MIB
    """Of text, tables, JSON, XML and RDF that are read; the rest is not looked at."""
    memory: int = 256 * MIB
    """For the database that a table is read into; beyond that it uses the disk. Few tables need all of it."""
    disk: int = 4096 * MIB
    """For copies in the scratch folder."""
    line: int = 2 * MIB
    """The longest line, in bytes, of a table."""
    rows: int = 20_000_000
    columns: int = 500
    """Columns of a table that are profiled; the rest are only counted."""
    sheets: int = 50
    top_values: int = 10
    value: int = 100
    """Characters of a value that is shown."""
    exact_rows: int = 1_000_000
    """Distinct values are counted in tables of up to so many rows, and estimated in larger ones."""
    item: int = 16 * MIB
    """Bytes of JSON that are held at once: a document, a line, or one element of a large array."""
    paths: int = 500
    """Different places of JSON or XML."""
    depth: int = 250
    members: int = 1000
    usages: int = 200
    """Classes and properties that are listed of RDF."""
    problems: int = 50


class ProfileLimit(Exception):
    """Reading stops here; the message names the limit and its setting. What was read before it counts."""


class MemoryLimit(ProfileLimit):
    """A profile needed more memory or temporary disk space than is allowed."""


class ProfileRun:
    """The work on one body: its limits, the time that is left, a folder for copies, and what goes wrong."""

    def __init__(self, limits: ProfileLimits, folder: "ScratchFolder") -> None:
        self.limits = limits
        self.folder = folder
        self.problems: list[str] = []
        self._end = time.monotonic() + limits.seconds

    @property
    def left(self) -> float:
        """Seconds, never less than 0."""
        return max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """Raises `ProfileLimit` when the time is over."""
        if time.monotonic() > self._end:
            raise self.over()

    def over(self) -> ProfileLimit:
        """Return the error that says that the time is over."""
        return ProfileLimit(f"not read on after {self.limits.seconds:g} s (limit profile.seconds)")

    def beyond_bytes(self) -> ProfileLimit:
        """Return the error that says that a body is longer than what is read of it."""
        return ProfileLimit(f"not read beyond {self.limits.bytes} bytes (limit profile.bytes)")


class ScratchFolder(ExitStack):
    """A folder for copies that is made when it is asked for, and goes away in the end."""

    def __init__(self, parent: Path | None) -> None:
        """Prepare a folder within `parent`, or in the system's folder for temporary files."""
        super().__init__()
        self._parent = parent

    @cached_property
    def path(self) -> Path:
        """The folder; may raise `OSError`."""
        return Path(self.enter_context(TemporaryDirectory(prefix="profile-", dir=self._parent)))


def open_confined(
    readable: Sequence[Path], folder: Path, memory: int, disk: int, threads: int | None = None
) -> "duckdb.DuckDBPyConnection":
    """Open a database in memory that may read some files and spill into a folder, and nothing else."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{memory}B",
        "temp_directory": str(folder / "spill"),
        "max_temp_directory_size": f"{disk}B",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    tables = duckdb.connect(":memory:", config=config | ({"threads": threads} if threads else {}))
    # No bar on the caller's screen. `in_clause` needs more than the memory for tables of 300 columns.
    tables.execute("SET enable_progress_bar = false; SET disabled_optimizers = 'in_clause'")
    tables.execute("SET allowed_paths = ?", [[str(path) for path in readable]])
    tables.execute("SET enable_external_access = false")
    tables.execute("SET lock_configuration = true")
    return tables


@contextmanager
def workbench(path: Path, run: ProfileRun, memory: int) -> "Iterator[duckdb.DuckDBPyConnection]":
    """A DuckDB in memory that may read this file and spill into the folder, and nothing else.

    Raises `ProfileLimit` when the time, memory or space allowed is used up, `OSError` when the disk is full.
    """
    with (
        closing(open_confined([path], run.folder.path, memory, run.limits.disk, threads=1)) as tables,
        within_limits(tables, run, memory),
    ):
        yield tables


@contextmanager
def within_limits(tables: "duckdb.DuckDBPyConnection", run: ProfileRun, memory: int) -> Iterator[None]:
    """Interrupt queries when their time is over. Raises what `workbench` raises."""
    import duckdb

    done = threading.Event()
    alarm = threading.Thread(target=_interrupt_late, args=(tables, run, done), daemon=True)
    alarm.start()
    try:
        yield
    except duckdb.InterruptException as interrupt:
        raise run.over() from interrupt
    except duckdb.OutOfMemoryException as error:
        raise MemoryLimit(
            f"needs more than {memory} bytes of memory or {run.limits.disk} of disk"
            " (limits profile.memory, profile.disk)"
        ) from error
    except duckdb.IOException as error:
        if "No space left" in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(run.folder.path)) from error
        raise
    finally:
        done.set()
        alarm.join()


def _interrupt_late(tables: "duckdb.DuckDBPyConnection", run: ProfileRun, done: threading.Event) -> None:
    """Again and again, since an interrupt between two queries stops neither."""
    pause = run.left
    while not done.wait(pause):
        tables.interrupt()
        pause = 0.05


def first_line(error: BaseException) -> str:
    """The first line of a message of DuckDB."""
    return str(error).partition("\n")[0][:300]

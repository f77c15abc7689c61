"""Temporary places to work on a body: a folder that is deleted, and a database without outside access."""

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tamias.features.tables.limits import MemoryLimit, ProfileRun

if TYPE_CHECKING:
    import duckdb


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
    import duckdb

    with closing(open_confined([path], run.folder.path, memory, run.limits.disk, threads=1)) as tables:
        done = threading.Event()
        alarm = threading.Thread(target=_interrupt_late, args=(tables, run, done), daemon=True)
        alarm.start()
        try:
            yield tables
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

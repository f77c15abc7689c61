"""What an experiment stands on: a data directory of its own, and proof that nothing is left running in it."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamias.model.errors import DatabaseError, UsageError

_END_SECONDS = 90.0
_QUIET = 0.9


@contextmanager
def workspace(data: Path | None) -> Iterator[Path]:
    """A temporary data directory, or the empty one that was named; removed with all its contents."""
    if data is None:
        folder = Path(tempfile.mkdtemp(prefix="tamias-bench-"))
    else:
        if data.exists() and (not data.is_dir() or any(data.iterdir())):
            raise UsageError(f"{data} is not empty, and the experiment would remove it; name a new folder")
        data.mkdir(parents=True, exist_ok=True)
        folder = data.absolute()
    try:
        yield folder
    finally:
        left = wait_for_end(folder)
        shutil.rmtree(folder, ignore_errors=bool(left))
    if left:
        raise DatabaseError(f"processes {left} still use {folder} {_END_SECONDS:.0f} s after the last user")


def wait_for_quiet(seconds: float) -> None:
    """Waits until the machine has been nearly idle for a second, but no longer than so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        idle, total = _processor_times()
        time.sleep(1.0)
        idle_later, total_later = _processor_times()
        if idle_later - idle > _QUIET * (total_later - total):
            return


def _processor_times() -> tuple[int, int]:
    """Idle ticks and all ticks of all processors since the start (idle and iowait are fields 4 and 5)."""
    fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
    ticks = [int(field) for field in fields]
    return ticks[3] + ticks[4], sum(ticks)


def wait_for_end(folder: Path, seconds: float = _END_SECONDS) -> list[int]:
    """Waits until no process uses the folder; returns those that still do."""
    deadline = time.monotonic() + seconds
    while (left := processes_in(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def processes_in(folder: Path) -> list[int]:
    """Other processes that name the folder in their command or work inside it."""
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in numbers if pid != os.getpid() and works_in(pid, folder)]


def works_in(pid: int, folder: Path) -> bool:
    """Whether that process is alive and belongs to the folder."""
    place = f"{folder}/"
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        working = f"{Path(f'/proc/{pid}/cwd').readlink()}/"
    except OSError:
        return False
    return working.startswith(place) or any(f"{os.fsdecode(word)}/".startswith(place) for word in command)

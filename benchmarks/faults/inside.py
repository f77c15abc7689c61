"""Faults within a process of Tamias: its clock, its writes, a record of what it synced.

`BEGIN` in the environment asks for one; `hooks/sitecustomize.py`, put on the path, makes every process look.
"""

import errno
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

VARIABLE = "TAMIAS_BENCH_INSIDE"
HOOKS = Path(__file__).parent / "hooks"


def asking_for(fault: str, *words: object) -> dict[str, str]:
    """The environment of a process that is to have the fault."""
    return {VARIABLE: "\n".join([fault, *map(str, words)]), "PYTHONPATH": str(HOOKS)}


def begin() -> None:
    """What the environment asks for; nothing if it does not."""
    fault, *words = os.environ.get(VARIABLE, "").split("\n")
    if fault:
        _FAULTS[fault](*words)


def note_syncs(log: str) -> None:
    """Notes every file that was synced with the size it had, and every folder with the names in it."""
    for name in ("fsync", "fdatasync"):
        setattr(os, name, _noting(getattr(os, name), log))


def _noting(sync: Callable[[int], None], log: str) -> Callable[[int], None]:
    def synced(file: Any) -> None:
        number = file if isinstance(file, int) else file.fileno()
        path = os.readlink(f"/proc/self/fd/{number}")
        known = os.fstat(number)
        folder = stat.S_ISDIR(known.st_mode)
        lines = (
            [f"{path}/{name}\tnamed" for name in os.listdir(path)] if folder else [f"{path}\t{known.st_size}"]
        )
        sync(number)
        with open(log, "a", encoding="utf-8") as notes:
            notes.write("".join(f"{line}\n" for line in lines))

    return synced


def break_writes(folder: str, share: str, failing: str, seed: str) -> None:
    """A share of the writes to files of a folder is short; of these again a share fails altogether."""
    write, random = os.write, Random(f"{seed}/{os.getpid()}/{time.monotonic()}")

    def written(file: int, data: Any) -> int:
        if random.random() >= float(share) or not os.readlink(f"/proc/self/fd/{file}").startswith(folder):
            return write(file, data)
        with open(f"{folder}.broken", "ab") as notes:
            notes.write(b".")
        if random.random() < float(failing):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return write(file, memoryview(data)[: max(1, len(data) // 2)])

    os.write = written


def shift_clock(offset: str) -> None:
    """The wall clock is wrong by as many seconds as stand in a file, and jumps when that is written anew."""
    right, right_ns = time.time, time.time_ns

    def seconds() -> float:
        try:
            return float(Path(offset).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0.0

    time.time = lambda: right() + seconds()
    time.time_ns = lambda: right_ns() + int(seconds() * 1e9)


_FAULTS: dict[str, Callable[..., None]] = {
    "syncs": note_syncs,
    "writes": break_writes,
    "clock": shift_clock,
}

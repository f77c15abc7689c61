"""What Linux tells under /proc about the descendants of a process: names, processor time, memory."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from tamias.crawl.worker.fork_server import DATABASE_WORKER, PROCESS_NAME

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
_READ_LIMIT = 64 * 1024


class Process(msgspec.Struct, frozen=True):
    """One process at one moment."""

    pid: int
    parent: int
    started: int
    """In ticks since the machine started: with the number it names a process for good."""
    cpu_seconds: float
    name: str = ""
    """Empty for one that has ended and waits to be reaped."""


def glance(root: int) -> tuple[Counter[str], dict[tuple[int, int], tuple[str, float]]]:
    """Memory of all descendants of `root` by name of program; by process its name and processor time."""
    sizes: Counter[str] = Counter()
    used = {}
    for process in members(root):
        if not process.name:
            continue
        sizes[process.name] += pss(process.pid)
        used[process.pid, process.started] = process.name, process.cpu_seconds
    return sizes, used


def members(root: int) -> list[Process]:
    """All descendants of `root`, itself not included."""
    children: dict[int, list[Process]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process)
    found, waiting = [], [root]
    while waiting:
        for process in children.get(waiting.pop(), []):
            found.append(msgspec.structs.replace(process, name=name_of(command_line(process.pid))))
            waiting.append(process.pid)
    return found


def processes() -> Iterator[Process]:
    """Every process there is, unnamed."""
    for entry in os.listdir(_PROC):
        if entry.isdigit():
            with suppress(OSError):
                yield parse_stat(read(_PROC / entry / "stat"))


def parse_stat(line: bytes) -> Process:
    """A line of /proc/PID/stat; the name in it may hold spaces and brackets.

    >>> parse_stat(b"7 (a b) c) S 1 7 7 0 -1 4194304 9 0 0 0 25 75 500 0 20 0 1 0 4321 0 0").started
    4321
    """
    fields = line.rpartition(b")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return Process(int(line.split(b" ", 1)[0]), int(fields[1]), int(fields[19]), ticks / _TICKS)


def pss(pid: int) -> int:
    """Memory of a process in bytes, what it shares divided by those who share it; 0 if it is gone."""
    with suppress(OSError):
        found = re.search(rb"^Pss:\s+(\d+) kB", read(_PROC / str(pid) / "smaps_rollup"), re.MULTILINE)
        return int(found[1]) * 1024 if found else 0
    return 0


def command_line(pid: int) -> bytes:
    """The words it was started with, or what it wrote over them."""
    with suppress(OSError):
        return read(_PROC / str(pid) / "cmdline")
    return b""


def name_of(line: bytes) -> str:
    """The name under which a process is counted: a Python program counts as its module or script.

    >>> name_of(b"/usr/bin/python3\\0-m\\0tamias\\0crawl\\0")
    'tamias'
    >>> name_of(b"postgres: tamias tamias [local] idle")
    'postgres'
    >>> name_of(b"tamias-worker\\0\\0")
    'tamias.crawl.worker'
    """
    words = line.decode(errors="replace").split("\0")
    program = words[0].partition(":")[0].rpartition("/")[2]
    if program == PROCESS_NAME:
        return DATABASE_WORKER
    if not program.startswith("python"):
        return program
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1]
    if "-c" in words:
        return program
    scripts = [word for word in words[1:] if word and not word.startswith("-")]
    return scripts[0].rpartition("/")[2] if scripts else program


def read(path: Path) -> bytes:
    """The start of a file, which is all there is of these."""
    with path.open("rb") as file:
        return file.read(_READ_LIMIT)

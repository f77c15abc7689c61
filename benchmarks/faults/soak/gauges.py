"""Memory and open files of the processes that live long, and whether they grow."""

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.faults.machine import Machine
from benchmarks.measuring.proc import Process, members

MEGABYTE = 1 << 20
MOST_SHARE, MOST_MEGABYTES, MOST_FILES = 0.15, 12.0, 6.0
"""What may be gained in the last half of a run: a share of the mean, or so much if that is more."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Gauge(NamedTuple):
    """One process, or the processes of one name, at one moment."""

    seconds: float
    megabytes: float
    """Not shared with others."""
    files: int


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """How one kind of process grew in the last half, by the line that fits best."""

    megabytes: float
    """On average."""
    gained_megabytes: float
    files: float
    gained_files: float
    looks: int

    @property
    def is_flat(self) -> bool:
        """Whether it grew no more than noise."""
        most = max(MOST_MEGABYTES, MOST_SHARE * self.megabytes)
        most_files = max(MOST_FILES, MOST_SHARE * self.files)
        return self.gained_megabytes <= most and self.gained_files <= most_files


class Gauges:
    """All looks so far, by what the process is."""

    def __init__(self) -> None:
        self.looks: dict[str, list[Gauge]] = defaultdict(list)

    def look(self, machine: Machine, root: int, seconds: float) -> None:
        """At the service `root`, all below it, and the database. Of several of a name the oldest counts."""
        running = machine.running()
        roots = [running.keeper_pid] if running else []
        found: dict[str, list[Process]] = defaultdict(list)
        for process in (each for one in (root, *roots) for each in members(one)):
            if process.name:
                found[process.name].append(process)
        alone = {"service": root} | ({"keeper": roots[0]} if roots else {})
        for name, pid in alone.items():
            self._note(name, [pid], seconds)
        for name, processes in found.items():
            oldest = sorted(processes, key=lambda each: each.started)
            pids = [each.pid for each in (oldest if name == "postgres" else oldest[:1])]
            self._note(name, pids, seconds)

    def latest(self, name: str) -> Gauge:
        """The last look at processes of a name."""
        looks = self.looks.get(name)
        return looks[-1] if looks else Gauge(0.0, 0.0, 0)

    def growths(self, since: float) -> dict[str, Growth]:
        """How each kind of process grew from then on; those that were looked at often enough."""
        found = {}
        for name, looks in self.looks.items():
            late = [look for look in looks if look.seconds >= since]
            if len(late) >= 6:
                found[name] = _growth(late)
        return found

    def _note(self, name: str, pids: list[int], seconds: float) -> None:
        with suppress(OSError):
            megabytes = sum(map(_private_megabytes, pids))
            files = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
            self.looks[name].append(Gauge(seconds, megabytes, files))


def slope(points: list[tuple[float, float]]) -> float:
    """Of the line that fits best.

    >>> slope([(0, 1), (1, 3), (2, 5)])
    2.0
    """
    count = len(points)
    mean_x, mean_y = (sum(axis) / count for axis in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def _growth(looks: list[Gauge]) -> Growth:
    lasted = looks[-1].seconds - looks[0].seconds
    return Growth(
        megabytes=sum(look.megabytes for look in looks) / len(looks),
        gained_megabytes=slope([(look.seconds, look.megabytes) for look in looks]) * lasted,
        files=sum(look.files for look in looks) / len(looks),
        gained_files=slope([(look.seconds, look.files) for look in looks]) * lasted,
        looks=len(looks),
    )


def _private_megabytes(pid: int) -> float:
    fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    return (int(fields[1]) - int(fields[2])) * _PAGE / MEGABYTE

"""A process that runs one command and adopts its orphans, so that nothing the tree used goes uncounted.

Linux gives orphans to the nearest "subreaper", and tells whoever reaps a process all the time it used.
"""

import ctypes
import os
import resource
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import msgspec

from benchmarks.measuring.proc import glance, members

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)

POLL_SECONDS = 0.02
GLANCE_SECONDS = 0.5
GRACE_SECONDS = 60.0
"""How long the command may take to end when told to, and those it leaves behind to end by themselves."""
FORCE_SECONDS = 5.0


class MeasuredRun(msgspec.Struct, frozen=True):
    """What a command and all its descendants used, from the first to the end of the last."""

    exit_code: int
    wall_seconds: float
    """Until the command itself ended; what it left behind can have run on."""
    cpu_seconds: float
    """User and system time of the whole tree."""
    peak_bytes: int
    """The largest sum of proportional set sizes seen at one moment."""
    peak_by_name: dict[str, int]
    cpu_by_name: dict[str, float]
    """Sampled, so each process lacks up to half a second before its end."""
    stopped: bool
    """It was ended because its time was over."""
    left_behind: list[str]
    """Names of processes that had to be ended after the command was gone."""


class Tree:
    """One running command, everything under it, and what was seen of it."""

    def __init__(self, command: list[str], seconds: float) -> None:
        self.started = time.monotonic()
        self.deadline = self.started + seconds
        self.main = os.posix_spawnp(command[0], command, os.environ)
        self.exit_code: int | None = None
        self.wall_seconds = 0.0
        self.peak_bytes = 0
        self.peak_by_name: Counter[str] = Counter()
        self.cpu: dict[tuple[int, int], tuple[str, float]] = {}
        self.next_glance = 0.0

    def watch(self) -> tuple[bool, list[str]]:
        """Until nothing is left of it. Says whether its time was over, and who had to be ended."""
        self.wait(self.deadline, main_only=True)
        stopped = self.exit_code is None
        if stopped:
            os.kill(self.main, signal.SIGTERM)
            self.wait(time.monotonic() + GRACE_SECONDS, main_only=True)
        self.wait(time.monotonic() + GRACE_SECONDS)
        return stopped, self.end()

    def wait(self, deadline: float, *, main_only: bool = False) -> bool:
        """Reaps and glances; true when all, or at least the command, has ended before the deadline."""
        while self.reap():
            if main_only and self.exit_code is not None:
                return True
            if time.monotonic() > deadline:
                return False
            self.glance()
            time.sleep(POLL_SECONDS)
        return True

    def reap(self) -> bool:
        """Takes in all who ended; false when nobody is left."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self.main:
                    self.exit_code = os.waitstatus_to_exitcode(status)
                    self.wall_seconds = time.monotonic() - self.started
        return False

    def glance(self) -> None:
        """Notes memory and processor time of each process, twice a second."""
        now = time.monotonic()
        if now < self.next_glance:
            return
        self.next_glance = now + GLANCE_SECONDS
        sizes, used = glance(os.getpid())
        self.cpu |= used
        self.peak_bytes = max(self.peak_bytes, sizes.total())
        self.peak_by_name |= sizes

    def end(self) -> list[str]:
        """Ends whoever is left, first politely; their names."""
        names: list[str] = []
        for number in (signal.SIGTERM, signal.SIGKILL):
            left = members(os.getpid())
            names = names or sorted({process.name for process in left})
            for process in left:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, number)
            if self.wait(time.monotonic() + FORCE_SECONDS):
                break
        return names

    def measured(self, *, stopped: bool, left_behind: list[str]) -> MeasuredRun:
        """The account, when everybody has been reaped."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_by_name: dict[str, float] = {}
        for name, seconds in self.cpu.values():
            cpu_by_name[name] = cpu_by_name.get(name, 0.0) + seconds
        return MeasuredRun(
            exit_code=-1 if self.exit_code is None else self.exit_code,
            wall_seconds=self.wall_seconds,
            cpu_seconds=used.ru_utime + used.ru_stime,
            peak_bytes=self.peak_bytes,
            peak_by_name=dict(sorted(self.peak_by_name.items())),
            cpu_by_name=cpu_by_name,
            stopped=stopped,
            left_behind=left_behind,
        )


def end_with_parent() -> None:
    """This process gets a SIGTERM when whoever started it is gone."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def main() -> None:
    """`python -m benchmarks.measuring.reaper RESULT SECONDS COMMAND...`, started by `measure.py` only."""
    result, seconds, command = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    end_with_parent()
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1) != 0:
        sys.exit("this system lets no process adopt orphans (PR_SET_CHILD_SUBREAPER): Linux 3.4 is needed")
    tree = Tree(command, seconds)
    try:
        stopped, left_behind = tree.watch()
    finally:
        tree.end()
    result.write_bytes(msgspec.json.encode(tree.measured(stopped=stopped, left_behind=left_behind)))


if __name__ == "__main__":
    main()

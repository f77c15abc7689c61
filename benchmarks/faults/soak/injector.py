"""What befalls a long run, at seeded moments: deaths, newcomers, a database that is killed, a full disk."""

import subprocess
import time
from random import Random

import msgspec

from benchmarks.faults.machine import Disk, Machine, kill

FULL_SECONDS = 8.0


class Every(msgspec.Struct, frozen=True):
    """Seconds from one trouble of a kind to the next, on average."""

    death: float = 20.0
    newcomer: float = 45.0
    restart: float = 150.0
    full: float = 200.0

    def within(self, seconds: float) -> "Every":
        """So that each comes at least twice in so many seconds."""
        most = seconds / 3
        return Every(*(min(most, each) for each in (self.death, self.newcomer, self.restart, self.full)))


class FaultInjector:
    """Makes it. Troubles that nobody survives in the last half spare the elder service, which is measured."""

    def __init__(
        self, machine: Machine, elder: subprocess.Popen[bytes], disk: Disk | None, every: Every, seed: int
    ) -> None:
        self._machine = machine
        self._elder = elder
        self._disk = disk
        self._every = every
        self._random = Random(seed)
        self._due = {kind: self._soon(kind) for kind in ("death", "newcomer", "restart", "full")}
        self._full_until: float | None = None
        self.counts = dict.fromkeys(self._due, 0)

    def step(self, *, spare_elder: bool) -> None:
        """Whatever is due now."""
        now = time.monotonic()
        if self._full_until is not None and now >= self._full_until:
            self.free()
        for kind, due in self._due.items():
            if now >= due and self._make(kind, spare_elder):
                self.counts[kind] += 1
                self._due[kind] = self._soon(kind)

    def free(self) -> None:
        """There is room again."""
        if self._disk is not None:
            self._disk.free()
        self._full_until = None

    def _soon(self, kind: str) -> float:
        every: float = getattr(self._every, kind)
        return time.monotonic() + self._random.uniform(0.5, 1.5) * every

    def _make(self, kind: str, spare_elder: bool) -> bool:
        if kind == "death":
            return self._kill_worker(spare_elder)
        if kind == "newcomer":
            self._machine.start("crawl", "--recrawl", "--workers", "1", "--quiet")
            return True
        if kind == "restart":
            return self._machine.kill_server()
        if self._disk is None or spare_elder or self._full_until is not None:
            return False
        self._disk.fill()
        self._full_until = time.monotonic() + FULL_SECONDS
        return True

    def _kill_worker(self, spare_elder: bool) -> bool:
        elders = set(self._machine.workers(self._elder)) if spare_elder else set()
        victims = [pid for pid in self._machine.workers() if pid not in elders]
        return bool(victims) and kill(self._random.choice(victims))

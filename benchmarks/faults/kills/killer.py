"""The killer: strikes workers, keeper, server and its backends, at seeded random points of the crawl."""

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec

from benchmarks.faults.kills.pool import WorkerPool
from benchmarks.faults.machine import database_processes, kill
from benchmarks.measuring.proc import command_line, processes
from benchmarks.measuring.workspace import works_in

SHARES = {"worker": 0.70, "backend": 0.12, "server": 0.09, "keeper": 0.09}
_TOGETHER = 0.3
_LAST = 0.95
_LONGEST_GAP = 0.3
_VICTIM_SECONDS = 60.0


class Strike(msgspec.Struct, frozen=True):
    """Whom to kill, when so many URLs are done, after a gap in seconds."""

    victim: str
    done: int
    gap: float


def plan(kills: int, urls: int, seed: int) -> list[Strike]:
    """Strikes over the whole crawl; three in ten follow the one before at once, into the confusion."""
    random = Random(seed)
    others = [kind for kind in SHARES if kind != "worker"]
    victims = [kind for kind in others for _ in range(max(1, round(SHARES[kind] * kills)))][:kills]
    victims += ["worker"] * (kills - len(victims))
    random.shuffle(victims)
    points = sorted(random.randrange(int(urls * _LAST)) for _ in victims)
    for place in range(1, len(points)):
        if random.random() < _TOGETHER:
            points[place] = points[place - 1]
    return [
        Strike(victim, point, random.uniform(0, _LONGEST_GAP))
        for victim, point in zip(victims, points, strict=True)
    ]


class Killer:
    """Carries the plan out, by SIGKILL."""

    def __init__(self, pool: WorkerPool, data: Path, seed: int) -> None:
        self._pool = pool
        self._data = data
        self._random = Random(seed)
        self._strikes: dict[str, Callable[[], bool]] = {
            "worker": self._strike_worker,
            "backend": self._strike_backend,
            "server": lambda: self._strike_process(self._pid("server_pid")),
            "keeper": lambda: self._strike_process(self._pid("keeper_pid")),
        }
        self.struck = dict.fromkeys(SHARES, 0)

    def strike(self, victim: str) -> bool:
        """Kills one of that kind, waiting for one to be there; False if none came."""
        deadline = time.monotonic() + _VICTIM_SECONDS
        while not self._strikes[victim]():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        self.struck[victim] += 1
        return True

    def _strike_worker(self) -> bool:
        living = self._pool.living()
        if not living:
            return False
        worker = self._random.choice(living)
        worker.process.kill()
        worker.killed_at = time.monotonic()
        return True

    def _strike_backend(self) -> bool:
        server = self._pid("server_pid")
        backends = [each.pid for each in processes() if each.parent == server and _serves_client(each.pid)]
        return bool(backends) and self._strike_process(self._random.choice(backends))

    def _strike_process(self, pid: int | None) -> bool:
        """Only what works in our data directory: the number in the note may be another's by now."""
        return pid is not None and works_in(pid, self._data) and kill(pid)

    def _pid(self, name: str) -> int | None:
        return getattr(database_processes(self._data), name, None)


def _serves_client(pid: int) -> bool:
    return command_line(pid).startswith(b"postgres: tamias")

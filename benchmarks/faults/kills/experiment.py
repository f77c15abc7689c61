"""The experiment from seeds to verdict: a pool that restarts the dead, and a killer that strikes them."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from benchmarks.faults.kills.worker import (
    DELAY_MS,
    HOSTS,
    PER_HOST,
    SEEDS,
    LinkGraph,
    WorkerOptions,
    holds,
    notes,
    number_of,
)
from benchmarks.faults.machine import database_processes, kill
from benchmarks.frontier.experiment import held_twice
from benchmarks.measuring.children import end
from benchmarks.measuring.proc import command_line, processes
from benchmarks.measuring.workspace import wait_for_end, works_in, workspace
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Outcome
from tamias.model.errors import TamiasError
from tamias.model.item import NEVER

_ROUND_SECONDS = 0.05
_END_SECONDS = 90.0


class WorkerProcess(msgspec.Struct):
    """One worker process, alive or dead."""

    process: subprocess.Popen[bytes]
    log: Path
    stderr: Path
    killed_at: float | None = None

    def failure(self) -> str | None:
        """Why it died, if nobody killed it and it was not told to end."""
        code = self.process.poll()
        if code in (None, 0, -signal.SIGTERM) or self.killed_at is not None:
            return None
        said = self.stderr.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"exit code {code}: {said[-1] if said else 'without a word'}"


class WorkerPool(threading.Thread):
    """Works beside the killer, so that waiting for a dead database never saves anybody from being killed."""

    def __init__(self, database: Database, data: Path, graph: LinkGraph, workers: int, pause: float) -> None:
        super().__init__(name="pool")
        self._database = database
        self._data = data
        self._graph = graph
        self._workers = workers
        self._pause = pause
        self._ended = threading.Event()
        self.started: list[WorkerProcess] = []
        self.done = 0
        self.open = 1
        self.moved_at = time.monotonic()
        self.given_back = 0
        self.trouble: list[str] = []

    def living(self) -> list[WorkerProcess]:
        """The workers that are alive now."""
        return [worker for worker in self.started if worker.process.poll() is None]

    def run(self) -> None:
        """Rounds until `stop`."""
        with closing(self._database.session()) as session:
            frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=DELAY_MS)
            while not self._ended.wait(_ROUND_SECONDS):
                self._fill_up()
                try:
                    self._give_back(frontier)
                    self._look(frontier)
                except TamiasError as error:
                    self.trouble.append(str(error))

    def stop(self) -> None:
        """Tells the workers to end, and sees to it that they do."""
        self._ended.set()
        self.join()
        for worker in self.living():
            worker.process.terminate()
        deadline = time.monotonic() + _END_SECONDS
        for worker in self.started:
            if not end(worker.process, deadline - time.monotonic()):
                self.trouble.append(f"worker {worker.process.pid} did not end when told to")

    def _fill_up(self) -> None:
        for _ in range(self._workers - len(self.living())):
            self.started.append(self._start(len(self.started)))

    def _start(self, number: int) -> WorkerProcess:
        log, stderr = (self._data / f"{name}-{number:04d}" for name in ("events", "stderr"))
        options = WorkerOptions(
            data=str(self._data), log=str(log), graph=self._graph, pause=self._pause, pool=os.getpid()
        )
        module = "benchmarks.faults.kills.worker"
        command = [sys.executable, "-m", module, msgspec.json.encode(options).decode()]
        with stderr.open("wb") as said:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        return WorkerProcess(process, log, stderr)

    def _give_back(self, frontier: PostgresFrontier) -> None:
        assert self._database.embedded is not None
        dead = self._database.embedded.dead_workers()
        if dead:
            self.given_back += frontier.give_back(dead)
            for worker in dead:
                self._database.embedded.forget(worker)

    def _look(self, frontier: PostgresFrontier) -> None:
        crawl = frontier.figures().crawls[0]
        if crawl.known - crawl.open != self.done:
            self.moved_at = time.monotonic()
        self.done, self.open = crawl.known - crawl.open, crawl.open


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
        below = [each.pid for each in processes() if each.parent == server]
        backends = [pid for pid in below if command_line(pid).startswith(b"postgres: tamias")]
        return bool(backends) and self._strike_process(self._random.choice(backends))

    def _strike_process(self, pid: int | None) -> bool:
        """Only what works in our data directory: the number in the note may be another's by now."""
        return pid is not None and works_in(pid, self._data) and kill(pid)

    def _pid(self, name: str) -> int | None:
        return getattr(database_processes(self._data), name, None)


_ROWS = "SELECT url, status, due FROM url"


class KillVerdict(msgspec.Struct, kw_only=True):
    """What came of it. All of `missing` to `trouble` must be empty or zero."""

    urls: int
    kills: dict[str, int]
    seconds: float
    workers: int
    """Worker processes, the restarted ones included."""
    leases: int
    lost_leases: int
    given_back: int
    visits: int
    """More than URLs: what the dead held is visited again."""
    swept: int
    """Hosts the sweep had to repair at the end."""
    missing: int
    unfinished: int
    extra: int
    miscounted: int
    held_twice: int
    failures: list[str]
    trouble: list[str]
    left_running: list[int] = []

    def ok(self) -> bool:
        """Whether nothing at all went wrong."""
        counts = (self.missing, self.unfinished, self.extra, self.miscounted, self.held_twice, self.swept)
        return not any(counts) and not (self.failures or self.trouble or self.left_running)

    def lines(self) -> list[str]:
        """The summary."""
        kills = ", ".join(f"{count} {kind}" for kind, count in self.kills.items())
        lines = [
            f"{sum(self.kills.values())} kills ({kills}) in {self.seconds:.0f} s, "
            f"{self.workers} worker processes in all",
            f"{self.leases} leases, {self.lost_leases} ran out, {self.given_back} given back for the dead",
            f"{self.urls} URLs reachable, {self.visits} visits; {self.missing} missing, "
            f"{self.unfinished} unfinished, {self.extra} extra, {self.miscounted} miscounted",
            f"hosts held by two at once: {self.held_twice}; hosts the sweep had to wake: {self.swept}; "
            f"processes left running: {len(self.left_running)}",
        ]
        lines += [f"a worker failed: {failure}" for failure in self.failures[:5]]
        lines += [f"trouble: {trouble}" for trouble in self.trouble[:5]]
        return [*lines, "ok" if self.ok() else "NOT ok"]


def judge(
    graph: LinkGraph,
    pool: WorkerPool,
    frontier: PostgresFrontier,
    rows: list[tuple[Any, ...]],
    seconds: float,
    kills: dict[str, int],
) -> KillVerdict:
    """Reads the logs of all workers and compares the tables with the graph."""
    wanted = graph.closure()
    stored = {number_of(url): (status, due) for url, status, due in rows}
    logs = [(worker, notes(worker.log)) for worker in pool.started]
    written = [note for _, each in logs for note in each]
    crawl = frontier.figures().crawls[0]
    return KillVerdict(
        urls=len(wanted),
        kills=kills,
        seconds=seconds,
        workers=len(pool.started),
        leases=sum(note.event == "taken" for note in written),
        lost_leases=sum(note.event == "lost" for note in written),
        given_back=pool.given_back,
        visits=sum(len(note.urls) for note in written if note.event == "returned"),
        swept=frontier.sweep(),
        missing=len(wanted - stored.keys()),
        unfinished=sum(state != (Outcome.OK, NEVER) for state in stored.values()),
        extra=len(stored.keys() - wanted),
        miscounted=abs(crawl.known - len(rows)) + abs(crawl.open),
        held_twice=held_twice([hold for worker, each in logs for hold in holds(each, worker.killed_at)]),
        failures=[failure for worker in pool.started if (failure := worker.failure())],
        trouble=list(pool.trouble),
    )


_SECONDS_PER_KILL = 0.5
_STALL_SECONDS = 180.0


def run(
    *,
    kills: int = 500,
    urls: int = 30_000,
    hosts: int = 1000,
    workers: int = 4,
    seed: int = 1,
    data: Path | None = None,
    out: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Crawls a synthetic web while processes are killed; prints a summary and returns it with `ok`.

    `data` is an empty folder to work in; a temporary one if none is named.
    """
    graph = LinkGraph(urls, hosts)
    with workspace(data) as folder:
        verdict = _crawl(folder, graph, plan(kills, len(graph.closure()), seed), workers, seed)
        verdict.left_running = wait_for_end(folder)
        if not verdict.ok():
            out(f"the workers' logs are kept in {_keep_evidence(folder)}")
    for line in verdict.lines():
        out(line)
    return {"ok": verdict.ok(), **msgspec.to_builtins(verdict)}


def _crawl(folder: Path, graph: LinkGraph, strikes: list[Strike], workers: int, seed: int) -> KillVerdict:
    began = time.monotonic()
    with closing(Database(folder)) as database, closing(database.session()) as session:
        frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=DELAY_MS)
        frontier.put([graph.item(number) for number in range(min(SEEDS, graph.urls))])
        # The crawl is made to last as long as the kills take.
        pause = len(strikes) * _SECONDS_PER_KILL * workers * HOSTS * PER_HOST / graph.urls
        pool = WorkerPool(database, folder, graph, workers, pause)
        killer = Killer(pool, folder, seed)
        pool.start()
        try:
            _kill(pool, killer, strikes)
            _wait(pool, lambda: pool.open == 0)
        finally:
            pool.stop()
        took = time.monotonic() - began
        return judge(
            graph,
            pool,
            frontier,
            session.transact(lambda cursor: cursor.execute(_ROWS).fetchall()),
            took,
            killer.struck,
        )


def _keep_evidence(folder: Path) -> Path:
    """All but the database, moved to where the experiment does not clean up."""
    kept = Path(tempfile.mkdtemp(prefix="tamias-kills-"))
    for path in folder.iterdir():
        if path.name != "pg":
            shutil.move(path, kept)
    return kept


def _kill(pool: WorkerPool, killer: Killer, strikes: list[Strike]) -> None:
    for strike in strikes:
        point = strike.done
        if not _wait(pool, lambda: pool.done >= point):  # noqa: B023 (called at once)
            return
        time.sleep(strike.gap)
        if not killer.strike(strike.victim):
            pool.trouble.append(f"there was no {strike.victim} to kill")


def _wait(pool: WorkerPool, reached: Callable[[], bool]) -> bool:
    """Waits as long as the crawl moves."""
    while not reached():
        if time.monotonic() - pool.moved_at > _STALL_SECONDS:
            pool.trouble.append(f"nothing moved for {_STALL_SECONDS:.0f} s, {pool.open} URLs still open")
            return False
        time.sleep(0.02)
    return True

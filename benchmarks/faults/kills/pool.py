"""Keeps the workers alive: replaces the dead, gives back what they held, knows how far the crawl is."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.faults.kills.graph import LinkGraph
from benchmarks.faults.kills.options import DELAY_MS, WorkerOptions
from benchmarks.measuring.children import end
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.errors import TamiasError

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
            data=str(self._data),
            log=str(log),
            graph=self._graph,
            pause=self._pause,
            pool=os.getpid(),
        )
        command = [
            sys.executable,
            "-m",
            "benchmarks.faults.kills.worker",
            msgspec.json.encode(options).decode(),
        ]
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

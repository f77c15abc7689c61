"""The nurse: replaces dead workers, gives back what they held, and knows how far the crawl is."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.faults.kills.graph import Graph
from benchmarks.faults.kills.orders import DELAY_MS, Orders
from benchmarks.measuring.children import end
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.errors import TamiasError

_ROUND_SECONDS = 0.05
_END_SECONDS = 90.0


class Patient(msgspec.Struct):
    """One worker process, alive or dead."""

    process: subprocess.Popen[bytes]
    diary: Path
    complaints: Path
    struck_at: float | None = None

    def failure(self) -> str | None:
        """Why it died, if nobody killed it and it was not told to end."""
        code = self.process.poll()
        if code in (None, 0, -signal.SIGTERM) or self.struck_at is not None:
            return None
        said = self.complaints.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"exit code {code}: {said[-1] if said else 'without a word'}"


class Nurse(threading.Thread):
    """Works beside the killer, so that waiting for a dead database never saves anybody from being killed."""

    def __init__(self, database: Database, data: Path, graph: Graph, workers: int, pause: float) -> None:
        super().__init__(name="nurse")
        self._database = database
        self._data = data
        self._graph = graph
        self._workers = workers
        self._pause = pause
        self._ended = threading.Event()
        self.patients: list[Patient] = []
        self.done = 0
        self.open = 1
        self.moved_at = time.monotonic()
        self.given_back = 0
        self.trouble: list[str] = []

    def living(self) -> list[Patient]:
        """The workers that are alive now."""
        return [patient for patient in self.patients if patient.process.poll() is None]

    def run(self) -> None:
        """Rounds until `dismiss`."""
        with closing(self._database.session()) as session:
            frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=DELAY_MS)
            while not self._ended.wait(_ROUND_SECONDS):
                self._fill_up()
                try:
                    self._give_back(frontier)
                    self._look(frontier)
                except TamiasError as error:
                    self.trouble.append(str(error))

    def dismiss(self) -> None:
        """Tells the workers to end, and sees to it that they do."""
        self._ended.set()
        self.join()
        for patient in self.living():
            patient.process.terminate()
        deadline = time.monotonic() + _END_SECONDS
        for patient in self.patients:
            if not end(patient.process, deadline - time.monotonic()):
                self.trouble.append(f"worker {patient.process.pid} did not end when told to")

    def _fill_up(self) -> None:
        for _ in range(self._workers - len(self.living())):
            self.patients.append(self._start(len(self.patients)))

    def _start(self, number: int) -> Patient:
        diary, complaints = (self._data / f"{name}-{number:04d}" for name in ("diary", "complaints"))
        orders = Orders(
            data=str(self._data),
            diary=str(diary),
            graph=self._graph,
            pause=self._pause,
            nurse=os.getpid(),
        )
        command = [
            sys.executable,
            "-m",
            "benchmarks.faults.kills.worker",
            msgspec.json.encode(orders).decode(),
        ]
        with complaints.open("wb") as said:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        return Patient(process, diary, complaints)

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

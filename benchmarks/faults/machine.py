"""The processes of Tamias on one data directory: started, found, killed; disks that can be filled; pages."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random

from benchmarks.measuring.children import end
from benchmarks.measuring.proc import command_line, members
from benchmarks.measuring.workspace import works_in
from benchmarks.webs.server import WireRequest
from benchmarks.webs.sites import NOTHING, LoopbackSites, SiteAnswer
from tamias.features.embedded.keeper import Running
from tamias.model.errors import TamiasError

TEXT_BYTES = 600


class PageTree:
    """The same number of pages on every host, in a tree of two branches each; robots.txt if there is one."""

    def __init__(
        self, count: int, *, robots: str | None = None, pause: float = 0.0, folder: str = ""
    ) -> None:
        self.count = count
        self.pause = pause
        self._robots = robots
        self._folder = folder

    def __call__(self, asked: WireRequest) -> SiteAnswer:
        """What is served."""
        if asked.path == "/robots.txt" and self._robots is not None:
            return SiteAnswer(body=self._robots.encode(), headers=(("Content-Type", "text/plain"),))
        number = asked.path.removeprefix(f"{self._folder}/")
        if not number.isdigit() or not 1 <= int(number) <= self.count:
            return NOTHING
        return SiteAnswer(body=_body(asked.host, self._folder, int(number), self.count), pause=self.pause)

    def first(self, web: LoopbackSites, port: int | None = None) -> list[str]:
        """Where a crawl begins."""
        return [web.url(host, f"{self._folder}/1", port) for host in web.hosts]

    def truth(self, web: LoopbackSites, port: int | None = None) -> dict[str, bytes]:
        """Every address, and what it says."""
        return {
            web.url(host, f"{self._folder}/{number}", port): _body(host, self._folder, number, self.count)
            for host in web.hosts
            for number in range(1, self.count + 1)
        }


@cache
def _body(host: str, folder: str, number: int, count: int) -> bytes:
    text = Random(f"{host}{folder}/{number}").randbytes(TEXT_BYTES // 2).hex()
    following = [f"<#next> <{folder}/{each}>" for each in (2 * number, 2 * number + 1) if each <= count]
    return (" ; ".join([f'<> <#says> "{text}"', *following]) + " .\n").encode()


USUAL = {
    "TAMIAS_SEEDS__PROBE": "false",
    "TAMIAS_PERMIT__ALLOW_PRIVATE": "true",
    "TAMIAS_FRONTIER__QUEUE": "host",
    "TAMIAS_CRAWL__RETRY_WAIT": "0.2",
    "TAMIAS_SANDBOX__USE": "never",
}
"""Loopback addresses are hosts of their own; no looking around on them, and short waits."""
_WORKER = re.compile(rb"tamias\.crawl\.(remote\.)?worker|^tamias-worker")
_END_SECONDS = 20.0
_LOOK_SECONDS = 0.02
_ADDRESS = re.compile(r'"address": ?"([^"]+)"')
_UP_SECONDS = 120.0


class Machine:
    """Programs of Tamias that share a data directory. All of them end with it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        """`settings` are environment variables without their prefix: `FETCH__DELAY="1"`."""
        self.folder = folder
        self.data = folder / "data"
        self.environment = {**os.environ, **USUAL}
        self.environment |= {f"TAMIAS_{name}": value for name, value in settings.items()}
        self.started: list[subprocess.Popen[bytes]] = []

    @property
    def log(self) -> Path:
        """All that the programs said."""
        return self.folder / "said"

    def said(self) -> str:
        """The same as text."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def start(
        self, verb: str, *words: str, more: Mapping[str, str] | None = None, before: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """One more program; `more` of the environment is for it alone, `before` stands before the command."""
        command = [*before, sys.executable, "-m", "tamias", *verb.split(), "--data", str(self.data), *words]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**self.environment, **(more or {})},
                cwd=self.folder,
            )
        self.started.append(process)
        return process

    def run(self, verb: str, *words: str, seconds: float = 120.0) -> int:
        """Runs to its end; the exit code."""
        return self.start(verb, *words).wait(seconds)

    def workers(self, of: subprocess.Popen[bytes] | None = None) -> list[int]:
        """The numbers of all worker processes, near and far, or of one program; no fork server."""
        roots = [of] if of else [each for each in self.started if each.poll() is None]
        below = {process.pid: process.parent for root in roots for process in members(root.pid)}
        named = {pid for pid in below if _WORKER.search(command_line(pid))}
        return [pid for pid in below if pid in named and below[pid] in named]

    def kill_server(self) -> bool:
        """The server of the database, at once; false if there is none."""
        running = database_processes(self.data)
        # The number in the note may be another's by now.
        return running is not None and works_in(running.server_pid, self.data) and kill(running.server_pid)

    def start_service(self, *words: str) -> tuple[subprocess.Popen[bytes], str]:
        """`tamias frontier`, and the address that it tells."""
        told = len(_ADDRESS.findall(self.said()))
        process = self.start("frontier", "--json", *words)
        wait_until(lambda: len(_ADDRESS.findall(self.said())) > told, _UP_SECONDS, "the service was up")
        return process, str(_ADDRESS.findall(self.said())[-1])

    def tail(self) -> str:
        """The last words of the programs."""
        lines = self.said().strip().splitlines()
        return lines[-1] if lines else "nothing was said"

    def close(self) -> None:
        """Ends what is left."""
        for process in self.started:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + _END_SECONDS
        for process in self.started:
            end(process, max(0.1, deadline - time.monotonic()))

    def __enter__(self) -> "Machine":
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def database_processes(data: Path) -> Running | None:
    """The keeper and the server of the database of a data directory, as they noted it themselves."""
    try:
        return Running(**json.loads((data / "pg" / "running.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def kill(pid: int, number: int = signal.SIGKILL) -> bool:
    """Whether there was one to be told."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> float:
    """Seconds until it holds. Raises `TamiasError` when it does not in time."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > seconds:
            raise TamiasError(f"waited {seconds:.0f} s in vain until {what}")
        time.sleep(_LOOK_SECONDS)
    return time.monotonic() - begun


class Disk:
    """A small disk of its own that can be filled and freed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Until not a byte more goes in."""
        with self._ballast.open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(1 << 16))

    def free(self) -> None:
        """As it was before."""
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Disk]:
    """A disk in memory at this folder. Raises `TamiasError` where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tamias-bench", str(folder)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise TamiasError(f"cannot mount a disk in memory at {folder}: {done.stderr.strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)

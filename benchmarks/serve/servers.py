"""Starts the service and its peer as processes of their own, and tells what processor time they took."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import msgspec

from benchmarks.measuring.children import answers, running
from benchmarks.measuring.ports import free_ports
from benchmarks.measuring.proc import parse_stat, read
from benchmarks.measuring.workspace import processes_in

HOST = "127.0.0.1"
_START_SECONDS = 120.0


class ServerProcess(msgspec.Struct, frozen=True):
    """One that answers."""

    port: int
    pid: int
    data: Path | None = None
    """What it serves; the database and the SPARQL server work there too."""

    @property
    def address(self) -> str:
        """Where."""
        return f"http://{HOST}:{self.port}"

    def cpu_seconds(self) -> float:
        """What it has taken so far."""
        return _cpu_seconds(self.pid)

    def cpu_seconds_of_all(self) -> float:
        """The same with all that works for it."""
        helpers = set(processes_in(self.data)) - {self.pid} if self.data else set()
        return self.cpu_seconds() + sum(map(_cpu_seconds, helpers))


@contextmanager
def service(data: Path, port: int) -> Iterator[ServerProcess]:
    """`tamias serve --no-crawl` over an archive."""
    words = ["-m", "tamias", "serve", "--no-crawl", "-q", "--data", str(data), "--port", str(port)]
    with _running(words, port) as process:
        yield ServerProcess(port, process.pid, data)


@contextmanager
def bare() -> Iterator[ServerProcess]:
    """The peer."""
    (port,) = free_ports(1)
    with _running(["-m", "benchmarks.serve.bare", str(port)], port) as process:
        yield ServerProcess(port, process.pid)


def _running(words: Sequence[str], port: int) -> AbstractContextManager[subprocess.Popen[bytes]]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
    command = [sys.executable, *words]
    return running(
        command, ready=lambda: answers(port), seconds=_START_SECONDS, env=clean, stdout=subprocess.DEVNULL
    )


def _cpu_seconds(pid: int) -> float:
    with suppress(OSError):
        return parse_stat(read(Path(f"/proc/{pid}/stat"))).cpu_seconds
    return 0.0

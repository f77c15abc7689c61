"""F20: a document has taken over the sandbox, and what runs there looks for a way out."""

import os
import resource
import socket
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
from psycopg.conninfo import conninfo_to_dict

from benchmarks.faults.experiment import ExperimentSetup, Result
from tamias.crawl.sandbox.walls import build_walls
from tamias.database.connect import Database
from tamias.settings import SandboxSettings


def run(setup: ExperimentSetup) -> Result:
    """No socket, program, process or signal; no file but Python's own; no privileges."""
    with closing(Database(setup.folder / "data")) as database:
        assert database.embedded is not None
        place = conninfo_to_dict(database.embedded.address())["host"]
        missing, out, tried = _inside(setup.folder, str(place))
    absent = f"; missing here: {', '.join(missing)}" if missing else ""
    return Result(
        ok=not out,
        figure=f"{tried} escapes tried from inside, {len(out)} succeeded{' (' if out else ''}"
        f"{', '.join(out)}{')' if out else ''}{absent}",
    )


def _attempts(folder: Path, sockets: str, worker: int) -> dict[str, Callable[[], object]]:
    def connect() -> None:
        with socket.socket(socket.AF_UNIX) as database:
            database.connect(f"{sockets}/.s.PGSQL.5432")

    return {
        "the database": connect,
        "the network": lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
        "a program": lambda: os.execv("/bin/true", ["true"]),  # noqa: S606
        "a process": lambda: os.fork() or os._exit(0),
        "a signal to the worker": lambda: os.kill(worker, 0),
        "a limit for the worker": lambda: resource.prlimit(worker, resource.RLIMIT_NOFILE),
        "the data directory": lambda: os.listdir(folder / "data"),
        "a file of the machine": lambda: Path("/etc/passwd").read_bytes(),
        "the worker's memory": lambda: Path(f"/proc/{worker}/mem").open("rb"),
        "the top of the tree": lambda: os.listdir("/"),
        "a file for others": (folder / "way-out").touch,
        "root": lambda: os.setuid(0),
    }


def _inside(folder: Path, sockets: str) -> tuple[list[str], list[str], int]:
    """The walls that are missing, the ways that led out, and how many were tried."""
    attempts = _attempts(folder, sockets, os.getpid())
    answer, ours = os.pipe()
    with tempfile.TemporaryDirectory(prefix="tamias-sandbox-") as scratch:
        child = os.fork()
        if child == 0:
            tempfile.tempdir = scratch
            try:
                walls = build_walls(SandboxSettings(), 1 << 20)
                led_out = [name for name, attempt in attempts.items() if _succeeds(attempt)]
                os.write(ours, msgspec.json.encode((walls, led_out)))
            finally:
                os._exit(0)
        os.close(ours)
        with os.fdopen(answer, "rb") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
    missing, out = msgspec.json.decode(said, type=tuple[list[str], list[str]])
    return missing, out, len(attempts)


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True

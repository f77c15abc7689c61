"""Requests as fast as they are answered, by wrk (https://github.com/wg/wrk)."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

import msgspec

from benchmarks.serve.servers import ServerProcess
from tamias.model.errors import TamiasError

CONNECTIONS = 32
_PATIENCE_SECONDS = 60.0


class WrkReport(msgspec.Struct, frozen=True):
    """What wrk tells."""

    requests: int
    seconds: float
    bytes: int
    p50_ms: float
    p99_ms: float
    errors: int
    """Answers other than 2xx and 3xx, and connections that broke or waited too long."""


class RouteLoad(msgspec.Struct, frozen=True, kw_only=True):
    """How one kind of request was answered."""

    name: str
    per_second: float
    p50_ms: float
    p99_ms: float
    errors: int
    cpu_ms: float
    """Of the server's process, for each request."""
    all_cpu_ms: float
    """The same with database and SPARQL server."""
    bytes: int
    """Of an answer with its head, in the mean."""


def wrk() -> str | None:
    """Where wrk is; None where it is not installed."""
    return shutil.which("wrk")


def load(server: ServerProcess, name: str, paths: Sequence[str], seconds: float) -> RouteLoad:
    """Asks for the paths in turn, over so many connections at once."""
    before = server.cpu_seconds(), server.cpu_seconds_of_all()
    report = _run(server, paths, seconds)
    if not report.requests:
        raise TamiasError(f"{name}: {server.address} answered nothing within {seconds:g} s")
    own, of_all = server.cpu_seconds() - before[0], server.cpu_seconds_of_all() - before[1]
    return RouteLoad(
        name=name,
        per_second=report.requests / report.seconds,
        p50_ms=report.p50_ms,
        p99_ms=report.p99_ms,
        errors=report.errors,
        cpu_ms=1000 * own / report.requests,
        all_cpu_ms=1000 * of_all / report.requests,
        bytes=report.bytes // report.requests,
    )


def _run(server: ServerProcess, paths: Sequence[str], seconds: float) -> WrkReport:
    program = wrk()
    if program is None:
        raise TamiasError("wrk is not installed (Debian: apt install wrk)")
    source = files("benchmarks.serve").joinpath("load.lua")
    with as_file(source) as script, tempfile.TemporaryDirectory(prefix="tamias-bench-") as folder:
        listed = Path(folder) / "paths"
        listed.write_text("".join(f"{path}\n" for path in paths), encoding="ascii")
        words = ["-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "--timeout", "10s"]
        done = subprocess.run(
            [program, *words, "-s", str(script), server.address, "--", str(listed)],
            check=True,
            capture_output=True,
            timeout=seconds + _PATIENCE_SECONDS,
        )
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=WrkReport)

"""How much memory a large table takes: to add, to profile, to capture again, to compare its versions."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from benchmarks.measuring.proc import command_line, members, name_of, read
from benchmarks.measuring.targets import BenchmarkTarget, report_targets

MOST_BYTES = 300_000_000
CHANGED = 1000
"""Every so manieth row differs in the second version."""
_LOOK_SECONDS = 0.05
_SECONDS = 1800

Out = Callable[[str], object]


class MemoryFigures(msgspec.Struct, frozen=True):
    """One command: the largest process, PostgreSQL apart."""

    step: str
    seconds: float
    peak: int
    name: str
    """Of that process."""


def run_memory(size: int, out: Out = print) -> dict[str, Any]:
    """Two versions of a CSV of that many bytes; `ok` if no process took too much."""
    # The database may still be ending when the last command has.
    with TemporaryDirectory(prefix="tamias-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        site = folder / "site"
        site.mkdir()
        with ThreadingHTTPServer(("127.0.0.1", 0), _handler(site)) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            rows = _steps(folder / "data", site / "table.csv", server.server_port, size, out)
            server.shutdown()
    largest = max(row.peak for row in rows)
    text = f"largest process, PostgreSQL apart, under {MOST_BYTES / 1e6:.0f} MB"
    target = BenchmarkTarget(text, f"{largest / 1e6:.0f} MB", largest < MOST_BYTES)
    return {"steps": msgspec.to_builtins(rows), **report_targets([target], out)}


def _steps(data: Path, file: Path, port: int, size: int, out: Out) -> list[MemoryFigures]:
    url = f"http://127.0.0.1:{port}/table.csv"
    crawl = ("crawl", "--recrawl", url, "--allow-private", "--no-robots", "--delay", "0", "--workers", "1")
    rows: list[MemoryFigures] = []

    def step(name: str, *words: str) -> None:
        rows.append(_watched(name, data, words))
        out(f"{name:<30}{rows[-1].peak / 1e6:>8.0f} MB  {rows[-1].seconds:>6.1f} s  {rows[-1].name}")

    _write(file, size, 1)
    step("add", "add", url)
    step("first capture and profile", *crawl)
    _write(file, size, 2)
    step("second capture and profile", *crawl)
    step("diff", "diff", url, "1", "2", "--json")
    step("get", "get", url, "--version", "1", "-o", os.devnull)
    return rows


def _watched(step: str, data: Path, words: tuple[str, ...]) -> MemoryFigures:
    """Runs a command, and looks at its processes again and again: each knows the most that it ever had."""
    settings = {"TAMIAS_FETCH__MAX_BYTES": "1000000000", "TAMIAS_FETCH__TIMEOUT": str(_SECONDS)}
    started = time.monotonic()
    command = [sys.executable, "-m", "tamias", *words, "--data", str(data)]
    peak, name = 0, ""
    with subprocess.Popen(
        command, env={**os.environ, **settings}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        while process.poll() is None:
            found = [(process.pid, ""), *((each.pid, each.name) for each in members(process.pid))]
            for pid, program in found:
                if program != "postgres" and (bytes_ := _peak(pid)) > peak:
                    peak, name = bytes_, program or name_of(command_line(pid))
            time.sleep(_LOOK_SECONDS)
        said = process.stderr.read().decode(errors="replace") if process.stderr else ""
    if process.returncode:
        raise SystemExit(f"'tamias {' '.join(words)}' ended with {process.returncode}: {said[-500:]}")
    return MemoryFigures(step, time.monotonic() - started, peak, name)


def _peak(pid: int) -> int:
    """The most memory that a process ever had resident."""
    with suppress(OSError):
        found = re.search(rb"^VmHWM:\s+(\d+) kB", read(Path(f"/proc/{pid}/status")), re.MULTILINE)
        return int(found[1]) * 1024 if found else 0
    return 0


def _write(file: Path, size: int, version: int) -> None:
    chance = Random(1)
    with file.open("w", encoding="ascii") as out:
        out.write("id,day,region,value,seal\n")
        for number in count():
            value = chance.randrange(100_000) + (version if number % CHANGED == 0 else 0)
            seal = f"{chance.getrandbits(48):012x}"
            size -= out.write(f"{number},2026-{number % 12 + 1:02},R{number % 97},{value},{seal}\n")
            if size <= 0:
                return


def _handler(site: Path) -> type[SimpleHTTPRequestHandler]:
    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, directory=str(site), **options)

        def log_message(self, *_: object) -> None:
            pass

    return Handler

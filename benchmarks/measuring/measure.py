"""Runs a command and tells what it and everything it started have used, daemons included."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.measuring.reaper import FORCE_SECONDS, GRACE_SECONDS, MeasuredRun
from tamias.model.errors import TamiasError

PROFILE_VARIABLE = "TAMIAS_PROFILE"
PROFILE_LIMIT = 16 << 20
DATABASE = "postgres"


class WorkerProfile(msgspec.Struct, frozen=True):
    """One line of the profile: the processor seconds of one worker by step."""

    steps: dict[str, float]
    pages: int


def budget(file: Path, measured: MeasuredRun, pages: int) -> dict[str, float]:
    """Milliseconds a page by step; `rest` is what no step claims: start, end, and what is not timed."""
    steps: Counter[str] = Counter()
    if file.exists():
        with file.open("rb") as lines:
            for line in lines.readlines(PROFILE_LIMIT):
                steps.update(msgspec.json.decode(line, type=WorkerProfile).steps)
    claimed = {**steps, "database": measured.cpu_by_name.get(DATABASE, 0.0)}
    claimed["rest"] = measured.cpu_seconds - sum(claimed.values())
    return {step: 1000 * seconds / max(1, pages) for step, seconds in claimed.items()}


def measure(
    command: Sequence[str], folder: Path, *, seconds: float, environment: Mapping[str, str] | None = None
) -> MeasuredRun:
    """Runs it in `folder`, where `stdout` and `stderr` are kept too; ended after `seconds`.

    Processor time is what the kernel reports of each process when it is reaped. It lacks only processes whose
    living parent ignores SIGCHLD, and the tool that measures is not in it.
    """
    result = folder / "measured.json"
    # As a user has them: an installed package has its bytecode, so a checkout may keep it too.
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    reaper = [sys.executable, "-m", "benchmarks.measuring.reaper", str(result), str(seconds), *command]
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        running = subprocess.Popen(
            reaper,
            cwd=folder,
            env=usual | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
    try:
        running.wait(seconds + 2 * GRACE_SECONDS + 4 * FORCE_SECONDS)
    finally:  # the measuring process first ends the whole tree under it
        if running.poll() is None:
            running.terminate()
            running.wait()
    if not result.exists():
        raise TamiasError(f"{command[0]} could not be measured: {last_line(folder / 'stderr')}")
    return msgspec.json.decode(result.read_bytes(), type=MeasuredRun)


def fault_of(measured: MeasuredRun, folder: Path) -> str:
    """Why a run is no fair measure; empty if nothing is wrong."""
    if measured.stopped:
        return f"stopped after {measured.wall_seconds:.0f} s"
    if measured.exit_code != 0:
        return f"ended with code {measured.exit_code}: {last_line(folder / 'stderr')}"
    return f"left running: {', '.join(measured.left_behind)}" if measured.left_behind else ""


def last_line(file: Path) -> str:
    """What a program said last, which is mostly what went wrong."""
    with file.open("rb") as lines:
        lines.seek(max(0, file.stat().st_size - 2_000))
        said = lines.read().decode(errors="replace").strip().splitlines()
    return said[-1].strip() if said else "it said nothing"

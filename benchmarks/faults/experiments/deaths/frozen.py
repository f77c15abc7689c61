"""F8: a worker is frozen, and goes on after its leases have ended."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine, kill
from benchmarks.faults.takeover import ELDER, taken_over, words


def run(setup: ExperimentSetup) -> Result:
    """SIGSTOP, and after 60 seconds SIGCONT; a second worker joins meanwhile."""
    return taken_over(setup, _start, _frozen, {})


def _start(machine: Machine, seeds: list[str]) -> subprocess.Popen[bytes]:
    return machine.start("crawl", *words(ELDER), *seeds)


@contextmanager
def _frozen(machine: Machine, crawl: subprocess.Popen[bytes]) -> Iterator[None]:
    stopped = [pid for pid in machine.workers(crawl) if kill(pid, signal.SIGSTOP)]
    try:
        yield
    finally:
        for pid in stopped:
            kill(pid, signal.SIGCONT)

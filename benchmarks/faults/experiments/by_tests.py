"""Faults that tests make already: their row is what the tests say."""

import re
import subprocess
import sys
from pathlib import Path

from benchmarks.faults.experiment import Experiment, ExperimentSetup, Result

ROOT = Path(__file__).parents[3]
SECONDS = 7200.0
_COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?)\b")


def by_tests(*tests: str) -> Experiment:
    """Return an experiment that runs these tests, named by paths below `tests/`."""

    def run(setup: ExperimentSetup) -> Result:
        places = [str(ROOT / "tests" / each) for each in tests]
        words = ["-q", "-p", "no:cacheprovider", f"--basetemp={setup.folder / 'tests'}", *places]
        done = subprocess.run(
            ["env", "TAMIAS_NIGHTLY=1", sys.executable, "-m", "pytest", *words],
            check=False, capture_output=True, text=True, cwd=ROOT, timeout=SECONDS,
        )  # fmt: skip
        last = done.stdout.strip().splitlines()[-1:]
        counts = {word: int(count) for count, word in _COUNT.findall(" ".join(last))}
        figure = ", ".join(f"{count} tests {word}" for word, count in counts.items())
        passed = done.returncode == 0 and counts.get("passed", 0) > 0
        return Result(ok=None if set(counts) == {"skipped"} else passed, figure=figure or done.stderr[-200:])

    return run

"""What an experiment is given, and what it gives back."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec


class ExperimentSetup(msgspec.Struct, frozen=True, kw_only=True):
    """Where one experiment takes place, and how large it is."""

    folder: Path
    seed: int = 1
    share: float = 1.0
    """Of the size that the figures were promised for."""
    hostile: Path | None = None
    """What `python -m benchmarks hostile --json` printed, if it need not run again."""

    def of(self, full: float, least: float = 1) -> int:
        """So many, at this size.

        >>> setup = ExperimentSetup(folder=Path(), share=0.1)
        >>> setup.of(200, 5), setup.of(20, 5)
        (20, 5)
        """
        return round(max(least, full * self.share))

    def random(self) -> Random:
        """The same chances for the same seed."""
        return Random(self.seed)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    figure: str
    ok: bool | None = None
    """None: it could not be tried here, and the figure says why."""
    seconds: float = 0.0

    @property
    def word(self) -> str:
        """The verdict."""
        return "skipped" if self.ok is None else "pass" if self.ok else "FAIL"


class FaultExperiment(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    number: str
    name: str
    fault: str
    """What is done."""
    promise: str
    """The figure that is promised."""
    run: Callable[[ExperimentSetup], Result]

"""What a benchmark promises, and whether a run kept it."""

from collections.abc import Callable, Sequence

import msgspec


class BenchmarkTarget(msgspec.Struct, frozen=True):
    """One promise. `met` is None where the run did not measure it."""

    text: str
    measured: str
    met: bool | None

    def __str__(self) -> str:
        verdict = {True: "met", False: "MISSED", None: "NOT MEASURED"}[self.met]
        return f"target: {self.text}{f' ({self.measured})' if self.measured else ''}: {verdict}"


def at_least(wanted: float, text: str, ratio: float | None) -> BenchmarkTarget:
    """A ratio that must be reached; None where there was nothing to compare with."""
    measured = "" if ratio is None else f"{ratio:.2f} x"
    return BenchmarkTarget(
        f"{text}: at least {wanted:g} x", measured, None if ratio is None else ratio >= wanted
    )


def report_targets(targets: Sequence[BenchmarkTarget], out: Callable[[str], object]) -> dict[str, object]:
    """Prints a line for each; the part of a report that has them, with `ok` false when one was missed."""
    for target in targets:
        out(str(target))
    return {
        "targets": msgspec.to_builtins(targets),
        "ok": all(target.met is not False for target in targets),
    }

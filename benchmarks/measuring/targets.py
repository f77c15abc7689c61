"""What a benchmark prints: its table, who is left out, what it promises, and whether a run kept it."""

import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

_FOLDERS = re.compile(r"(?<![\w:/.*])/(?:[\w.+@-]+/)+")


class Skipped(msgspec.Struct, frozen=True):
    """One that cannot be run here, and why."""

    name: str
    reason: str


def skipped_program(name: str, package: str) -> Skipped | None:
    """None where the program is installed; `package` is its name in Debian."""
    if shutil.which(name) is not None:
        return None
    return Skipped(name, f"it is not installed (Debian: apt-get install {package})")


def shown_command(command: Iterable[str]) -> str:
    """A command as a reader may type it: without the folders of this machine."""
    return shlex.join(_FOLDERS.sub("", word) for word in command)


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


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as they need to be: the first to the left, figures to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for first, *figures in rows:
        right = (figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *right])

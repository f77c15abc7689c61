"""Sorts lines in bounded memory: runs on disk, merged at the end. No library at hand does this for bytes."""

import heapq
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

RUN_BYTES = 64 * 1024 * 1024
"""Lines in memory at once, with what Python needs for each."""
MOST_RUNS = 64
"""Files that are merged, and open, at once."""
_LINE_COST = 41
_AT_ONCE = 4096


class LineSorter:
    """Takes lines in any order and returns them in the order of their bytes, as `LC_ALL=C sort -u` does.

    The folder belongs to the sorter. Nothing is written to it while all lines fit into one run.
    """

    def __init__(self, folder: Path, run_bytes: int = RUN_BYTES, most_runs: int = MOST_RUNS) -> None:
        self._folder = folder
        self._run_bytes = run_bytes
        self._most_runs = most_runs
        self._lines: list[bytes] = []
        self._bytes = 0
        self._runs: list[Path] = []
        self._made = 0

    def add(self, lines: Iterable[bytes]) -> None:
        """Add lines, each with its line feed."""
        for line in lines:
            self._lines.append(line)
            self._bytes += len(line) + _LINE_COST
            if self._bytes > self._run_bytes:
                self._write_run()

    def lines(self) -> Iterator[bytes]:
        """Yield all lines, sorted, equal ones once. May be called again."""
        self._lines.sort()
        with ExitStack() as stack:
            files: list[Iterable[bytes]] = [stack.enter_context(run.open("rb")) for run in self._runs]
            yield from _once(heapq.merge(*files, self._lines) if files else iter(self._lines))

    def pieces(self) -> Iterator[bytes]:
        """The same, many lines in one piece."""
        lines = self.lines()
        while some := b"".join(islice(lines, _AT_ONCE)):
            yield some

    def clear(self) -> None:
        """Forgets all lines and removes the runs."""
        for run in self._runs:
            run.unlink()
        self._lines, self._bytes, self._runs = [], 0, []

    def _write_run(self) -> None:
        if len(self._runs) >= self._most_runs - 1:
            runs = [self._write(self.lines())]
            for run in self._runs:
                run.unlink()
            self._runs = runs
        else:
            self._lines.sort()
            self._runs.append(self._write(_once(iter(self._lines))))
        self._lines, self._bytes = [], 0

    def _write(self, lines: Iterator[bytes]) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._made += 1
        path = self._folder / f"run-{self._made}"
        with path.open("xb") as file:
            file.writelines(lines)
        return path


def _once(lines: Iterator[bytes]) -> Iterator[bytes]:
    before = None
    for line in lines:
        if line != before:
            yield line
            before = line

"""Where a worker's CPU time goes, step by step; written out only when `TAMIAS_PROFILE` names a file."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec


class Steps:
    """CPU seconds by step, of whatever thread did them."""

    def __init__(self) -> None:
        self._file = os.environ.get("TAMIAS_PROFILE")
        self._seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Counts the block's CPU time under a name."""
        if self._file is None:
            yield
            return
        begun = time.thread_time()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.thread_time() - begun

    def write(self, pages: int) -> None:
        """Appends one JSON line; the rest of the process's time is that of fetching and the event loop."""
        if self._file is None:
            return
        rest = time.process_time() - sum(self._seconds.values())
        line = {"steps": {"fetch and loop": rest, **self._seconds}, "pages": pages}
        with Path(self._file).open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")

"""The CPU time of a worker by steps, written only if `TAMIAS_PROFILE` names a file."""

import os
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import msgspec

_FILE = os.environ.get("TAMIAS_PROFILE")
_SECONDS: dict[str, float] = {}
"""Of this process, of whatever thread."""
_NOT_COUNTED = nullcontext()


def step(name: str) -> AbstractContextManager[None]:
    """Counts the block's CPU time under a name."""
    return _NOT_COUNTED if _FILE is None else _CountedStep(name)


class _CountedStep:
    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._begun = time.thread_time()

    def __exit__(self, *_raised: object) -> None:
        _SECONDS[self._name] = _SECONDS.get(self._name, 0.0) + time.thread_time() - self._begun


def write_steps(pages: int) -> None:
    """Appends one JSON line; the rest of the process's time is that of fetching and the event loop."""
    if _FILE is None:
        return
    rest = time.process_time() - sum(_SECONDS.values())
    line = {"steps": {"fetch and loop": rest, **_SECONDS}, "pages": pages}
    with Path(_FILE).open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")

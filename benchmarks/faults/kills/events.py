"""What a worker writes down as it goes, line by line, so that it can die at any moment and still testify."""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from benchmarks.frontier.client import Hold


class WorkerEvent(msgspec.Struct, array_like=True, frozen=True):
    """One line. Times are the system's monotonic clock, the same for all processes."""

    at: float
    event: str
    """`taken`, `renewed`, `lost` (the worker stops), `returned` (before finish), `finished` (after it)."""
    host: str
    until: float = 0.0
    urls: list[int] = []


class WorkerLog:
    """Appends notes to a file, each by one write."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, event: str, host: str, *, until: float = 0.0, urls: Iterable[int] = ()) -> None:
        """Notes what happens now."""
        note = WorkerEvent(time.monotonic(), event, host, until, list(urls))
        os.write(self._file, msgspec.json.encode(note) + b"\n")


def notes(path: Path) -> list[WorkerEvent]:
    """What was written; a line cut off by death is left out."""
    read = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(msgspec.DecodeError):
            read.append(msgspec.json.decode(line, type=WorkerEvent))
    return read


def holds(written: list[WorkerEvent], died_at: float | None) -> list[Hold]:
    """When the worker held which host: until it gave it back, its lease ended, or it died."""
    held: dict[str, Hold] = {}
    ended: list[Hold] = []
    for note in written:
        if note.event in ("returned", "lost") and note.host in held:
            hold = held.pop(note.host)
            ended.append(Hold(hold.host, hold.taken, min(note.at, hold.returned)))
        elif note.event == "taken":
            ended += [held.pop(note.host)] if note.host in held else []
            held[note.host] = Hold(note.host, note.at, note.until)
        elif note.event == "renewed":
            held[note.host] = Hold(note.host, held[note.host].taken, note.until)
    if died_at is not None and written:
        died_at = max(died_at, written[-1].at)
        return ended + [Hold(hold.host, hold.taken, min(hold.returned, died_at)) for hold in held.values()]
    return ended + list(held.values())

"""Which documents a worker is analysing, in a file that outlives it: so a deadly document can be found."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from tamias.model.lease import Lease, Task

_SLOTS = 2
_SLOT_BYTES = 128
DocumentPlace = tuple[int, int, int, int]
"""The bucket, host, crawl and URL of a document, by the frontier's numbers."""
_NO_NOTE = b" " * _SLOT_BYTES


class AnalysisMarker:
    """Notes up to two documents at once: a small and a large one. For the event loop's thread."""

    def __init__(self, folder: Path, worker: int) -> None:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        self._path = folder / str(worker)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self._free = list(range(_SLOTS))

    @contextmanager
    def analysing(self, lease: Lease, task: Task) -> Iterator[None]:
        """The document is being analysed while this lasts."""
        note = msgspec.json.encode((lease.bucket, lease.qid, task.crawl, task.uid))
        slot = self._free.pop() if self._free else None
        if slot is None:
            yield
            return
        self._write(note.ljust(_SLOT_BYTES), slot)
        try:
            yield
        finally:
            self._write(_NO_NOTE, slot)
            self._free.append(slot)

    def _write(self, note: bytes, slot: int) -> None:
        # On a full disk the note is missing, and soon somebody who cannot do without tells of it.
        with suppress(OSError):
            os.pwrite(self._file, note, slot * _SLOT_BYTES)

    def close(self) -> None:
        """The worker is told to end: if it dies from here on, no document is to blame."""
        self._free.clear()
        self._path.unlink(missing_ok=True)


def left_by(folder: Path, worker: int) -> list[DocumentPlace]:
    """What a dead worker was analysing; the note is removed."""
    path = folder / str(worker)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    path.unlink(missing_ok=True)
    slots = [content[start : start + _SLOT_BYTES].strip() for start in range(0, len(content), _SLOT_BYTES)]
    return [each for slot in slots for each in _decoded(slot)]


def _decoded(slot: bytes) -> list[DocumentPlace]:
    try:
        return [msgspec.json.decode(slot, type=DocumentPlace)] if slot.startswith(b"[") else []
    except msgspec.DecodeError:
        return []

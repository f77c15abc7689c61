"""A file that names the documents a worker is analysing, to find the one that killed it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap
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
        self._notes = _mapped(self._path)
        self._free = list(range(0, len(self._notes), _SLOT_BYTES))

    @contextmanager
    def analysing(self, lease: Lease, task: Task) -> Iterator[None]:
        """The document is being analysed while this lasts."""
        start = self._free.pop() if self._free else None
        if start is None:
            yield
            return
        note = msgspec.json.encode((lease.bucket, lease.qid, task.crawl, task.uid))
        self._notes[start : start + _SLOT_BYTES] = note.ljust(_SLOT_BYTES)
        try:
            yield
        finally:
            self._notes[start : start + _SLOT_BYTES] = _NO_NOTE
            self._free.append(start)

    def close(self) -> None:
        """The worker is told to end: if it dies from here on, no document is to blame."""
        self._free.clear()
        self._path.unlink(missing_ok=True)


def _mapped(path: Path) -> mmap | bytearray:
    """The file as memory: a note costs no call of the system, and is there for others when the worker dies.

    On a full disk there are no notes, and soon somebody who cannot do without tells of it.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.posix_fallocate(file, 0, _SLOTS * _SLOT_BYTES)  # in a file with holes a note could end us
        return mmap(file, _SLOTS * _SLOT_BYTES)
    except OSError:
        return bytearray()
    finally:
        os.close(file)


def left_by(folder: Path, worker: int) -> list[DocumentPlace]:
    """Return the documents that a dead worker was analysing, and remove its file."""
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

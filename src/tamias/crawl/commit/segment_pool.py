"""A worker's open segments: one for small documents, one for large ones, and what of them is durable."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from tamias.archive.file_store import FileStore, FileUpload
from tamias.archive.stored_files import StoredFile, new_segment, seal_file
from tamias.database.threads import SessionThread
from tamias.plugins import load
from tamias.protocols import DocumentSink, Sink

SEGMENT_BYTES = 256_000_000
SEALED_AFTER_MS = 3_600_000
"""A file in parts is written to for so long: one that was begun long before is a dead worker's."""


class OpenFile(msgspec.Struct):
    """A file that is being written, and what of it is in the store."""

    stored: StoredFile
    upload: FileUpload

    def send(self, path: Path, committed: int, *, sealed: bool) -> StoredFile:
        """Brings the store up to a length; returns what is to be committed."""
        self.upload.send(path, committed)
        stored = self.stored
        stored.committed, stored.sealed, stored.parts = committed, sealed, self.upload.parts
        return stored


class _OpenSegment(OpenFile):
    """A segment, and who writes it."""

    writer: Sink


class SegmentPool:
    """A writer for small documents and several for large ones, which take longer."""

    def __init__(
        self,
        store: FileStore,
        worker: int,
        thread: SessionThread,
        sink: str = "nquads",
    ) -> None:
        """`sink` names the part of `tamias.sinks` that writes the segments."""
        self.store = store
        self._folder = store.folder("rdf")
        self._thread = thread
        self._new_segment = partial(new_segment, thread.session, worker, in_store=store.in_store)
        self._writer: Callable[[Path, int], Sink] = load("sinks", sink)
        self._reserved: StoredFile | None = None
        self._small: _OpenSegment | None = None
        self._large: list[_OpenSegment] = []
        """Those that nobody writes to now."""
        self._lock = threading.Lock()
        self.one_large_at_a_time = asyncio.Lock()
        """To be held, in the event loop, by whoever writes a large document."""
        self._flushed: list[tuple[_OpenSegment, int, bool]] = []
        """What is on this machine's disk up to a length, and whether that is its end."""

    def reserve(self) -> None:
        """Has a row ready for the next segment of small documents; for the database's thread.

        Who writes a small document holds the lock that `sync` waits for, so must not wait for the database.
        """
        if self._reserved is None:
            self._reserved = self._new_segment()

    @contextmanager
    def small_document(self) -> Iterator[DocumentSink]:
        """Open a small document, in the event loop's thread and after `reserve`."""
        with self._lock:
            if self._small is None:
                assert self._reserved is not None
                self._small = self._opened(self._reserved)
                self._reserved = None
            with self._small.writer.document() as document:
                yield document

    @contextmanager
    def large_document(self) -> Iterator[DocumentSink]:
        """Open a large document in a segment of its own, and sync it at the end; blocks its thread."""
        with self._lock:
            segment = self._large.pop() if self._large else None
        segment = segment or self._opened(self._thread.wait(self._new_segment))
        is_open = True
        try:
            with segment.writer.document() as document:
                yield document
            is_open = self._flush(segment)
        finally:
            if is_open:
                with self._lock:
                    self._large.append(segment)

    def sync(self) -> list[StoredFile]:
        """Makes all that was written durable, and tells what is.

        For the database's thread; where files have to be sent, for one that can wait.
        """
        with self._lock:
            if self._small is not None and not self._flush(self._small):
                self._small = None
            flushed, self._flushed = self._flushed, []
        # Without the lock: whoever writes a small document does not wait for a store.
        return [each.send(self._path(each.stored), length, sealed=end) for each, length, end in flushed]

    def close(self) -> None:
        """Ends all files; for the database's thread, when nobody writes any more."""
        for segment in (*self._large, *([self._small] if self._small else [])):
            segment.writer.close()
            seal_file(self._thread.session, segment.stored)
            if not segment.stored.parts:
                self.store.forget_local(segment.stored)  # nothing of it was committed

    def _opened(self, stored: StoredFile) -> _OpenSegment:
        assert stored.segment is not None
        writer = self._writer(self._path(stored), stored.segment)
        return _OpenSegment(stored, FileUpload(self.store, stored.key), writer)

    def _path(self, stored: StoredFile) -> Path:
        return self._folder / stored.name

    def _flush(self, segment: _OpenSegment) -> bool:
        """Brings what was written to the disk; whether more may be written."""
        length = segment.writer.sync()
        full = length >= SEGMENT_BYTES or self._is_old(segment)
        if full:
            segment.writer.close()
        self._flushed.append((segment, length, full))
        return not full

    def _is_old(self, segment: _OpenSegment) -> bool:
        age = self._thread.session.time() - (segment.stored.file.int >> 80)
        return self.store.is_elsewhere and (segment.upload.is_full or age > SEALED_AFTER_MS)

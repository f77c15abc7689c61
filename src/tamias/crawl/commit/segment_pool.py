"""A worker's open segments: one for small documents, one for large ones, and what of them is durable."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tamias.archive.captures import Durable, new_segment
from tamias.database.threads import SessionThread
from tamias.plugins import load
from tamias.protocols import DocumentSink, Sink
from tamias.sinks.warc.warc_writer import WarcWriter

SEGMENT_BYTES = 256_000_000


class SegmentPool:
    """One writer for small documents and some for large ones, which take their time."""

    def __init__(
        self,
        folder: Path,
        worker: int,
        thread: SessionThread,
        warc: WarcWriter | None = None,
        sink: str = "nquads",
    ) -> None:
        """`warc` is synced along; `sink` names the part of `tamias.sinks` that writes the segments."""
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        self._folder = folder
        self._thread = thread
        self._new_segment = partial(new_segment, thread.session, worker)
        self._writer: Callable[[Path, int], Sink] = load("tamias.sinks", sink)
        self._warc = warc
        self._reserved: int | None = None
        self._small: Sink | None = None
        self._large: list[Sink] = []
        """Those that nobody writes to now."""
        self._lock = threading.Lock()
        self.one_large_at_a_time = asyncio.Lock()
        """To be held, in the event loop, by whoever writes a large document."""
        self._news: list[Durable] = []

    def reserve(self) -> None:
        """Has a number ready for the next segment of small documents; for the database's thread.

        Who writes a small document holds the lock that `sync` waits for, so must not wait for the database.
        """
        if self._reserved is None:
            self._reserved = self._new_segment()

    @contextmanager
    def small_document(self) -> Iterator[DocumentSink]:
        """For the event loop's thread, after `reserve`."""
        with self._lock:
            if self._small is None:
                assert self._reserved is not None
                self._small = self._writer(self._folder, self._reserved)
                self._reserved = None
            with self._small.document() as document:
                yield document

    @contextmanager
    def large_document(self) -> Iterator[DocumentSink]:
        """For a thread that can wait; durable at the end. Each that is open has a segment of its own."""
        with self._lock:
            writer = self._large.pop() if self._large else None
        writer = writer or self._writer(self._folder, self._thread.wait(self._new_segment))
        still: Sink | None = writer
        try:
            with writer.document() as document:
                yield document
            durable, still = _synced(writer)
            with self._lock:
                self._news.append(durable)
        finally:
            if still is not None:
                with self._lock:
                    self._large.append(still)

    def sync(self) -> list[Durable]:
        """Makes all that was written durable, and tells what is; for the database's thread."""
        self.reserve()
        if self._warc is not None:
            self._warc.sync()
        with self._lock:
            if self._small is not None:
                durable, self._small = _synced(self._small)
                self._news.append(durable)
            news, self._news = self._news, []
        return news


def _synced(writer: Sink) -> tuple[Durable, Sink | None]:
    committed = writer.sync()
    full = committed >= SEGMENT_BYTES
    if full:
        writer.close()
    return Durable(writer.segment, committed, full), None if full else writer

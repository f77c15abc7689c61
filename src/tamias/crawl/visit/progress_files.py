"""Files of quads that grow step by step, and how far each is: harvests, and bodies that take long to read.

The quads wait in a file, and in the archive's store if it has one; how far it came is in the database.
Whoever takes the task over after a death, on any machine, goes on after the last step that was saved.
"""

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from uuid import UUID

import msgspec
import zstandard

from tamias.archive.file_store import MOST_PARTS, FileUpload, pieces
from tamias.archive.sources.catalogues import note_harvested, note_whole
from tamias.archive.sources.harvests import (
    HarvestKey,
    HarvestProgress,
    end_harvest,
    harvest_key,
    read_harvest,
    save_harvest,
)
from tamias.archive.stored_files import StoredFile
from tamias.crawl.analysis.extractor import Extraction, ReadingState
from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.visit import CommitBatch, CommitHook, Visit
from tamias.database.connect import Cursor
from tamias.database.disk import write_all
from tamias.model.capture import Body, Capture, Extent, new_capture_id
from tamias.model.faults import reached
from tamias.model.lease import Task
from tamias.sinks.graphs import whole_lines
from tamias.sinks.segments.segment_files import FRAME_BYTES

_log = logging.getLogger(__name__)
NOWHERE = Extent(0, 0, 0, 0)
_BODY = ".body"


class HarvestEnded(msgspec.Struct, frozen=True):
    """A harvest, or a body that was read for long, is complete: its files are not needed any more."""

    place: HarvestKey
    url: str
    progress: HarvestProgress
    unchanged: bool = False


class ProgressFiles(CommitHook):
    """The files of a worker's tasks; they go when the visit is committed that used them up."""

    def __init__(self, context: CommitContext) -> None:
        self._thread = context.thread
        self._now = context.now
        self._quads = context.segments
        self._files = context.segments.store
        self._folder = self._files.folder("harvests")
        self._spool = context.data / "spool" / str(context.number)
        self._own: set[str] = set()
        """Names of files in the store to which nobody else writes."""
        self.interrupted = {path.name for path in self._folder.glob(f"*{_BODY}")}
        """Names of bodies that were not read to their end when this worker began."""

    def path(self, place: HarvestKey) -> Path:
        """The file of a task."""
        return self._folder / place.file_name

    def open(self, task: Task, held: HeldLease, capture: Capture) -> "LongReading":
        """Open the file of a body that takes long to read, where an earlier attempt came to. For a thread."""
        place = harvest_key(held.lease, task)
        progress = self._state_of(place)
        body, state = capture.body, None
        assert body is not None
        if progress is not None and progress.state is not None:
            state = msgspec.msgpack.decode(progress.state, type=_State)
        if state is None or state.capture.body is None or state.capture.body.sha256 != body.sha256:
            progress, state = HarvestProgress(started_at=self._now()), None
        assert progress is not None
        return LongReading(self, place, progress, capture, state.reading if state else None)

    def _state_of(self, place: HarvestKey) -> HarvestProgress | None:
        memory = self._thread.wait(read_harvest, self._thread.session, place)
        return self.sound(self.path(place), memory.progress)

    def fetched(self, task: Task, held: HeldLease) -> Capture | None:
        """Return what was fetched for a reading that was interrupted, if its body is on this machine."""
        place = harvest_key(held.lease, task)
        body = _body_of(self.path(place))
        if body.name not in self.interrupted or not body.exists():
            return None
        progress = self._thread.wait(read_harvest, self._thread.session, place).progress
        if progress is None or progress.state is None:
            return None
        capture = msgspec.msgpack.decode(progress.state, type=_State).capture
        if capture.body is None or body.stat().st_size != capture.body.size:
            return None
        self._spool.mkdir(parents=True, mode=0o700, exist_ok=True)
        link = self._spool / f"resumed-{new_capture_id(self._now())}"
        os.link(body, link)
        return msgspec.structs.replace(
            capture, body=Body(size=capture.body.size, sha256=capture.body.sha256, path=str(link))
        )

    def append(self, path: Path, progress: HarvestProgress, lines: bytes) -> None:
        """Make lines durable behind those that count."""
        with path.open("ab" if progress.written else "wb") as file:
            # A step that was interrupted may have left bytes that do not count.
            file.truncate(progress.written)
            file.write(zstandard.ZstdCompressor(level=3).compress(lines))
            file.flush()
            os.fsync(file.fileno())
        progress.written = path.stat().st_size

    def save(self, path: Path, place: HarvestKey, progress: HarvestProgress, sent: int) -> None:
        """Save how far it is, once the store has the file behind the bytes that were `sent` before."""
        spool, parts = progress.spool, progress.parts
        if self._files.is_elsewhere and progress.written > sent:
            self._send(path, progress, sent)
        self._thread.wait(save_harvest, self._thread.session, place, progress)
        if spool != progress.spool:
            self._files.forget_parts(_stored(spool).key, parts)

    def _send(self, path: Path, progress: HarvestProgress, sent: int) -> None:
        """Brings the store up to the file. What another worker began is sent anew: it may go on still."""
        goes_on = progress.spool in self._own and len(progress.parts) < MOST_PARTS
        spool = progress.spool if goes_on else f"{new_capture_id(self._now())}.nq.zst"
        self._own.add(spool)
        parts, sent = (progress.parts, sent) if goes_on else ((), 0)
        upload = FileUpload(self._files, _stored(spool).key, parts, sent)
        upload.send(path, progress.written)
        progress.spool, progress.parts = spool, upload.parts

    def sound(self, path: Path, progress: HarvestProgress | None) -> HarvestProgress | None:
        """The progress, if its file holds what it should; cut to what counts. Else it begins anew.

        For a thread: the file may have to be brought from the store.
        """
        if progress is None:
            return None
        size = path.stat().st_size if path.exists() else 0
        # A file that this process did not write may be that of an attempt before the other machine's.
        if progress.parts and (size < progress.written or progress.spool not in self._own):
            size = self._bring(path, progress)
        if size < progress.written:
            return None
        if size > progress.written:
            os.truncate(path, progress.written)
        return progress

    def _bring(self, path: Path, progress: HarvestProgress) -> int:
        """Copies the file from the store; returns its size."""
        stored = _stored(progress.spool, progress.parts, progress.written)
        try:
            with self._files.open(stored) as source, path.open("wb") as file:
                file.writelines(pieces(source, progress.written))
        except OSError as error:
            _log.warning("%s begins again: %s", stored.key, error)
            return 0
        return progress.written

    def write(self, cursor: Cursor, batch: CommitBatch) -> None:
        """Note the ends of harvests, in the transaction that commits them."""
        for _, ended in batch.extras(HarvestEnded):
            end, started_at = ended.progress.end, ended.progress.started_at
            if end is not None and end.complete:
                note_whole(cursor, ended.url, started_at)
            elif end is not None and end.changes_only:
                note_harvested(cursor, ended.url, started_at)
            bookmark = end.bookmark if end is not None else None
            of_records = bookmark is not None or (end is not None and end.changes_only)
            end_harvest(
                cursor,
                ended.place,
                bookmark,
                url=ended.url,
                document_at=started_at if of_records else None,
                unchanged=ended.unchanged,
            )

    def after(self, visit: Visit, *, committed: bool) -> None:
        """Remove the files of what was committed."""
        for ended in visit.extras if committed else ():
            if isinstance(ended, HarvestEnded):
                path, progress = self.path(ended.place), ended.progress
                path.unlink(missing_ok=True)
                _body_of(path).unlink(missing_ok=True)
                if progress.parts:
                    key = _stored(progress.spool).key
                    forget = partial(self._files.forget_parts, key, progress.parts)
                    asyncio.get_running_loop().run_in_executor(None, forget)

    def shelve(self, path: Path) -> Extent:
        """Copy the file to a segment. For a thread."""
        unpacking = zstandard.ZstdDecompressor()
        with (
            self._quads.large_document() as document,
            path.open("rb") as file,
            unpacking.stream_reader(file, read_across_frames=True) as reader,
        ):
            for lines in whole_lines(iter(lambda: reader.read(1 << 20), b"")):
                document.write(lines)
            return document.extent


class _State(msgspec.Struct):
    """The saved state of a body that takes long to read."""

    capture: Capture
    reading: ReadingState


class LongReading:
    """The reading of one body into a file of N-Quads, which ends at the last saved position.

    For one thread.
    """

    def __init__(
        self,
        files: ProgressFiles,
        place: HarvestKey,
        progress: HarvestProgress,
        capture: Capture,
        start: ReadingState | None,
    ) -> None:
        self._files = files
        self._place = place
        self._progress = progress
        self._capture = capture
        self.start = start
        self._path = files.path(place)
        self._compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
        self._open_frame = bytearray()
        self._file = -1
        self._linked = False
        """Whether it was tried to keep the body."""
        self.extent = NOWHERE

    @contextmanager
    def document(self) -> Iterator["LongReading"]:
        """Take what follows the last position that was saved."""
        self._open_frame.clear()
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.ftruncate(self._file, self._progress.written)
            if self.start is None:  # a syntax without positions is read again, but not fetched again
                self.save(ReadingState(found=Extraction(), part=0))
            yield self
            self._flush()
        finally:
            os.close(self._file)

    def write(self, chunk: bytes) -> None:
        """Append plain N-Quads."""
        self._open_frame += chunk
        if len(self._open_frame) >= FRAME_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._open_frame:
            write_all(self._file, self._compressor.compress(bytes(self._open_frame)))
            self._open_frame.clear()

    def save(self, reading: ReadingState) -> None:
        """Make all that was written durable, and then how far that is."""
        self._flush()
        os.fdatasync(self._file)
        self._keep_body()
        sent, self._progress.written = self._progress.written, os.fstat(self._file).st_size
        self._progress.state = msgspec.msgpack.encode(_State(self._capture, reading))
        self._progress.steps += 1
        self._files.save(self._path, self._place, self._progress, sent)
        self.start = reading
        reached("position-saved")

    def _keep_body(self) -> None:
        """Keep the body after a death; where it cannot be linked, it is fetched again."""
        body, link = self._capture.body, _body_of(self._path)
        if self._linked or body is None or body.path is None:
            return
        self._linked = True
        if link.exists() and os.path.samefile(body.path, link):
            return
        link.unlink(missing_ok=True)
        try:
            with open(body.path, "rb") as file:
                os.fsync(file.fileno())
            os.link(body.path, link)
        except OSError as error:
            _log.warning("%s is fetched again if reading it is interrupted: %s", self._capture.url, error)

    def end(self, visit: Visit) -> None:
        """Commit the end of it with the visit; the files go after that."""
        visit.extras.append(HarvestEnded(self._place, visit.task.url, self._progress))

    def shelve(self) -> Extent:
        """Copy what was read to a segment."""
        return self._files.shelve(self._path)


def _body_of(path: Path) -> Path:
    return path.with_name(path.name + _BODY)


def _stored(spool: str, parts: tuple[int, ...] = (), size: int = 0) -> StoredFile:
    """A file of quads as one of the store."""
    file = UUID(spool[:36]) if spool else UUID(int=0)
    return StoredFile(file=file, kind="harvests", name=spool, committed=size, in_store=True, parts=parts)

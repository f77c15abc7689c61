"""Segments: files of zstd frames that hold the quads of many documents as N-Quads.

Small documents share a frame; a large one has frames of its own. `zstd -d` reads a whole segment.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Self

import msgspec
import zstandard

from tamias.database.disk import sync_path, write_all, write_errors
from tamias.model.capture import Extent, FramePlace, SegmentMerged
from tamias.model.errors import TamiasError
from tamias.model.faults import reached

SEGMENT_BYTES = 256 * 1024 * 1024
"""The length at which a worker seals its segment and starts the next."""

FRAME_BYTES = 1024 * 1024
"""Plain N-Quads in a frame, at most: what must be unpacked to read one small document."""

SKIPPABLE = (0x184D2A5E).to_bytes(4, "little")
"""The beginning of a frame that tools pass over."""
MOST_MERGED = 48 * FRAME_BYTES
"""Plain N-Quads in the frame of a merged segment, at most."""
_MAX_FRAME_BYTES = 64 * FRAME_BYTES
_MOST_KNOWN = 1000
_PIECE = 16 * 1024


class SegmentError(TamiasError):
    """A segment does not hold what was written to it."""


class SegmentWriter:
    """Writes one new segment, one document at a time. Nothing is durable before `sync` returns."""

    def __init__(self, path: Path, segment: int, level: int = 3) -> None:
        self.segment = segment
        self.path = path
        self._compressor = zstandard.ZstdCompressor(level=level, write_checksum=True)
        self._open_frame = bytearray()
        self._length = 0
        self._in_document = False
        self._frame = self._start = self._written = 0
        """The place of the last document, and the length of it."""
        self._file = -1
        with write_errors(f"segment {self.path}"):
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            # Else the file itself may be gone after a power failure, however well it was synced.
            sync_path(path.parent)

    @property
    def length(self) -> int:
        """Bytes in the file; the open frame does not count yet."""
        return self._length

    @contextmanager
    def document(self) -> Iterator[Self]:
        """Takes one document. If the block is left by an exception, nothing of it stays in the segment."""
        self._expect_no_document("written")
        self._frame, self._start, self._written = self._length, len(self._open_frame), 0
        self._in_document = True
        try:
            yield self
        except BaseException:
            self._take_back()
            raise
        finally:
            self._in_document = False

    def write(self, chunk: bytes) -> None:
        """Appends plain N-Quads of the document."""
        self._written += len(chunk)
        self._open_frame += chunk
        if len(self._open_frame) > FRAME_BYTES and self._start:
            # From here on the document has frames of its own, so that it can be taken back whole.
            self._close_frame(self._start)
            self._frame, self._start = self._length, 0
        while len(self._open_frame) > FRAME_BYTES:
            self._close_frame(FRAME_BYTES)

    @property
    def extent(self) -> Extent:
        """Return where the document stands; to be taken when it is complete, within its block.

        Behind the block another thread may have begun the next document, whose place this would be.
        """
        if not self._in_document:
            raise RuntimeError(f"the place of a document of segment {self.path} is asked for after its end")
        return Extent(self.segment, self._frame, self._start, self._written)

    def sync(self) -> int:
        """Makes all documents so far durable; returns the length to be recorded as committed.

        After `DiskFull` it can be tried again, unless the segment is closed: when the disk fails to sync,
        nobody knows what it kept, and the next start must cut back to the last committed length.
        """
        self._expect_no_document("synced")
        self._close_frame(len(self._open_frame))
        with write_errors(f"segment {self.path}"):
            try:
                os.fdatasync(self._file)
            except OSError:
                self.close()
                raise
        return self._length

    def close(self) -> None:
        """Lets go of the file. What was not synced is cut off by the next start."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _expect_no_document(self, what: str) -> None:
        if self._in_document:
            raise RuntimeError(f"segment {self.path} cannot be {what} inside a document")
        if self._file < 0:
            raise TamiasError(f"segment {self.path} is closed and cannot be {what} any more")

    def _take_back(self) -> None:
        del self._open_frame[self._start :]
        if self._frame < self._length and self._file >= 0:
            with write_errors(f"segment {self.path}"):
                os.ftruncate(self._file, self._frame)
            self._length = self._frame

    def _close_frame(self, size: int) -> None:
        """Writes the first bytes of the open frame; if that fails, all is as it was before."""
        if not size:
            return
        frame = self._compressor.compress(bytes(self._open_frame[:size]))
        with write_errors(f"segment {self.path}"):
            try:
                write_all(self._file, frame)
            except OSError:
                os.ftruncate(self._file, self._length)
                raise
        self._length += len(frame)
        del self._open_frame[:size]


class SegmentReader:
    """Reads documents back. Fast when they are asked for in the order in which they were written."""

    def __init__(
        self, open_segment: Callable[[int], BinaryIO], committed: Mapping[int, int] | None = None
    ) -> None:
        """`open_segment` raises `OSError` for a segment that is not there.

        With the `committed` lengths it also finds what stands behind a place where bytes are missing.
        """
        self._open_segment = open_segment
        self._committed = committed or {}
        self._segment: int | None = None
        self._file: BinaryIO | None = None
        self._size = 0
        self._at: tuple[int, int] | None = None
        self._frame = b""
        self._next = -1
        self._merged: dict[int, dict[int, FramePlace]] = {}

    def read(self, extent: Extent) -> Iterator[bytes]:
        """The plain N-Quads of one document, frame by frame; `SegmentError` if they are not there."""
        place, skip, left = extent.frame, extent.start, extent.length
        while left:
            frame, behind = self._frame_at(extent.segment, place)
            piece = frame[skip : skip + left]
            if not piece:
                raise self._damage(extent.segment, f"the frame at byte {place} is too short")
            left -= len(piece)
            place, skip = behind, 0
            yield piece

    def holds(self, extent: Extent) -> bool:
        """Return whether a document can be read to its end; free where it is in one frame."""
        try:
            for _ in self.read(extent):
                pass
        except SegmentError:
            return False
        return True

    def close(self) -> None:
        """Lets go of the open file."""
        if self._file:
            self._file.close()
        self._file, self._segment = None, None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _frame_at(self, segment: int, place: int) -> tuple[bytes, int]:
        """A frame unpacked, and where the next one begins. The last one is kept at hand."""
        if (segment, place) == self._at:
            return self._frame, self._next
        file = self._opened(segment)
        if isinstance(file, dict):
            if (part := file.get(place)) is None:
                raise _damage(segment, f"no frame was merged from byte {place}")
            whole, _ = self._frame_at(part.segment, 0)
            return whole[part.start : part.start + part.length], part.next_frame
        self._at = None
        missing = max(0, self._committed.get(segment, 0) - self._size)
        try:
            self._frame, self._next = _frame_in(file, place, missing)
        except (OSError, EOFError, ValueError, zstandard.ZstdError) as error:
            raise self._damage(segment, f"no sound frame at byte {place} ({error})") from error
        self._at = segment, place
        return self._frame, self._next

    def _opened(self, segment: int) -> BinaryIO | dict[int, FramePlace]:
        """Open a file, or find the frames of a segment that was merged into others."""
        if segment in self._merged:
            return self._merged[segment]
        if segment != self._segment or self._file is None:
            self.close()
            try:
                self._file = self._open_segment(segment)
                self._size = self._file.seek(0, os.SEEK_END)
            except SegmentMerged as merged:
                if len(self._merged) >= _MOST_KNOWN:
                    self._merged.clear()
                return self._merged.setdefault(segment, merged.frames)
            except OSError as error:
                raise _damage(error.filename or segment, f"cannot be read ({error.strerror})") from error
            self._segment = segment
        return self._file

    def _damage(self, segment: int, what: str) -> SegmentError:
        return _damage(self._file.name if self._file else segment, what)


def _damage(name: object, what: str) -> SegmentError:
    return SegmentError(f"segment {name} is damaged: {what}")


def _frame_in(file: BinaryIO, place: int, missing: int) -> tuple[bytes, int]:
    """The frame that was written at a place, and where the next was; bytes before it may be missing."""
    try:
        file.seek(place)
        return unpacked_frame(file)
    except (EOFError, zstandard.ZstdError):
        if not missing:
            raise
    file.seek(place - missing)
    frame, behind = unpacked_frame(file)
    return frame, behind + missing


def cut_tail(path: Path, committed: int) -> int:
    """Cuts off what was written after the last commit; returns how many bytes that were."""
    try:
        length = path.stat().st_size
    except FileNotFoundError:
        length = 0
    if length < committed:
        raise SegmentError(
            f"segment {path} is damaged: {length} bytes of {committed} committed ones are there"
        )
    if length > committed:
        with path.open("r+b") as file:
            file.truncate(committed)
            os.fsync(file.fileno())
    return length - committed


def unpacked_frame(file: BinaryIO) -> tuple[bytes, int]:
    """The frame that begins where the file stands, and where it ends."""
    unpacking = zstandard.ZstdDecompressor(max_window_size=_MAX_FRAME_BYTES).decompressobj()
    frame = bytearray()
    while not unpacking.eof:
        piece = file.read(_PIECE)
        if not piece:
            raise EOFError("the file ends in it")
        frame += unpacking.decompress(piece)
        if len(frame) > _MAX_FRAME_BYTES:
            raise EOFError(f"it has more than {_MAX_FRAME_BYTES} bytes")
    return bytes(frame), _behind_filling(file, file.tell() - len(unpacking.unused_data))


def _behind_filling(file: BinaryIO, place: int) -> int:
    """The place behind a skippable frame, if one stands there: it fills up a frame that was written anew."""
    file.seek(place)
    head = file.read(8)
    return place + 8 + int.from_bytes(head[4:], "little") if head[:4] == SKIPPABLE else place


_COPY = ".erasing"
_NOTES = ".overwrite"
_ZEROS_AT_ONCE = 1024 * 1024


class _Overwrite(msgspec.Struct, frozen=True):
    """Places in a file, and what stands there from now on."""

    at: dict[int, bytes]


def replace_bytes(path: Path, at: Mapping[int, bytes], *, being_written: bool) -> None:
    """Replaces what stands at some places. May be done twice."""
    if being_written:
        _overwrite_in_place(path, _Overwrite(dict(at)))
    else:
        _replace_by_copy(path, at)


def remove_copies(folder: Path) -> None:
    """Removes what a process that was killed had copied; only for whoever is alone in replacing bytes."""
    for copy in folder.glob(f"*{_COPY}"):
        copy.unlink(missing_ok=True)


def finish_overwriting(folder: Path) -> int:
    """Finishes what a process that was killed had begun; returns in how many files. May be done twice."""
    count = 0
    for notes in sorted(folder.glob(f"*{_NOTES}")):
        path = notes.with_name(notes.name.removesuffix(_NOTES))
        for target in (path, path.with_name(path.name.removesuffix(".open"))):
            if target.exists():
                _write_over(target, msgspec.msgpack.decode(notes.read_bytes(), type=_Overwrite))
                count += 1
                break
        notes.unlink(missing_ok=True)
    return count


def _overwrite_in_place(path: Path, wanted: _Overwrite) -> None:
    notes = path.with_name(path.name + _NOTES)
    partial = notes.with_name(notes.name + ".part")
    _write(partial, msgspec.msgpack.encode(wanted))
    partial.rename(notes)
    sync_path(path.parent)
    reached("overwrite-noted")
    _write_over(path, wanted)
    notes.unlink(missing_ok=True)
    sync_path(path.parent)


def _write_over(path: Path, wanted: _Overwrite) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        for start, content in wanted.at.items():
            done = 0
            while done < len(content):
                done += os.pwrite(file, memoryview(content)[done:], start + done)
            reached("overwrite-part")
        os.fsync(file)
    finally:
        os.close(file)


def _replace_by_copy(path: Path, at: Mapping[int, bytes]) -> None:
    copy = path.with_name(path.name + _COPY)
    with path.open("rb") as source:
        mode = os.fstat(source.fileno()).st_mode & 0o777
        out = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        try:
            for start, content in sorted(at.items()):
                _copy(source.fileno(), out, start)
                write_all(out, content)
                os.lseek(source.fileno(), start + len(content), os.SEEK_SET)
            _copy(source.fileno(), out, None)
            os.fsync(out)
        finally:
            os.close(out)
    reached("overwrite-copied")
    copy.rename(path)
    sync_path(path.parent)


def _copy(source: int, out: int, until: int | None) -> None:
    """Copy from the position of the source up to a place, or to its end."""
    while until is None or os.lseek(source, 0, os.SEEK_CUR) < until:
        most = (
            _ZEROS_AT_ONCE if until is None else min(_ZEROS_AT_ONCE, until - os.lseek(source, 0, os.SEEK_CUR))
        )
        piece = os.read(source, most)
        if not piece:
            return
        write_all(out, piece)


def _write(path: Path, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write_all(file, content)
        os.fsync(file)
    finally:
        os.close(file)

"""Reads segments from start to end: is every frame sound, does every document stand where it should."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

import msgspec
import zstandard

from tamias.model.capture import Extent
from tamias.model.errors import TamiasError
from tamias.model.vocabulary import OWN_SPACE
from tamias.sinks.segments.naming import quads_in
from tamias.sinks.segments.segment_files import SKIPPABLE, unpacked_frame


class _Run(msgspec.Struct):
    """Sound frames one behind the other: how many bytes are unpacked before each, and in all."""

    before: dict[int, int] = msgspec.field(default_factory=dict)
    total: int = 0


class SegmentCheck:
    """A check of segments."""

    def __init__(self, open_segment: Callable[[int], BinaryIO]) -> None:
        self._open_segment = open_segment
        self.segments = 0
        self.bytes = 0

    def faults(self, segment: int, committed: int, extents: Sequence[Extent]) -> Iterator[str]:
        """Yield what is wrong with one segment; the extents are of the documents in it."""
        if committed == 0 and not extents:
            return  # its number was taken, and nothing written
        self.segments += 1
        runs = [_Run()]
        try:
            with self._open_segment(segment) as file:
                yield from self._walk(file, committed, sorted({extent.frame for extent in extents}), runs)
        except OSError as error:
            yield f"it cannot be read: {error.strerror}"
        placed = {frame: run for run in runs for frame in run.before}
        lost = sum(1 for extent in extents if not _stands(extent, placed.get(extent.frame)))
        if lost:
            yield f"the quads of {lost} captures cannot be read; crawl their documents again"

    def _walk(self, file: BinaryIO, committed: int, known: list[int], runs: list[_Run]) -> Iterator[str]:
        """Frame by frame; behind a broken one, from the next that is known on."""
        place, rest = 0, b""
        while place < committed:
            file.seek(place)
            try:
                frame, behind = unpacked_frame(file)
            except (EOFError, zstandard.ZstdError) as error:
                yield f"there is no sound frame at byte {place} ({error})"
                runs.append(_Run())
                rest = b"#"  # the next frame may begin inside of a line: a comment
                place = next((start for start in known if start > place), committed)
                continue
            runs[-1].before[place] = runs[-1].total
            runs[-1].total += len(frame)
            self.bytes += behind - place
            lines, line_end, tail = (rest + frame).rpartition(b"\n")
            rest = tail
            if problem := _problem(lines + line_end):
                yield f"{problem}, in the frame at byte {place}"
            place = behind
        if place > committed:
            yield f"a frame reaches beyond byte {committed}, up to which it is committed"


def _problem(lines: bytes) -> str | None:
    """Say what is wrong with whole lines; those of a forgotten document are blank, or comments."""
    try:
        _, graphs = quads_in(lines)
    except ValueError as error:
        return f"what stands there is no N-Quads ({error})"
    own = next((graph for graph in graphs if graph.lower().startswith(OWN_SPACE)), None)
    return own and f"a document has statements in {own}"


def _stands(extent: Extent, run: _Run | None) -> bool:
    """Return whether all bytes of a document are in sound frames, one behind the other."""
    if not extent.length:
        return True
    return run is not None and run.total - run.before[extent.frame] >= extent.start + extent.length


_HEADER = 8
_LEVELS = (3, 6, 12, 19)


def blank_frames(file: BinaryIO, extents: Sequence[Extent]) -> dict[int, bytes]:
    """The frames of a segment without these documents, by their places. May be done twice."""
    frames: dict[int, tuple[bytes, bytearray, int]] = {}
    for extent in extents:
        place, skip, left = extent.frame, extent.start, extent.length
        while left > 0:
            if place not in frames:
                file.seek(place)
                plain, behind = unpacked_frame(file)
                frames[place] = plain, bytearray(plain), behind
            plain, blank, behind = frames[place]
            size = min(left, len(plain) - skip)
            if size <= 0:
                raise TamiasError(f"segment {file.name} is damaged: the frame at byte {place} is too short")
            blank[skip : skip + size] = b"\n" * size
            left, place, skip = left - size, behind, 0
    return {
        place: frame_of(bytes(blank), behind - place)
        for place, (plain, blank, behind) in frames.items()
        if plain != blank
    }


def frame_of(plain: bytes, length: int) -> bytes:
    """A frame of some content that has this length, with a skippable frame behind it to fill it up."""
    for level in _LEVELS:
        for checksum in (True, False):
            frame = zstandard.ZstdCompressor(level=level, write_checksum=checksum).compress(plain)
            rest = length - len(frame)
            if rest == 0:
                return frame
            if rest >= _HEADER:
                return frame + SKIPPABLE + (rest - _HEADER).to_bytes(4, "little") + bytes(rest - _HEADER)
    # A comment among the blank lines makes it a little longer.
    start = plain.find(b"\n" * 16)
    for size in range(1, 14) if start >= 0 else ():
        comment = b"\n#" + os.urandom(size).hex().encode()[:size]
        frame = zstandard.ZstdCompressor(level=19, write_checksum=True).compress(
            plain[:start] + comment + plain[start + len(comment) :]
        )
        if len(frame) == length:
            return frame
    raise TamiasError(f"a frame of {length} bytes cannot be written anew in its place")

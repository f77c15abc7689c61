"""Reads segments from start to end: is every frame sound, does every document stand where it should."""

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

import msgspec
import zstandard

from tamias.model.capture import Extent
from tamias.model.vocabulary import OWN_SPACE
from tamias.sinks.segments.naming import quads_in
from tamias.sinks.segments.segment_files import FRAME_BYTES, unpacked_frame


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
            for piece in range(0, len(frame), FRAME_BYTES):
                lines, line_end, rest = (rest + frame[piece : piece + FRAME_BYTES]).rpartition(b"\n")
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

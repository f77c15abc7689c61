"""Frames of segments without some documents, each as long as before."""

import os
from collections.abc import Sequence
from typing import BinaryIO

import zstandard

from tamias.model.capture import Extent
from tamias.model.errors import TamiasError
from tamias.sinks.segments.segment_files import SKIPPABLE, unpacked_frame

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

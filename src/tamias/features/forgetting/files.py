"""Files of quads and WARC files, wherever they are, in which bytes are replaced by others of the same length.

A file of a folder is overwritten. Of a file in an S3 store the objects are written anew that have the bytes.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

import zstandard

from tamias.archive.file_store import file_store, part_key, segments_of
from tamias.archive.sources.harvests import harvest_files
from tamias.archive.stored_files import StoredFile, files_of, find_segment, note_rewritten
from tamias.database.connect import Session
from tamias.features.forgetting.warc_records import Unwanted, erase_records
from tamias.features.repack.segments import MergeRefused, remove_merged, rewrite_merged
from tamias.features.warc.folder import bring_warcs
from tamias.model.capture import Extent, FramePlace, SegmentMerged
from tamias.model.errors import TamiasError
from tamias.model.faults import reached
from tamias.sinks.segments.segment_files import (
    SKIPPABLE,
    finish_overwriting,
    remove_copies,
    replace_bytes,
    unpacked_frame,
)

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


NOT_MERGED = "is in parts that are still to be merged"


class ErasableFiles:
    """The files of an archive. For the session's thread."""

    def __init__(self, session: Session, data: Path) -> None:
        self._session = session
        self._data = data
        self._store = file_store(session, data)
        self.open_segment = segments_of(session, data)

    def finish(self) -> None:
        """Finishes what a process that was killed had begun; for whoever is alone in erasing."""
        for kind in ("rdf", "warc"):
            for folder in self._folders(kind):
                remove_copies(folder)
                finish_overwriting(folder)
        remove_merged(self._session, self._store)

    def free_parts(self) -> None:
        """Parts in the store that no row names, such as those a worker that was killed had merged."""
        files = [*files_of(self._session, "rdf"), *files_of(self._session, "warc")]
        files += harvest_files(self._session)
        self._store.free_parts(files, self._session.now())

    def erase_quads(self, segment: int, extents: Sequence[Extent]) -> str | None:
        """Erases documents of a file of quads; says what is left to do, if something is."""
        try:
            stored = find_segment(self._session, segment)
        except SegmentMerged as merged:
            return self._erase_merged(merged.frames, extents)
        if stored is None:
            return None
        try:
            with self._store.open(stored) as file:
                changes = blank_frames(file, extents)
        except FileNotFoundError:
            return f"{stored.key} is not on this machine: run it where it is"
        return self._replace(stored, changes)

    def _erase_merged(self, frames: dict[int, FramePlace], extents: Sequence[Extent]) -> str | None:
        try:
            for _, some in groupby(sorted(_merged(frames, extents), key=_segment), key=_segment):
                rewrite_merged(self._session, self._store, list(some))
        except (MergeRefused, FileNotFoundError) as error:
            return f"statements in merged segments are left: {error}"
        return None

    def erase_warc(self, is_unwanted: Unwanted) -> tuple[int, list[str]]:
        """Erases records; returns how many, and what is left to do."""
        if not self._store.is_elsewhere:
            return sum(erase_records(folder, is_unwanted) for folder in self._folders("warc")), []
        folder, left = bring_warcs(self._session, self._data), []
        stored = {each.name: each for each in files_of(self._session, "warc") if each.in_store}

        def also(name: str, changes: Mapping[int, bytes]) -> None:
            if name in stored:
                left.append(self._replace_objects(stored[name], changes))

        done = erase_records(folder, is_unwanted, also)
        for each in stored.values():
            if each.sealed:
                self._store.forget_local(each)
        return done, [each for each in left if each is not None]

    def _replace(self, stored: StoredFile, changes: Mapping[int, bytes]) -> str | None:
        path = self._store.path(stored)
        left = None
        if self._store.is_elsewhere and stored.in_store:
            left = self._replace_objects(stored, changes)
            if stored.sealed:
                self._store.forget_local(stored)
        if changes and path.exists():
            replace_bytes(path, changes, being_written=not stored.sealed)
        return left

    def _replace_objects(self, stored: StoredFile, changes: Mapping[int, bytes]) -> str | None:
        """Replace bytes in objects; one that is being merged may get the old bytes, so it is done again."""
        ends = [*stored.parts[1:], stored.committed]
        for start, end in zip(stored.parts or (0,), ends, strict=True):
            key = part_key(stored.key, start) if stored.parts else stored.key
            mine = {at - start: new for at, new in changes.items() if at < end and at + len(new) > start}
            if mine and self._store.replace(key, end - start, mine, partial(self._note, stored)):
                reached("forget-object")
        return f"{stored.key} {NOT_MERGED}" if stored.parts and changes else None

    def _note(self, stored: StoredFile, digest: str) -> None:
        """First: whoever repeats it finds nothing to replace once the object is written."""
        if not stored.parts:
            note_rewritten(self._session, stored, digest)

    def _folders(self, kind: str) -> list[Path]:
        folders = (self._data / kind, self._store.folder(kind))
        return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def _segment(extent: Extent) -> int:
    return extent.segment


def _merged(frames: dict[int, FramePlace], extents: Sequence[Extent]) -> Iterator[Extent]:
    """Yield where documents stand that were merged."""
    for extent in extents:
        place, skip, left = extent.frame, extent.start, extent.length
        while left > 0:
            part = frames[place]
            size = min(left, part.length - skip)
            yield Extent(part.segment, 0, part.start + skip, size)
            left, place, skip = left - size, part.next_frame, 0

"""Merges segments: their frames become one, in which what graphs have in common is stored once.

The new file is durable before one transaction says where the frames are now; old files are removed after it.
A killed process leaves either form. Bytes stay what they are, so every answer does.
"""

import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import zstandard

from tamias.archive.file_store import FileStore
from tamias.archive.stored_files import StoredFile, find_segment, new_segment
from tamias.database.columns import Longs
from tamias.database.connect import Cursor, Session
from tamias.database.disk import write_errors
from tamias.database.sql import statements
from tamias.features.repack.recode import Recoded
from tamias.model.capture import Extent, FramePlace
from tamias.model.faults import reached
from tamias.sinks.segments.segment_files import FRAME_BYTES, MOST_MERGED, unpacked_frame

GROWTH = 0.25
"""Of the bytes of the last merged segment: so many new ones are worth compressing it again."""
LEAST_GAIN = 0.4
"""Of the bytes so far, of as much as one frame holds: reading a small document becomes slower."""
_FULL = MOST_MERGED * 3 // 4
_LEVEL, _FAST_LEVEL = 19, 6
"""As for bodies: real histories are a fifth smaller than at level 12; and that of a merge others wait for."""
_FAST_WRITER = -1
"""The worker of segments that were merged fast: a repack merges them anew."""
_log = logging.getLogger(__name__)
_SQL = statements("tamias.features.repack", "segments.sql")


class MergeRefused(Exception):
    """Raised when a segment was merged or erased in meanwhile; nothing has changed."""


class _SegmentFrames(msgspec.Struct):
    """A segment to be merged, and its frames: where each stands, how long it is plain, where the next is."""

    stored: StoredFile
    is_merged: bool
    frames: list[tuple[int, int, int]]

    @property
    def plain(self) -> int:
        return sum(length for _, length, _ in self.frames)


class _SegmentMerge:
    """New segments in the making, and the rows that will say what stands in them."""

    def __init__(self, session: Session, store: FileStore, folder: Path, *, fast: bool) -> None:
        self._fast = fast
        self._session = session
        self._store = store
        self._folder = folder
        self.sources: list[_SegmentFrames] = []
        self.made: list[tuple[StoredFile, Path]] = []
        self.rows: list[tuple[int, int, FramePlace]] = []
        self._plain = bytearray()
        self._open: StoredFile | None = None

    @property
    def plain(self) -> int:
        return sum(each.plain for each in self.sources)

    def has_grown(self, share: float) -> bool:
        """Return whether there are new segments, of that share of what was merged before."""
        old = sum(each.plain for each in self.sources if each.is_merged)
        return self.plain - old > share * old

    @property
    def is_first(self) -> bool:
        return not any(each.is_merged or each.stored.worker == _FAST_WRITER for each in self.sources)

    @property
    def after(self) -> int:
        return sum(stored.committed for stored, _ in self.made)

    def add(self, source: _SegmentFrames) -> None:
        """Take all frames of a segment. A document that goes on in the next frame stays in one piece."""
        self.sources.append(source)
        with self._store.open(source.stored) as file:
            for run in _runs(source.frames):
                if self._plain and len(self._plain) + sum(length for _, length, _ in run) > MOST_MERGED:
                    self.close_file()
                self._take(source, file, run)

    def _take(self, source: _SegmentFrames, file: BinaryIO, run: list[tuple[int, int, int]]) -> None:
        writer = _FAST_WRITER if self._fast else 0
        self._open = self._open or new_segment(self._session, writer, in_store=self._store.in_store)
        assert self._open.segment is not None
        assert source.stored.segment is not None
        for place, length, next_frame in run:
            file.seek(place)
            there = FramePlace(self._open.segment, len(self._plain), length, next_frame)
            self.rows.append((source.stored.segment, place, there))
            self._plain += unpacked_frame(file)[0]

    def close_file(self) -> None:
        """Write what was taken to a file of its own."""
        if self._open is not None:
            path = write_frame(self._folder, bytes(self._plain), _FAST_LEVEL if self._fast else _LEVEL)
            self.made.append((msgspec.structs.replace(self._open, committed=path.stat().st_size), path))
        self._plain, self._open = bytearray(), None


def merge_segments(
    session: Session,
    store: FileStore,
    *,
    before: int,
    is_over: Callable[[], bool],
    growth: float,
    fast: bool = False,
) -> Iterator[Recoded]:
    """Merge the segments that were begun before a time; one result for each transaction.

    A last one that is not full is merged again with what comes, when that is a share of it: `growth`.
    A `fast` merge leaves less than a frame as it is.
    """
    remove_merged(session, store)
    forgotten, under_way = _forgotten(session)
    if under_way:
        return  # it is finished first: nothing of it may be copied
    candidates = _candidates(session, store, before, _FAST_WRITER if fast else 0)
    with tempfile.TemporaryDirectory(dir=store.folder("spool")) as folder:
        merge = _SegmentMerge(session, store, Path(folder), fast=fast)
        for each in _readable(store, _last_and_new(candidates)):
            if merge.plain + each.plain > MOST_MERGED and merge.has_grown(0.0):
                yield _finish(session, store, merge, forgotten)
                merge = _SegmentMerge(session, store, Path(folder), fast=fast)
                if is_over():
                    break
            merge.add(each)
        if merge.has_grown(growth) and not (fast and merge.plain < FRAME_BYTES):
            yield _finish(session, store, merge, forgotten)
    if not store.is_elsewhere:  # there a reader opens a file piece by piece: the next run removes them
        remove_merged(session, store)


def _last_and_new(candidates: Sequence[_SegmentFrames]) -> list[_SegmentFrames]:
    last = [each for each in candidates if each.is_merged and each.plain < _FULL][-1:]
    return [*last, *(each for each in candidates if not each.is_merged)]


def seal_left(session: Session, workers: Sequence[int]) -> None:
    """Seal the segments of all but some workers: those of others that ended were left open once."""
    session.execute(_SQL["seal_left"], {"workers": list(workers)})


def rewrite_merged(session: Session, store: FileStore, extents: Sequence[Extent]) -> None:
    """Blank out documents of a merged segment, in a file that takes its place. Raises `MergeRefused`."""
    stored = find_segment(session, extents[0].segment)
    assert stored is not None
    with store.open(stored) as file:
        plain = bytearray(unpacked_frame(file)[0])
    before = bytes(plain)
    for each in extents:
        plain[each.start : each.start + each.length] = b"\n" * each.length
    if plain == before:
        return
    fresh = new_segment(session, 0, in_store=store.in_store)
    assert fresh.segment is not None
    with tempfile.TemporaryDirectory(dir=store.folder("spool")) as folder:
        path = write_frame(Path(folder), bytes(plain))
        fresh = msgspec.structs.replace(fresh, committed=path.stat().st_size)
        store.add(fresh, path)
    place = FramePlace(fresh.segment or 0, 0, len(plain), stored.committed)
    session.transact(
        lambda cursor: _switch(cursor, [extents[0].segment], [fresh], [(extents[0].segment, 0, place)])
    )
    remove_merged(session, store)


def remove_merged(session: Session, store: FileStore) -> None:
    """Remove the files of segments whose frames are in others. May be done twice."""
    for name, in_store, file in session.fetch_all(_SQL["merged_files"]):
        store.remove(StoredFile(file=file, kind="rdf", name=name, in_store=in_store))
        session.execute(_SQL["forget_file"], {"file": file})


def write_frame(folder: Path, plain: bytes, level: int = _LEVEL) -> Path:
    """Write a file of one frame."""
    options = zstandard.ZstdCompressionParameters.from_level(
        level, source_size=len(plain), window_log=max(10, len(plain).bit_length()), enable_ldm=True,
        write_checksum=True,
    )  # fmt: skip
    descriptor, name = tempfile.mkstemp(dir=folder)
    with os.fdopen(descriptor, "wb") as file, write_errors(folder):
        file.write(zstandard.ZstdCompressor(compression_params=options).compress(plain))
    return Path(name)


def _candidates(session: Session, store: FileStore, before: int, writer: int) -> list[_SegmentFrames]:
    """Return segments in the order of time; merged are those that this writer, or a repack, has merged."""
    rows = session.fetch_all(_SQL["candidates"], {"before": before << 21, "in_store": store.in_store})
    found = [(StoredFile(*(*row, tuple(parts))), plain) for *row, parts, plain in rows]
    return [
        _SegmentFrames(
            stored, plain is not None and stored.worker >= writer, [(0, plain or 0, stored.committed)]
        )
        for stored, plain in found
    ]


def _readable(store: FileStore, sources: Iterable[_SegmentFrames]) -> Iterator[_SegmentFrames]:
    """Yield those that can be read to their end, with their frames. A damage is the business of check."""
    for each in sources:
        try:
            with store.open(each.stored) as file:
                each.frames = list(_frames(file, each.stored.committed))
        except (OSError, EOFError, zstandard.ZstdError) as error:
            _log.warning("not merged: %s (%s)", each.stored.key, error)
            continue
        if each.is_merged or max(map(_plain, _runs(each.frames)), default=0) <= MOST_MERGED:
            yield each


def _frames(file: BinaryIO, committed: int) -> Iterator[tuple[int, int, int]]:
    place = 0
    while place < committed:
        file.seek(place)
        frame, behind = unpacked_frame(file)
        yield place, len(frame), behind
        place = behind


def _runs(frames: Sequence[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Frames that belong together: a document goes on behind one only if that is full."""
    run: list[tuple[int, int, int]] = []
    for each in frames:
        run.append(each)
        if each[1] != FRAME_BYTES:
            yield run
            run = []
    if run:
        yield run


def _plain(run: Sequence[tuple[int, int, int]]) -> int:
    return sum(length for _, length, _ in run)


def _finish(session: Session, store: FileStore, merge: _SegmentMerge, forgotten: int) -> Recoded:
    """Switch to the new files, or note that the segments stay as they are."""
    merge.close_file()
    sources = [each.stored.segment or 0 for each in merge.sources]
    before = sum(each.stored.committed for each in merge.sources)
    if merge.is_first and merge.plain > _FULL and merge.after > (1 - LEAST_GAIN) * before:
        new = Longs(each.stored.segment for each in merge.sources if not each.is_merged)
        session.execute(_SQL["stay"], {"segment": new})
        return Recoded()
    for stored, path in merge.made:
        store.add(stored, path)
    reached("segments-merged")

    def switch(cursor: Cursor) -> None:
        if cursor.execute(_SQL["forgotten"].text).fetchone() != (forgotten, 0):
            raise MergeRefused("statements were forgotten meanwhile")
        _switch(cursor, sources, [stored for stored, _ in merge.made], merge.rows)

    try:
        session.transact(switch)
    except MergeRefused as error:
        for stored, _ in merge.made:
            store.remove(stored)
        _log.warning("segments are merged later: %s", error)
        return Recoded()
    reached("merge-committed")
    return Recoded(len(sources), before, merge.after)


def _forgotten(session: Session) -> tuple[int, int]:
    row = session.fetch_one(_SQL["forgotten"])
    assert row is not None
    return int(row[0]), int(row[1])


def _switch(
    cursor: Cursor,
    sources: Sequence[int],
    made: Sequence[StoredFile],
    rows: Sequence[tuple[int, int, FramePlace]],
) -> None:
    """Switch all rows or none. A merged segment may be a source: what is in it is then in the new one."""
    if len(cursor.execute(_SQL["hold"].text, {"segment": Longs(sources)}).fetchall()) < len(sources):
        raise MergeRefused("one of the segments was merged meanwhile")
    for each in made:
        values = {"file": each.file, "committed": each.committed}
        if cursor.execute(_SQL["commit_merged"].text, values).rowcount != 1:
            raise MergeRefused("the new segment was taken for one that somebody left")
    places = [place for _, _, place in rows]
    columns = {
        "segment": Longs(segment for segment, _, _ in rows),
        "frame": Longs(frame for _, frame, _ in rows),
        "into": Longs(place.segment for place in places),
        "start": Longs(place.start for place in places),
        "length": Longs(place.length for place in places),
        "next_frame": Longs(place.next_frame for place in places),
    }
    cursor.execute(_SQL["move_on"].text, columns)
    cursor.execute(_SQL["add_frames"].text, columns)

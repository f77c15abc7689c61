"""Files of quads and WARC files as rows: how much of each is durable, and where it is.

To read such a file wherever it is, find its row and let the store open it:

    store = file_store(session, data)                    # tamias.archive.file_store
    stored = find_segment(session, extent.segment)       # or one of files_of(session, "warc"), by its name
    with store.open(stored) as file:
        file.seek(offset)
        record = file.read(length)

A WARC file has a row since it was first committed; those of earlier versions have none and stand in
`DATA/warc`. What a row names up to `committed` can be read for ever, also while the worker goes on writing.
Rows that refer to a file name it by `file`, or by `name`, which never changes.
"""

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Literal
from uuid import UUID

import msgspec

from tamias.database.citus import is_citus
from tamias.database.columns import Bools, Kinds, Longs, Texts, Uuids, columns
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.model.capture import FramePlace, SegmentMerged, new_capture_id
from tamias.model.errors import TamiasError

_MOST_KNOWN = 10_000


class TakenForDead(TamiasError):
    """Raised when another worker has ended the files of this one."""


FileKind = Literal["rdf", "warc", "harvests", "captures"]


class StoredFile(msgspec.Struct):
    """A file, and what of it is durable."""

    file: UUID
    """Its id, of version 7: names sort by the time when files were begun."""
    kind: FileKind
    name: str
    segment: int | None = None
    """What captures call it, if it holds quads."""
    worker: int = 0
    committed: int = 0
    sealed: bool = False
    in_store: bool = False
    parts: tuple[int, ...] = ()
    """Where each object of it starts, while it is not one object."""

    @property
    def key(self) -> str:
        """Return its place in a data directory or a store."""
        return f"{self.kind}/{self.name}"


_WRITTEN: Kinds = {
    "file": Uuids, "kind": Texts, "name": Texts, "segment": Longs, "worker": Longs, "committed": Longs,
    "sealed": Bools, "in_store": Bools, "parts": Texts,
}  # fmt: skip
_COLUMNS = ", ".join(f"stored_file.{each}" for each in StoredFile.__struct_fields__)
_SQL = statements("tamias.archive", "stored_files.sql", columns=_COLUMNS)


def new_segment(session: Session, worker: int, *, in_store: bool = False) -> StoredFile:
    """A fresh file of quads for a worker to write to."""
    now = session.now()
    file = new_capture_id(now)
    # Milliseconds and 21 random bits, from the worker itself: in rows of captures half as long as the id.
    segment = now << 21 | int.from_bytes(os.urandom(3), "big") >> 3
    made = StoredFile(
        file=file, kind="rdf", name=f"{file}.nq.zst", segment=segment, worker=worker, in_store=in_store
    )
    values = {name: getattr(made, name) for name in ("file", "kind", "name", "segment", "worker", "in_store")}
    session.execute(_SQL["new_file"], values)
    return made


def warc_file(name: str, worker: int, *, in_store: bool = False) -> StoredFile:
    """A WARC file that is being written; its row is written with the first commit that relies on it."""
    file = UUID(name.removesuffix(".warc.gz")[-36:])
    return StoredFile(file=file, kind="warc", name=name, worker=worker, in_store=in_store)


def commit_files(cursor: Cursor, news: Sequence[StoredFile]) -> None:
    """Writes durable lengths, inside the transaction of what relies on them."""
    latest: dict[UUID, StoredFile] = {}
    for each in news:
        known = latest.get(each.file)
        if known is None or (each.committed, each.sealed) >= (known.committed, known.sealed):
            latest[each.file] = each
    if not latest:
        return
    files = list(latest.values())
    rows = [(*msgspec.structs.astuple(each)[:-1], ",".join(map(str, each.parts))) for each in files]
    written = columns(_WRITTEN, rows)
    cursor.execute(_SQL["commit_files"].text, written)
    if cursor.rowcount < len(files):
        ended = cursor.execute(_SQL["sealed_before"].text, written).fetchall()
        if ended:
            raise TakenForDead(
                f"{ended[0][0]} was sealed by another worker, to which this one seemed dead; this one ends, "
                "and what it could not commit is visited again"
            )


def find_segment(session: Session, segment: int) -> StoredFile | None:
    """The file that captures call by a number. Raises `SegmentMerged`."""
    if merged := session.fetch_all(_SQL["merged_frames"], {"segment": segment}):
        raise SegmentMerged({frame: FramePlace(*place) for frame, *place in merged})
    return next(iter(_found(session, "by_segment", segment=segment)), None)


def segment_keys(session: Session, segment: int) -> list[str]:
    """Return the files that the frames of a segment are in."""
    try:
        found = [find_segment(session, segment)]
    except SegmentMerged as merged:
        found = [find_segment(session, into) for into in {each.segment for each in merged.frames.values()}]
    return [stored.key for stored in found if stored is not None]


def find_warc(session: Session, name: str) -> StoredFile:
    """A WARC file by its name; one of an earlier version has no row, and is in the data directory."""
    found = next(iter(_found(session, "by_name", name=name)), None)
    return found or StoredFile(file=UUID(int=0), kind="warc", name=name)


def files_of(session: Session, kind: FileKind) -> list[StoredFile]:
    """Return all files of a kind that hold something, in the order of their names."""
    return _found(session, "of_kind", kind=kind)


def left_open(session: Session, workers: Sequence[int]) -> list[StoredFile]:
    """Return what these workers left unsealed."""
    return _found(session, "left_open", workers=list(workers))


def seal_file(session: Session, stored: StoredFile) -> None:
    """Seal a file: nothing will be added to it."""
    session.execute(_SQL["seal_file"], {"file": stored.file})


def files_in_parts(
    session: Session, worker: int, dead: Sequence[int], begun_before: int, limit: int
) -> list[StoredFile]:
    """Files to be merged: those that a worker has sealed, those of dead ones, those begun before a time."""
    if dead:
        session.execute(_SQL["seal_left"], {"workers": list(dead)})
    before = UUID(int=max(0, begun_before) << 80)
    return _found(session, "in_parts", workers=[worker, *dead], before=before, limit=limit)


def dead_writers(session: Session, worker: int) -> list[int]:
    """Return workers that left files in parts and are not connected now; none on a cluster."""
    if session.transact(is_citus):
        return []
    return [number for (number,) in session.fetch_all(_SQL["dead_writers"], {"worker": worker})]


def note_merged(session: Session, stored: StoredFile, sha256: str) -> bool:
    """A file is one object from now on; False if it has grown since, or is one already."""
    values = {"file": stored.file, "committed": stored.committed, "sha256": bytes.fromhex(sha256)}
    return session.execute(_SQL["note_merged"], values) > 0


def note_rewritten(session: Session, stored: StoredFile, sha256: str) -> None:
    """Bytes of the one object of a file are replaced."""
    session.execute(_SQL["note_rewritten"], {"file": stored.file, "sha256": bytes.fromhex(sha256)})


def segment_figures(cursor: Cursor) -> tuple[int, int]:
    """The files of quads: how many, how large."""
    row = cursor.execute(_SQL["segment_figures"].text).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def segment_opener(
    find: Callable[[int], StoredFile | None], open_file: Callable[[StoredFile], BinaryIO]
) -> Callable[[int], BinaryIO]:
    """Opens files of quads by the numbers that captures have; `OSError` if there is none.

    `find` is `find_segment` of a session, `open_file` that of the archive's store. Rows of files on this
    machine are asked for once, and again when the file was merged into another meanwhile.
    """
    known: dict[int, StoredFile] = {}

    def open_segment(segment: int) -> BinaryIO:
        if (stored := known.pop(segment, None)) is not None:
            with suppress(FileNotFoundError):
                file = open_file(stored)
                known[segment] = stored
                return file
        stored = find(segment)
        if stored is None:
            raise FileNotFoundError(errno.ENOENT, "no row names it")
        if not stored.in_store:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[segment] = stored
        return open_file(stored)

    return open_segment


def _found(session: Session, statement: str, **values: Any) -> list[StoredFile]:
    rows = session.fetch_all(_SQL[statement], values)
    return [StoredFile(*(*row[:-1], tuple(row[-1]))) for row in rows]

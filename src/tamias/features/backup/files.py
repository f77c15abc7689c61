"""The bytes that the rows of a snapshot name: what is new of each file is added to its copy."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from tamias.archive.blobs.store import elsewhere
from tamias.database.connect import Cursor, Session
from tamias.database.disk import write_errors, write_hashed
from tamias.database.sql import statements
from tamias.features.backup.folder import BackupDamaged, BackupFolder, SavedFile, open_file
from tamias.plugins import parts_of_all

_SQL = statements("tamias.features.backup", "backup.sql")
_PIECE = 4 << 20


class Needed(msgspec.Struct, frozen=True):
    """A file of the data directory, how much of it the rows rely on, and where it is just now."""

    path: str
    length: int
    source: Path


class FileGone(Exception):
    """A pack that the rows name is gone or was cut meanwhile: what it held stands elsewhere by now."""


class _TooShort(Exception):
    """A file ends before the bytes that are asked for."""


def needed(cursor: Cursor, session: Session, data: Path) -> tuple[list[Needed], str | None]:
    """Return what must be copied, and where the bodies are if not in the data directory."""
    found = cursor.execute(_SQL["files"].text).fetchall()
    stored = {name for (name,) in cursor.execute(_SQL["stored_warcs"].text).fetchall()}
    store = elsewhere(session)
    if store is None:
        found += [
            (f"blobs/{pack}.pack", length) for pack, length in cursor.execute(_SQL["packs"].text).fetchall()
        ]
    wanted = [Needed(name, length, data / name) for name, length in found]
    return wanted + [Needed(*file) for find in parts_of_all("files") for file in find(data, stored)], store


def save_file(place: BackupFolder, file: Needed, known: dict[str, SavedFile]) -> tuple[SavedFile, int]:
    """Adds what the copy lacks; returns what is saved and how many bytes were new.

    The copy never becomes shorter: a repack moves bodies out of packs, and earlier snapshots need them there.
    """
    before = known.get(file.path)
    copy = place.file(file.path)
    there = copy.stat().st_size if copy.is_file() else 0
    start = min(there, before.length, file.length) if before is not None else 0
    if before is not None and start == file.length:
        return (before if before.length == start else _saved(file, copy)), 0
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.source.open("rb") as given, write_errors(copy):
            _write(given, copy, start, file.length)
    except FileNotFoundError:
        raise FileGone(file.path) from None
    except _TooShort:
        if file.path.startswith("blobs/"):
            raise FileGone(file.path) from None
        raise BackupDamaged(
            f"{file.source} ends before byte {file.length}; 'tamias check' says more"
        ) from None
    return _saved(file, copy), file.length - start


def _saved(file: Needed, copy: Path) -> SavedFile:
    return SavedFile(file.path, file.length, digest(copy, file.length))


def restore_file(place: BackupFolder, data: Path, file: SavedFile) -> None:
    """Writes a file into an empty data directory, as it was at the time of the snapshot."""
    copy, target = place.file(file.path), data / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open_file(copy) as given:
            _write(given, target, 0, file.length)
    except _TooShort:
        raise BackupDamaged(f"{copy} is damaged: it ends before byte {file.length}") from None
    if digest(target, file.length) != file.sha256:
        raise BackupDamaged(f"{copy} is damaged: its first {file.length} bytes are not those that were saved")


def digest(path: Path, length: int) -> str:
    """The SHA-256 of a file's first bytes; of fewer, when it is shorter."""
    with path.open("rb") as file:
        return write_hashed(_pieces(file.fileno(), 0, length), len)[1]


def _write(given: BinaryIO, target: Path, start: int, end: int) -> None:
    """Writes this part of a file at its place in another; what that has beyond it stays."""
    target.touch()
    with target.open("r+b") as written:
        written.seek(start)
        for piece in _pieces(given.fileno(), start, end):
            written.write(piece)
        if written.tell() < end:
            raise _TooShort
        written.flush()
        os.fsync(written.fileno())


def _pieces(file: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (piece := os.pread(file, min(_PIECE, end - start), start)):
        yield piece
        start += len(piece)

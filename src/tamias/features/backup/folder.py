"""The layout of a backup: `snapshots/TIME/snapshot.json` beside the rows, the bytes in `files/`.

The bytes of a file never change, so one copy serves every snapshot, each of which says how much it needs.
"""

import os
import re
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG

import msgspec

from tamias.model.errors import TamiasError

FORMAT = 1
MOST_BYTES = 1 << 30
"""Of `snapshot.json`: a line for each file of some ten million."""
_NAME = re.compile(r"\d{8}T\d{6}Z")
_FILE = re.compile(r"(blobs|rdf|warc|captures)/[\w-][\w.-]*")
_MOST_BUCKETS = 1 << 15


class SavedTable(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one table, as PostgreSQL's COPY writes them, compressed with zstd."""

    name: str
    columns: tuple[str, ...]
    rows: int
    sha256: str
    """Of the compressed file."""


class SavedSequence(msgspec.Struct, frozen=True):
    """The next number of a column that counts."""

    table: str
    column: str
    last: int


class SavedFile(msgspec.Struct, frozen=True):
    """A file under the data directory, as far as the snapshot needs it."""

    path: str
    length: int
    sha256: str


_SAVED = msgspec.json.Decoder(SavedFile)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of an archive at one moment."""

    format: int
    taken_at: str
    schema: int
    buckets: int
    blobs: str | None
    """Where the bodies are if not among the files, such as in an S3 store."""
    tables: tuple[SavedTable, ...]
    sequences: tuple[SavedSequence, ...]
    files: tuple[SavedFile, ...]

    @property
    def bytes(self) -> int:
        """Return all that is restored beside the rows."""
        return sum(file.length for file in self.files)


class BackupDamaged(TamiasError):
    """A backup that lacks something, or whose bytes are not those that were written."""


class BackupFolder:
    """The folder of a backup."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, path: str) -> Path:
        """Return where a file of the data directory is kept."""
        return self.folder / "files" / path

    def snapshot(self, name: str) -> Path:
        """The folder of one snapshot."""
        return self.folder / "snapshots" / name

    @property
    def part(self) -> Path:
        """The folder of a snapshot that is not complete."""
        return self.folder / "snapshots" / "part"

    @property
    def _notes(self) -> Path:
        return self.folder / "snapshots" / "copied.jsonl"

    def note_file(self, file: SavedFile) -> None:
        """A file was copied: should this backup be cut off, the next one need not copy it again."""
        with self._notes.open("ab") as notes:
            notes.write(msgspec.json.encode(file) + b"\n")
            notes.flush()
            os.fsync(notes.fileno())

    def forget_notes(self) -> None:
        """The snapshot is complete, and says itself what is saved."""
        self._notes.unlink(missing_ok=True)

    def known_files(self) -> dict[str, SavedFile]:
        """Return the files of the newest snapshot, and those that an interrupted backup has copied since."""
        known = {file.path: file for file in self.read()[1].files} if self.names() else {}
        if self._notes.is_file():
            with self._notes.open("rb") as notes:
                whole = [line for line in notes if line.endswith(b"\n")]
            known |= {file.path: file for file in map(_SAVED.decode, whole)}
        return known

    def names(self) -> list[str]:
        """The complete snapshots, oldest first."""
        folder = self.folder / "snapshots"
        found = os.listdir(folder) if folder.is_dir() else []
        return sorted(name for name in found if _NAME.fullmatch(name))

    def read(self, name: str | None = None) -> tuple[str, Snapshot]:
        """A snapshot, the newest unless named."""
        names = self.names()
        if not names:
            raise BackupDamaged(f"there is no backup in {self.folder}; 'tamias backup FOLDER' creates one")
        chosen = name or names[-1]
        if chosen not in names:
            raise BackupDamaged(f"no snapshot {chosen} in {self.folder}; there are: {', '.join(names)}")
        path = self.snapshot(chosen) / "snapshot.json"
        try:
            with open_file(path) as file:
                snapshot = msgspec.json.decode(file.read(MOST_BYTES), type=Snapshot)
        except (OSError, msgspec.DecodeError, RecursionError) as error:
            raise BackupDamaged(f"{path} cannot be read: {error}; take another snapshot") from error
        if snapshot.format > FORMAT:
            raise BackupDamaged(f"{path} was written by a newer Tamias; upgrade this one")
        refuse_strange((file.path for file in snapshot.files if not _FILE.fullmatch(file.path)), path)
        if not 0 < snapshot.buckets <= _MOST_BUCKETS:
            raise BackupDamaged(f"{path} has {snapshot.buckets} buckets; it is not restored")
        return chosen, snapshot


def open_file(path: Path) -> BufferedReader:
    """Open a file of a backup, which may come from anywhere: no link, pipe or device is followed."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        why = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise BackupDamaged(f"{path} {why}") from None
    opened = os.fdopen(file, "rb")
    if not S_ISREG(os.fstat(file).st_mode):
        opened.close()
        raise BackupDamaged(f"{path} is not a regular file")
    return opened


def refuse_strange(names: Iterable[str], path: Path) -> None:
    """Raise `BackupDamaged` if there are names of what is outside of a data directory."""
    for name in names:
        raise BackupDamaged(f"{path} names {name!r}, which no backup of ours does; it is not restored")

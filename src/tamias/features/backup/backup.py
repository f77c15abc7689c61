"""Takes a snapshot of a live archive, and brings one back.

Rows never name bytes that are not durable yet, so the bytes are copied after the rows were read: what is new
of each file is added to its copy. Rows are saved as of one moment, and loaded by COPY in one transaction.

A backup has `snapshots/TIME/snapshot.json` beside the rows, and the bytes in `files/`. The bytes of a file
never change, so one copy serves every snapshot, each of which says how much it needs.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

import msgspec
import zstandard
from psycopg import sql

from tamias import plugins
from tamias.archive.blobs.collect import recover as recover_packs
from tamias.archive.blobs.store import BORROWED, elsewhere, packs_of
from tamias.archive.file_store import FileStore
from tamias.database.advisory import shared_on_database
from tamias.database.citus import one_table_after_another, without_triggers
from tamias.database.connect import Cursor, Database, Session
from tamias.database.disk import alone, make_data_folder, shared, sync_path, write_errors, write_hashed
from tamias.database.migrate import refuse_other_versions
from tamias.database.sql import statements
from tamias.model.errors import TamiasError, UsageError
from tamias.plugins import parts_of_all

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


_LEVEL = 6
_ROWS_PIECE = 1 << 20
_LONGEST_ROW = 1 << 28


def begin(cursor: Cursor) -> tuple[int, int]:
    """Begin a read of one moment; return the version of the schema and the number of buckets."""
    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    row = cursor.execute("SELECT schema_version, buckets FROM meta").fetchone()
    assert row is not None
    return row[0], row[1]


def save_tables(cursor: Cursor, folder: Path) -> list[SavedTable]:
    """Writes the rows of every table into a file of its own."""
    found = cursor.execute(_SQL["tables"].text).fetchall()
    return [_save(cursor, folder, name, tuple(columns)) for name, columns in found]


def _save(cursor: Cursor, folder: Path, name: str, columns: tuple[str, ...]) -> SavedTable:
    path = folder / f"{name}.copy.zst"
    rows = 0
    with (
        path.open("wb") as file,
        zstandard.ZstdCompressor(level=_LEVEL).stream_writer(file) as packed,
        cursor.copy(_statement("COPY (SELECT {1} FROM {0}) TO STDOUT", name, columns)) as copy,
    ):
        for piece in copy:
            rows += bytes(piece).count(b"\n")
            packed.write(piece)
    return SavedTable(name=name, columns=columns, rows=rows, sha256=_digest(path))


def sequences(cursor: Cursor) -> list[SavedSequence]:
    """Return how far the columns that count have come."""
    counting = cursor.execute(_SQL["counting"].text).fetchall()
    return [SavedSequence(table, column, _last(cursor, sequence)) for table, column, sequence in counting]


def _last(cursor: Cursor, sequence: str) -> int:
    schema, _, name = sequence.partition(".")
    row = cursor.execute(
        sql.SQL("SELECT last_value FROM {}").format(sql.Identifier(schema, name.strip('"')))
    ).fetchone()
    assert row is not None
    return int(row[0])


def load_tables(cursor: Cursor, folder: Path, tables: Sequence[SavedTable]) -> int:
    """Replaces all rows by those that were saved; returns how many. Nobody is told of them."""
    known = {name for name, _ in cursor.execute(_SQL["tables"].text).fetchall()}
    refuse_strange((table.name for table in tables if table.name not in known), folder)
    for table in tables:
        if _digest(folder / f"{table.name}.copy.zst") != table.sha256:
            raise BackupDamaged(f"the rows of {table.name} in {folder} are not those that were saved")
    names = [table.name for table in tables]
    cursor.execute(sql.SQL("TRUNCATE {} CASCADE").format(sql.SQL(", ").join(map(sql.Identifier, names))))
    with without_triggers(cursor, names):
        for table in tables:
            _load_rows(cursor, folder, table)
    refuse_strange((name for (name,) in cursor.execute(_SQL["strange_files"].text)), folder)
    return sum(table.rows for table in tables)


def _load_rows(cursor: Cursor, folder: Path, table: SavedTable) -> None:
    with cursor.copy(_statement("COPY {} ({}) FROM STDIN", table.name, table.columns)) as copy:
        line = 0
        for piece in _unpacked(folder / f"{table.name}.copy.zst"):
            line = line + len(piece) if b"\n" not in piece else 0
            if line > _LONGEST_ROW:
                raise BackupDamaged(f"{table.name} in {folder} has a row of more than {_LONGEST_ROW} bytes")
            copy.write(piece)
    if cursor.rowcount != table.rows:
        raise BackupDamaged(f"{table.name} has {cursor.rowcount} rows instead of {table.rows}")


def load_sequences(cursor: Cursor, saved: Sequence[SavedSequence]) -> None:
    """Columns that count go on from where they were."""
    for each in saved:
        place = {"table": f"tamias.{each.table}", "column": each.column, "last": each.last}
        cursor.execute(_SQL["go_on_counting"].text, place)


def _statement(text: str, name: str, columns: Sequence[str]) -> sql.Composed:
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    return sql.SQL(text).format(sql.Identifier(name), listed)


def _digest(path: Path) -> str:
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unpacked(path: Path) -> Iterator[bytes]:
    with open_file(path) as file:
        yield from zstandard.ZstdDecompressor().read_to_iter(
            file, read_size=_ROWS_PIECE, write_size=_ROWS_PIECE
        )


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


_SQL = statements("tamias.features.backup", "backup.sql")
_TRIES = 3


class Taken(msgspec.Struct, frozen=True):
    """The result of a backup."""

    name: str
    rows: int
    files: int
    bytes: int
    new_bytes: int
    blobs: str | None


def take(database: Database, data: Path, folder: Path) -> Taken:
    """Takes a snapshot into a folder, beside earlier ones; it is there when it is complete, or not at all."""
    place = BackupFolder(folder)
    with write_errors(f"a backup to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    with (
        alone(folder / "backup.lock", 0.0),
        shared(data / "packs.lock"),  # a repack removes none meanwhile
        closing(database.session()) as session,
        closing(database.session()) as other,
        closing(database.session()) as lock,
        shared_on_database(lock, "packs"),
    ):
        for attempt in range(_TRIES):
            try:
                rows = session.transact(partial(_save_rows, session=other, data=data, place=place))
                return _save_files(*rows, place)
            except FileGone as gone:
                # A pack was rewritten while we copied; the next snapshot knows where its bodies went.
                if attempt == _TRIES - 1:
                    raise TamiasError(f"{data}/{gone} is gone or cut; 'tamias check' says more") from gone
    raise AssertionError


def _save_rows(
    cursor: Cursor, session: Session, data: Path, place: BackupFolder
) -> tuple[Snapshot, list[Needed]]:
    """Save the rows in one transaction, for a finished page and its links may be in different buckets.

    Return the files that they need, too.
    """
    schema, buckets = begin(cursor)
    name = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    shutil.rmtree(place.part, ignore_errors=True)
    (place.part / "tables").mkdir(parents=True)
    tables = save_tables(cursor, place.part / "tables")
    wanted, outside = needed(cursor, session, data)
    snapshot = Snapshot(
        format=FORMAT,
        taken_at=name,
        schema=schema,
        buckets=buckets,
        blobs=outside,
        tables=tuple(tables),
        sequences=tuple(sequences(cursor)),
        files=(),
    )
    return snapshot, wanted


def _save_files(rows: Snapshot, wanted: list[Needed], place: BackupFolder) -> Taken:
    """Save the files after the transaction, which would keep the database from cleaning up meanwhile."""
    known = place.known_files()
    saved = []
    for each in wanted:
        saved.append(save_file(place, each, known))
        if saved[-1][1]:
            place.note_file(saved[-1][0])
    snapshot = msgspec.structs.replace(rows, files=tuple(file for file, _ in saved))
    (place.part / "snapshot.json").write_bytes(msgspec.json.format(msgspec.json.encode(snapshot)))
    _put_in_place(place.part, place.snapshot(snapshot.taken_at))
    place.forget_notes()
    number = sum(table.rows for table in snapshot.tables)
    new = sum(new for _, new in saved)
    return Taken(snapshot.taken_at, number, len(saved), snapshot.bytes, new, snapshot.blobs)


def _put_in_place(part: Path, final: Path) -> None:
    for path in (*part.rglob("*"), part):
        sync_path(path)
    if final.exists():  # a second one within a second
        shutil.rmtree(final)
    part.rename(final)
    sync_path(final.parent)


def restore_snapshot(
    folder: Path, name: str | None, data: Path, db: str | None, *, take_over: bool = False
) -> tuple[str, Snapshot]:
    """Brings a snapshot back into a data directory, and a database, that hold nothing.

    Bodies in a store elsewhere stay another archive's, and are never removed, unless we `take_over`.
    """
    place = BackupFolder(folder)
    chosen, snapshot = place.read(name)
    refuse_other_versions(snapshot.schema)
    if data.is_dir() and any(data.iterdir()):
        raise UsageError(f"{data} is not empty; name a --data that does not exist yet")
    make_data_folder(data)
    for file in snapshot.files:
        restore_file(place, data, file)
    made = Database(data, db, buckets=snapshot.buckets, upto=snapshot.schema)
    with closing(made), closing(made.session()) as session:
        session.transact(
            partial(_load, place=place, name=chosen, snapshot=snapshot, db=db, take_over=take_over)
        )
    with closing(Database(data, db)) as database, closing(database.session()) as session:
        if take_over or not snapshot.blobs:
            recover_packs(packs_of(session, data), session)
        session.execute(_SQL["seal_files"])
        for complete in plugins.load_all("restores").values():
            complete(session)
    for complete in plugins.load_all("recoveries").values():
        complete(FileStore(data), None)
    return chosen, snapshot


def _load(
    cursor: Cursor, place: BackupFolder, name: str, snapshot: Snapshot, db: str | None, *, take_over: bool
) -> None:
    one_table_after_another(cursor)
    if cursor.execute("SELECT FROM capture LIMIT 1").fetchone() or _has_urls(cursor, snapshot.buckets):
        raise UsageError(f"the database {'named by --db' if db else 'in --data'} holds data already")
    # A cluster that was initialised first has a number of its own.
    cursor.execute("UPDATE meta SET buckets = %s", [snapshot.buckets])
    load_tables(cursor, place.snapshot(name) / "tables", snapshot.tables)
    load_sequences(cursor, snapshot.sequences)
    if snapshot.blobs:
        _settle_owner(cursor, take_over=take_over)
    cursor.execute(_SQL["forget_again"].text)
    for bucket in range(snapshot.buckets):
        cursor.execute(_SQL["end_leases"].text, {"bucket": bucket})


def _settle_owner(cursor: Cursor, *, take_over: bool) -> None:
    """Settle who owns a store elsewhere; the living archive may have filled what rows do not name."""
    used = [pack for pack, _ in cursor.execute(_SQL["packs"].text).fetchall()]
    cursor.execute(_SQL["forget_packs"].text, {"used": used})
    cursor.execute(_SQL["own_store" if take_over else "borrow_store"].text, {"name": BORROWED})


def _has_urls(cursor: Cursor, buckets: int) -> bool:
    query = b"SELECT FROM url WHERE url.bucket = %(bucket)b::int2 LIMIT 1"
    return any(cursor.execute(query, {"bucket": bucket}).fetchone() for bucket in range(buckets))

"""Takes a snapshot of a live archive, and brings one back.

Rows never name bytes that are not durable yet, so the bytes are copied after the rows were read.
"""

import shutil
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from tamias import plugins
from tamias.archive.blobs.collect import recover as recover_packs
from tamias.archive.blobs.store import BORROWED, packs_of
from tamias.archive.file_store import FileStore
from tamias.database.advisory import shared_on_database
from tamias.database.citus import one_table_after_another
from tamias.database.connect import Cursor, Database, Session
from tamias.database.disk import make_data_folder, sync_path, write_errors
from tamias.database.locks import alone, shared
from tamias.database.migrate import refuse_other_versions
from tamias.database.sql import statements
from tamias.features.backup.files import FileGone, Needed, needed, restore_file, save_file
from tamias.features.backup.folder import FORMAT, BackupFolder, Snapshot
from tamias.features.backup.tables import begin, load_sequences, load_tables, save_tables, sequences
from tamias.model.errors import TamiasError, UsageError

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
    wanted, elsewhere = needed(cursor, session, data)
    snapshot = Snapshot(
        format=FORMAT,
        taken_at=name,
        schema=schema,
        buckets=buckets,
        blobs=elsewhere,
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

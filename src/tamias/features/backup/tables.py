"""The rows as of one moment, saved and loaded by COPY in one transaction."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import zstandard
from psycopg import sql

from tamias.database.citus import without_triggers
from tamias.database.connect import Cursor
from tamias.database.sql import statements
from tamias.features.backup.folder import BackupDamaged, SavedSequence, SavedTable, open_file, refuse_strange

_SQL = statements("tamias.features.backup", "backup.sql")
_LEVEL = 6
_PIECE = 1 << 20
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
            _load(cursor, folder, table)
    refuse_strange((name for (name,) in cursor.execute(_SQL["strange_files"].text)), folder)
    return sum(table.rows for table in tables)


def _load(cursor: Cursor, folder: Path, table: SavedTable) -> None:
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
        yield from zstandard.ZstdDecompressor().read_to_iter(file, read_size=_PIECE, write_size=_PIECE)

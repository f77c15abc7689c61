"""Copies all data into a new database with another number of buckets: piece by piece, counted afterwards.

Tables are taken as they are found, so one that a migration adds is copied too. A piece is a table, or a
part of the rows of a bucket. It is noted in the transaction that copies it: a copy that was cut off goes on
with the next. Until the end the table of these notes is there, and nothing else opens the database.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, LiteralString

import msgspec
from psycopg import sql

from tamias.database.citus import one_table_after_another, without_triggers
from tamias.database.connect import Cursor, Database, Session
from tamias.database.migrate import UNFINISHED
from tamias.model.errors import DatabaseError, UsageError

PIECES = 16
"""Into so many at least a large table is divided."""
RECOUNTED = ("attempts",)
"""Made from captures, bucket by bucket."""
LEFT_OUT = ("meta", UNFINISHED, *RECOUNTED)
RESTARTED = ("rescoring",)
"""Holds a place in the order of buckets."""

_TABLES = """
SELECT found.relname::text, array_agg(part.attname::text ORDER BY part.attnum),
       array_agg(part.attname::text) FILTER (WHERE part.attidentity <> '')
FROM pg_class AS found JOIN pg_attribute AS part ON part.attrelid = found.oid
WHERE found.relnamespace = 'tamias'::regnamespace AND found.relkind IN ('r', 'p') AND NOT found.relispartition
  AND part.attnum > 0 AND NOT part.attisdropped AND part.attgenerated = ''
GROUP BY found.relname
"""
_NEEDS = """
SELECT owner.relname::text, needed.relname::text
FROM pg_constraint AS rule JOIN pg_class AS owner ON owner.oid = rule.conrelid
JOIN pg_class AS needed ON needed.oid = rule.confrelid
WHERE rule.contype = 'f' AND rule.connamespace = 'tamias'::regnamespace AND owner.oid <> needed.oid
"""
_PARTED = """
SELECT constrained.relname::text
FROM pg_constraint AS rule JOIN pg_class AS constrained ON constrained.oid = rule.conrelid
JOIN pg_attribute AS part ON part.attrelid = rule.conrelid AND part.attnum = rule.conkey[2]
WHERE rule.contype = 'p' AND rule.connamespace = 'tamias'::regnamespace AND part.attname = 'qid'
"""
_BEGUN = b"SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'tamias' AND tablename = 'unfinished_copy'"
_NOTES = "CREATE TABLE tamias.unfinished_copy (piece text PRIMARY KEY, written int8, buckets int4)"
_FIRST_NOTE = "SELECT written, buckets FROM tamias.unfinished_copy WHERE piece = ''"
_NOTED = "SELECT FROM tamias.unfinished_copy WHERE piece = %s"
_NOTE = "INSERT INTO tamias.unfinished_copy VALUES (%s, %s, %s)"
UNREPORTED = 11.0
"""A session of PostgreSQL reports what it wrote within ten seconds, and when it ends."""

_WRITERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
  AND state_change > now() - interval '11 seconds'
"""
# What was written to the tables since the server counts: as long as it is the same, so are they.
_WRITTEN = """
SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::int8 FROM pg_stat_user_tables
WHERE schemaname = 'tamias'
"""
_HELD = "SELECT count(*) FROM host WHERE token IS NOT NULL AND lease_end >= extract(epoch FROM now()) * 1000"
_IN_USE = """
SELECT (SELECT count(*) FROM host) + (SELECT count(*) FROM resource) + (SELECT count(*) FROM stored_file)
"""


class TableShape(msgspec.Struct, frozen=True):
    """A table as the catalogue of the database knows it."""

    name: str
    columns: tuple[str, ...]
    identity: tuple[str, ...]


class Copied(msgspec.Struct, frozen=True):
    """Result of copying a table."""

    name: str
    rows: int


class CopyPiece(msgspec.Struct, frozen=True):
    """A table, or the rows of one of its buckets whose `qid` is in one of so many equal ranges."""

    table: TableShape
    bucket: int | None = None
    part: int = 0
    parts: int = 1

    @property
    def name(self) -> str:
        """Name under which it is noted."""
        return self.table.name if self.bucket is None else f"{self.table.name} {self.bucket} {self.part}"

    def condition(self) -> sql.Composable:
        """Return which rows of the table are in it."""
        if self.bucket is None:
            return sql.SQL("")
        first = -(1 << 63) + self.part * ((1 << 64) // self.parts)
        last = -(1 << 63) + (self.part + 1) * ((1 << 64) // self.parts) - 1
        within = (
            sql.SQL(" AND old.qid BETWEEN {} AND {}").format(first, last) if self.parts > 1 else sql.SQL("")
        )
        return sql.SQL(" WHERE old.bucket = {}{}").format(self.bucket, within)


def rebucket(source: Database, target: str, buckets: int, tell: Callable[[str], Any]) -> list[Copied]:
    """Copy everything. Raises `UsageError` when the target is not empty or somebody crawls.

    If it fails it may be tried again, and goes on where it was. Nothing else opens the target before its end.
    """
    if buckets & (buckets - 1):
        raise UsageError(f"--buckets {buckets} is not a power of two; use 1, 2, 4, 8, ...")
    with (
        closing(Database(Path(), target, buckets=buckets, unfinished=True)) as new,
        closing(source.session()) as there,
        closing(new.session()) as here,
    ):
        _wait_for_reports(there)
        there.transact(lambda old: here.transact(lambda cursor: _begin(old, cursor, buckets)))
        tables = [table for table in here.transact(_tables) if table.name not in LEFT_OUT]
        for piece in there.transact(lambda old: list(_pieces(old, tables))):
            _copy_once(there, here, piece, buckets, tell)
        counted = [_count(there, here, table, buckets) for table in tables if table.name not in RESTARTED]
        there.transact(lambda old: here.transact(lambda cursor: _end(old, cursor)))
        return counted


def _wait_for_reports(there: Session) -> None:
    """Wait until the server knows all that was written before: later reports would look like changes."""
    end = time.monotonic() + UNREPORTED
    while there.transact(lambda old: _one(old, _WRITERS)) and time.monotonic() < end:
        time.sleep(0.1)


def _begin(there: Cursor, here: Cursor, buckets: int) -> None:
    """Make the table of pieces, or finds that of an earlier run with the same words."""
    written = _one(there, _WRITTEN)
    if here.execute(_BEGUN).fetchone() is not None:
        before = here.execute(_FIRST_NOTE).fetchone()
        if before != (written, buckets):
            raise UsageError(
                "an unfinished copy in the new database is of other data, of other buckets, or of data that "
                "was changed since: run DROP SCHEMA tamias CASCADE there, then begin again"
            )
        _check_idle(there)
        return
    _check(there, here)
    here.execute("UPDATE meta SET buckets = %s", [buckets])
    here.execute(_NOTES)
    here.execute(_NOTE, ["", written, buckets])


def _pieces(there: Cursor, tables: Sequence[TableShape]) -> Iterator[CopyPiece]:
    """Yield the documents of all buckets at once, since several may have one."""
    buckets = int(_one(there, "SELECT buckets FROM meta"))
    parted = {name for (name,) in there.execute(_PARTED).fetchall()}
    for table in tables:
        if not {"bucket", "qid"} <= set(table.columns) or "document_key" in table.columns:
            yield CopyPiece(table)
            continue
        parts = max(1, PIECES // buckets) if table.name in parted else 1
        yield from (
            CopyPiece(table, bucket, part, parts) for bucket in range(buckets) for part in range(parts)
        )


def _copy_once(
    there: Session, here: Session, piece: CopyPiece, buckets: int, tell: Callable[[str], Any]
) -> None:
    def copy(old: Cursor, cursor: Cursor) -> None:
        if cursor.execute(_NOTED, [piece.name]).fetchone() is not None:
            return
        tell(piece.name)
        one_table_after_another(cursor)
        if piece.table.name in RESTARTED:
            _restart(old, cursor, piece.table.name)
        else:
            _copy_rows(old, cursor, piece, buckets)
        cursor.execute(_NOTE, [piece.name, None, None])

    there.transact(lambda old: here.transact(lambda cursor: copy(old, cursor)))


def _count(there: Session, here: Session, table: TableShape, buckets: int) -> Copied:
    def count(old: Cursor, cursor: Cursor) -> Copied:
        for column in table.identity:
            _advance(cursor, table.name, column)
        return Copied(table.name, _counted(old, cursor, table, buckets))

    return there.transact(lambda old: here.transact(lambda cursor: count(old, cursor)))


def _end(there: Cursor, here: Cursor) -> None:
    """Let the new database be opened from now on."""
    if _one(there, _WRITTEN) != _one(here, _FIRST_NOTE):
        raise UsageError(
            "the data was changed while it was copied: stop whatever uses it, run DROP SCHEMA tamias CASCADE "
            "in the new database, then begin again"
        )
    here.execute("DROP TABLE tamias.unfinished_copy")


def _check_idle(there: Cursor) -> None:
    held = _one(there, _HELD)
    if held:
        raise UsageError(f"workers hold {held} hosts of this data: stop the crawl, then copy")


def _check(there: Cursor, here: Cursor) -> None:
    _check_idle(there)
    if _one(here, _IN_USE):
        raise UsageError("the new database holds Tamias data already; name an empty one")
    if _one(there, "SELECT schema_version FROM meta") != _one(here, "SELECT schema_version FROM meta"):
        raise DatabaseError("the two databases have different schemas; open both with this Tamias first")


def _tables(cursor: Cursor) -> list[TableShape]:
    """Return all tables, those that others refer to before these."""
    found = {
        name: TableShape(name, tuple(columns), tuple(identity or ()))
        for name, columns, identity in cursor.execute(_TABLES).fetchall()
    }
    needs: dict[str, set[str]] = {name: set() for name in found}
    for owner, needed in cursor.execute(_NEEDS).fetchall():
        needs[owner].add(needed)
    ordered: list[TableShape] = []
    while needs:
        ready = sorted(name for name, needed in needs.items() if not needed & needs.keys())
        if not ready:
            raise DatabaseError(f"the tables {', '.join(sorted(needs))} refer to each other in a circle")
        ordered += [found[name] for name in ready]
        for name in ready:
            del needs[name]
    return ordered


def _copy_rows(there: Cursor, here: Cursor, piece: CopyPiece, buckets: int) -> None:
    table = piece.table
    name = sql.Identifier("tamias", table.name)
    columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
    # What migrations put there comes with the copy; counts kept by triggers are copied, not counted twice.
    into = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(name, columns)
    out = sql.SQL("COPY ({}{}) TO STDOUT (FORMAT BINARY)").format(_rows(table, buckets), piece.condition())
    with without_triggers(here, [table.name]):
        if piece.bucket is None:
            here.execute(sql.SQL("DELETE FROM {}").format(name))
        with there.copy(out) as reading, here.copy(into) as writing:
            for block in reading:
                writing.write(block)


def _rows(table: TableShape, buckets: int) -> sql.Composed:
    """The rows of a table with their new buckets."""
    name = sql.Identifier("tamias", table.name)
    parts = [_column(column, table, buckets) for column in table.columns]
    plain = sql.SQL("SELECT {} FROM {} AS old").format(sql.SQL(", ").join(parts), name)
    if "bucket" not in table.columns:
        return plain
    # A document may have come by way of several hosts: the latest whole reading stands for it.
    if {"qid", "document_key"} <= set(table.columns):
        return sql.SQL(
            "SELECT DISTINCT ON (1, old.document_key) {} FROM {} AS old "
            "ORDER BY 1, old.document_key, old.cut, old.started_at DESC"
        ).format(sql.SQL(", ").join(parts), name)
    if "qid" in table.columns:
        return plain
    if "capture" not in table.columns:
        raise DatabaseError(f"the table {table.name} has a bucket, but nothing tells its new one")
    return sql.SQL(
        "SELECT DISTINCT ON (1, old.sink, old.document_key) {} FROM {} AS old "
        "LEFT JOIN tamias.capture AS made ON made.bucket = old.bucket AND made.capture = old.capture "
        "ORDER BY 1, old.sink, old.document_key, old.started_at DESC"
    ).format(sql.SQL(", ").join(parts), name)


def _column(column: str, table: TableShape, buckets: int) -> sql.Composable:
    if column != "bucket":
        return sql.SQL("old.{}").format(sql.Identifier(column))
    owner = sql.SQL("old.qid" if "qid" in table.columns else "coalesce(made.qid, 0)")
    return sql.SQL("({} & {})::int2").format(owner, sql.Literal(buckets - 1))


def _counted(there: Cursor, here: Cursor, table: TableShape, buckets: int) -> int:
    """Return how many rows there are now; raises unless it is as many as before, each in its bucket."""
    name = sql.Identifier("tamias", table.name)
    before = _one(there, sql.SQL("SELECT count(*) FROM ({}) AS wanted").format(_rows(table, buckets)))
    after = _one(here, sql.SQL("SELECT count(*) FROM {}").format(name))
    if before != after:
        raise DatabaseError(
            f"{table.name} has {before} rows, its copy {after}; drop the schema tamias there and begin again"
        )
    if {"bucket", "qid"} <= set(table.columns):
        strays = sql.SQL("SELECT count(*) FROM {} WHERE bucket <> qid & {}").format(name, buckets - 1)
        if _one(here, strays):
            raise DatabaseError(
                f"{table.name} has rows outside their bucket; drop the schema tamias there and begin again"
            )
    return int(after)


def _restart(there: Cursor, here: Cursor, name: str) -> None:
    """Work that was under way begins from the start; what was done stays done."""
    done = _one(there, sql.SQL("SELECT done FROM {}").format(sql.Identifier("tamias", name)))
    here.execute(sql.SQL("UPDATE {} SET done = %s").format(sql.Identifier("tamias", name)), [done])


def _advance(cursor: Cursor, table: str, column: str) -> None:
    """The next number comes after all that are there."""
    cursor.execute(
        sql.SQL(
            "SELECT setval(pg_get_serial_sequence(%s, %s), greatest(1, coalesce(max({}), 1))) FROM {}"
        ).format(sql.Identifier(column), sql.Identifier("tamias", table)),
        [f"tamias.{table}", column],
    )


def _one(cursor: Cursor, statement: LiteralString | sql.Composed) -> Any:
    row = cursor.execute(statement).fetchone()
    assert row is not None
    return row[0]

"""Copies all data into a new database with another number of buckets: in one transaction, counted afterwards.

Tables are taken as they are found, so one that a migration adds is copied too.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, LiteralString

import msgspec
from psycopg import sql

from tamias.database.citus import one_table_after_another
from tamias.database.connect import Cursor, Database
from tamias.database.triggers import without_triggers
from tamias.model.errors import DatabaseError, UsageError

COUNTED_ANEW = ("attempts",)
"""Made from captures, bucket by bucket."""
BEGUN_ANEW = ("rescoring",)
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
_HELD = "SELECT count(*) FROM host WHERE token IS NOT NULL AND lease_end >= extract(epoch FROM now()) * 1000"
_IN_USE = (
    "SELECT (SELECT count(*) FROM host) + (SELECT count(*) FROM resource) + (SELECT count(*) FROM segment)"
)


class TableShape(msgspec.Struct, frozen=True):
    """A table as the catalogue of the database knows it."""

    name: str
    columns: tuple[str, ...]
    identity: tuple[str, ...]


class Copied(msgspec.Struct, frozen=True):
    """One table that was copied."""

    name: str
    rows: int


def rebucket(source: Database, target: str, buckets: int, tell: Callable[[str], Any]) -> list[Copied]:
    """Copies everything. Raises `UsageError` when the target is not empty or somebody crawls.

    If it fails the target holds nothing, and it may be tried again.
    """
    if buckets & (buckets - 1):
        raise UsageError(f"--buckets {buckets} is not a power of two; use 1, 2, 4, 8, ...")
    with (
        closing(Database(Path(), target, buckets=buckets)) as new,
        closing(source.session()) as reading,
        closing(new.session()) as writing,
    ):
        return reading.transact(
            lambda there: writing.transact(lambda here: _copy(there, here, buckets, tell))
        )


def _copy(there: Cursor, here: Cursor, buckets: int, tell: Callable[[str], Any]) -> list[Copied]:
    there.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    one_table_after_another(here)
    _check(there, here)
    here.execute("UPDATE meta SET buckets = %s", [buckets])
    copied = []
    for table in _tables(here):
        if table.name == "meta" or table.name in COUNTED_ANEW:
            continue
        tell(table.name)
        if table.name in BEGUN_ANEW:
            _begin_anew(there, here, table.name)
            continue
        copied.append(_copy_table(there, here, table, buckets))
    return copied


def _check(there: Cursor, here: Cursor) -> None:
    held = _one(there, _HELD)
    if held:
        raise UsageError(f"workers hold {held} hosts of this data: stop the crawl, then copy")
    if _one(here, _IN_USE):
        raise UsageError("the new database holds Tamias data already; name an empty one")
    if _one(there, "SELECT schema_version FROM meta") != _one(here, "SELECT schema_version FROM meta"):
        raise DatabaseError("the two databases have different schemas; open both with this Tamias first")


def _tables(cursor: Cursor) -> list[TableShape]:
    """All tables, those that others refer to before these."""
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


def _copy_table(there: Cursor, here: Cursor, table: TableShape, buckets: int) -> Copied:
    name = sql.Identifier("tamias", table.name)
    columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
    # What migrations put there comes with the copy; counts kept by triggers are copied, not counted twice.
    into = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(name, columns)
    out = sql.SQL("COPY ({}) TO STDOUT (FORMAT BINARY)").format(_rows(table, buckets))
    with without_triggers(here, [table.name]):
        here.execute(sql.SQL("DELETE FROM {}").format(name))
        with there.copy(out) as reading, here.copy(into) as writing:
            for block in reading:
                writing.write(block)
    for column in table.identity:
        _advance(here, table.name, column)
    return Copied(table.name, _counted(there, here, table, buckets))


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
    """How many rows there are now; raises unless it is as many as before, each in its bucket."""
    name = sql.Identifier("tamias", table.name)
    before = _one(there, sql.SQL("SELECT count(*) FROM ({}) AS wanted").format(_rows(table, buckets)))
    after = _one(here, sql.SQL("SELECT count(*) FROM {}").format(name))
    if before != after:
        raise DatabaseError(f"{table.name} has {before} rows, its copy {after}; nothing was kept")
    if {"bucket", "qid"} <= set(table.columns):
        strays = sql.SQL("SELECT count(*) FROM {} WHERE bucket <> qid & {}").format(name, buckets - 1)
        if _one(here, strays):
            raise DatabaseError(f"{table.name} has rows outside their bucket; nothing was kept")
    return int(after)


def _begin_anew(there: Cursor, here: Cursor, name: str) -> None:
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

"""The tables on a Citus cluster: those with a bucket distributed by it, small ones on every node.

All others stay on the coordinator, and every node knows them: they have triggers and foreign keys, and grow
with resources, not with URLs. What a migration adds to a cluster is placed with it (`place_new_tables`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg
from psycopg import sql

from tamias.database.roles import ready_roles
from tamias.database.sql import statements
from tamias.model.errors import DatabaseError

if TYPE_CHECKING:
    from tamias.database.connect import Cursor, Session

REFERENCED = ("meta", "crawl", "lane", "service")
"""Read together with the frontier; some rows each."""
FIRST = "host"
"""The table whose shards the others lie beside."""

_SQL = statements("tamias.database", "citus.sql")


class ShardPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a bucket: its shard, its node, and the number suffixes of its tables there."""

    bucket: int
    shard: int
    host: str
    port: str
    tables: dict[str, int]


class Distributed(msgspec.Struct, frozen=True):
    """The result of distributing tables, without those that were placed before."""

    version: str
    buckets: int
    distributed: tuple[str, ...]
    referenced: tuple[str, ...]
    on_coordinator: tuple[str, ...]


def distribute(session: "Session", shards: int) -> Distributed:
    """Place what is not placed yet, in one transaction. Raises `DatabaseError` without Citus."""
    done = session.transact(lambda cursor: _distribute(cursor, shards))
    session.transact(ready_roles)
    return done


def place_new_tables(cursor: "Cursor") -> None:
    """Place the tables that a migration has made, where the others are on a cluster."""
    if is_citus(cursor) and FIRST in _placed(cursor):
        _place(cursor, 0)


def one_table_after_another(cursor: "Cursor") -> None:
    """Use one connection in a transaction that changes related tables; does nothing without Citus."""
    cursor.execute(_SQL["one_connection"].text)


def is_citus(cursor: "Cursor") -> bool:
    """Return whether the database is that of a cluster."""
    return _version(cursor) is not None


def coordinator_elsewhere(cursor: "Cursor") -> dict[str, Any]:
    """Return how to connect to the coordinator, where this is another node of a cluster; else nothing."""
    if not is_citus(cursor):
        return {}
    row = cursor.execute(_SQL["coordinator_elsewhere"].text).fetchone()
    return {} if row is None else {"host": row[0], "port": row[1]}


def is_spread(cursor: "Cursor") -> bool:
    """Return whether the tables are distributed over a cluster."""
    return is_citus(cursor) and FIRST in _placed(cursor)


def read_shards(cursor: "Cursor") -> list[ShardPlace]:
    """Return where each bucket is, by Citus's catalogue."""
    copies: dict[str, int] = dict(cursor.execute(_SQL["copies"].text).fetchall())
    return [
        ShardPlace(
            bucket=bucket,
            shard=shard,
            host=host,
            port=port,
            tables={**copies, **dict(zip(names, shards, strict=True))},
        )
        for bucket, shard, host, port, names, shards in cursor.execute(_SQL["shards"].text).fetchall()
    ]


def check_node(cursor: "Cursor", host: str, port: str) -> bool:
    """Return whether this server can reach another node of the cluster."""
    return cursor.execute(_SQL["check_node"].text, {"host": host, "port": port}).fetchone() == (True,)


def tables_by_bucket(cursor: "Cursor") -> list[str]:
    """The tables whose key begins with the bucket."""
    return [row[0] for row in cursor.execute(_SQL["tables_by_bucket"].text).fetchall()]


def _distribute(cursor: "Cursor", shards: int) -> Distributed:
    version = _version(cursor)
    if version is None:
        raise DatabaseError(
            "this server has no Citus extension, so there is no cluster to distribute the tables over; on a "
            "coordinator run CREATE EXTENSION citus and add its nodes first (docs/scaling.md). One server "
            "needs none of this"
        )
    if cursor.execute(_SQL["coordinator_listed"].text).fetchone() is None:
        raise DatabaseError(
            "the coordinator is not in the cluster's list of nodes, so other nodes could not find the tables "
            "on it; let an administrator run on the coordinator: SELECT citus_set_coordinator_host('HOST')"
        )
    distributed, referenced, local = _place(cursor, shards)
    return Distributed(version, _buckets(cursor), distributed, referenced, local)


def _place(cursor: "Cursor", shards: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return which tables were distributed, put on every node, and listed as the coordinator's."""
    one_table_after_another(cursor)
    placed, by_bucket = _placed(cursor), tables_by_bucket(cursor)
    new = [name for (name,) in cursor.execute(_SQL["tables"].text).fetchall() if name not in placed]
    distributed = sorted((name for name in new if name in by_bucket), key=lambda name: (name != FIRST, name))
    for name in distributed:
        words = {"table": f"tamias.{name}", "first": f"tamias.{FIRST}", "shards": shards}
        cursor.execute(_SQL["distribute_first" if name == FIRST else "distribute_beside"].text, words)
    referenced = [name for name in new if name in REFERENCED]
    for name in referenced:
        cursor.execute(_SQL["put_on_every_node"].text, {"table": f"tamias.{name}"})
    local = [name for name in new if name not in {*by_bucket, *REFERENCED}]
    for name in local:
        if name not in _placed(cursor):  # those that it refers to were listed together with it
            cursor.execute(_SQL["list_as_coordinators"].text, {"table": f"tamias.{name}"})
    if new:
        # Sequences of tables that are listed lose the rights that were given, so these are given again.
        cursor.execute(_SQL["forget_rights"].text)
    return tuple(distributed), tuple(referenced), tuple(local)


def _version(cursor: "Cursor") -> str | None:
    row = cursor.execute(_SQL["extension"].text).fetchone()
    return None if row is None else str(row[0])


def _placed(cursor: "Cursor") -> set[str]:
    return {row[0] for row in cursor.execute(_SQL["placed"].text).fetchall()}


def _buckets(cursor: "Cursor") -> int:
    row = cursor.execute("SELECT buckets FROM meta").fetchone()
    assert row is not None
    return int(row[0])


_WITH_TRIGGERS = """
SELECT DISTINCT pg_class.relname::text FROM pg_trigger JOIN pg_class ON pg_class.oid = pg_trigger.tgrelid
WHERE pg_class.relnamespace = 'tamias'::regnamespace AND pg_class.relkind = 'r'
  AND NOT pg_trigger.tgisinternal AND pg_class.relname = ANY(%s::text[])
ORDER BY 1
"""


@contextmanager
def without_triggers(cursor: psycopg.Cursor[tuple[Any, ...]], tables: Sequence[str]) -> Iterator[None]:
    """Switch the triggers of these tables off, and on again.

    Only of tables that have some: a table that is distributed over a Citus cluster cannot, nor be asked to.
    """
    found = [row[0] for row in cursor.execute(_WITH_TRIGGERS, [list(tables)]).fetchall()]
    for name in found:
        cursor.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(sql.Identifier("tamias", name)))
    yield
    for name in found:
        cursor.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(sql.Identifier("tamias", name)))

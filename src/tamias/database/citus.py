"""The tables on a Citus cluster: those with a bucket distributed by it, small ones on every node.

The archive's own tables stay on the coordinator: they have triggers, and grow with resources, not with URLs.
"""

from typing import Any

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.model.errors import DatabaseError

REFERENCED = ("meta", "crawl", "lane", "service")
"""Read together with the frontier; some rows each."""
FIRST = "host"
"""The table whose shards the others lie beside."""

_EXTENSION = "SELECT extversion FROM pg_extension WHERE extname = 'citus'"
_BY_BUCKET = """
SELECT constrained.relname::text
FROM pg_constraint AS rule JOIN pg_class AS constrained ON constrained.oid = rule.conrelid
JOIN pg_attribute AS part ON part.attrelid = rule.conrelid AND part.attnum = rule.conkey[1]
WHERE rule.contype = 'p' AND rule.connamespace = 'tamias'::regnamespace AND part.attname = 'bucket'
ORDER BY constrained.relname
"""
_THERE = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'tamias' AND tablename = ANY(%s::text[])"
_DONE = "SELECT logicalrelid::regclass::text FROM pg_dist_partition"
_DISTRIBUTE = "SELECT create_distributed_table(%s::text::regclass, 'bucket', shard_count => %s::int)"
_BESIDE = "SELECT create_distributed_table(%s::text::regclass, 'bucket', colocate_with => %s::text)"
_REFERENCE = "SELECT create_reference_table(%s::text::regclass)"


class Distributed(msgspec.Struct, frozen=True):
    """What was done; a table that was distributed before is not named again."""

    version: str
    buckets: int
    distributed: tuple[str, ...]
    referenced: tuple[str, ...]


def distribute(session: Session, shards: int) -> Distributed:
    """Distributes what is not distributed yet, in one transaction. Raises `DatabaseError` without Citus."""
    return session.transact(lambda cursor: _distribute(cursor, shards))


def tables_by_bucket(cursor: Cursor) -> list[str]:
    """The tables whose key begins with the bucket."""
    return [row[0] for row in cursor.execute(_BY_BUCKET).fetchall()]


def _distribute(cursor: Cursor, shards: int) -> Distributed:
    found = cursor.execute(_EXTENSION).fetchone()
    if found is None:
        raise DatabaseError(
            "this server has no Citus extension, so there is no cluster to distribute the tables over; on a "
            "coordinator run CREATE EXTENSION citus and add its nodes first (docs/scaling.md). One server "
            "needs none of this"
        )
    done = {row[0].removeprefix("tamias.") for row in cursor.execute(_DONE).fetchall()}
    by_bucket = tables_by_bucket(cursor)
    wanted = [FIRST, *(name for name in by_bucket if name != FIRST)]
    new = [name for name in wanted if name not in done]
    for name in new:
        if name == FIRST:
            cursor.execute(_DISTRIBUTE, [f"tamias.{name}", shards])
        else:
            cursor.execute(_BESIDE, [f"tamias.{name}", f"tamias.{FIRST}"])
    there = {row[0] for row in cursor.execute(_THERE, [list(REFERENCED)]).fetchall()}
    referenced = [name for name in REFERENCED if name in there and name not in done]
    for name in referenced:
        cursor.execute(_REFERENCE, [f"tamias.{name}"])
    return Distributed(str(found[0]), _buckets(cursor), tuple(new), tuple(referenced))


def _buckets(cursor: Cursor) -> int:
    row: tuple[Any, ...] | None = cursor.execute("SELECT buckets FROM meta").fetchone()
    assert row is not None
    return int(row[0])

"""The schema and its versions: `migrations/0001_name.sql`, each applied once, in order, all or nothing."""

import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tamias.database.embedded.binaries import OLDEST_MAJOR
from tamias.database.sql import commands, folder_of, statements
from tamias.model.errors import DatabaseError, DataMissing, SchemaTooNew

if TYPE_CHECKING:  # the keeper has no other need of it, and it takes long to load
    import psycopg

ADVISORY_LOCK = 0x7A31A5
UNFINISHED = "unfinished_copy"
"""The table that a database has until all data of another is copied to it (`tamias.database.rebucket`)."""


class Migration(NamedTuple):
    """One step of the schema."""

    number: int
    name: str
    text: str


@cache
def migrations() -> tuple[Migration, ...]:
    """All steps, oldest first."""
    found = []
    for entry in folder_of("tamias.database").joinpath("migrations").iterdir():
        match = re.fullmatch(r"(\d{4})_(\w+)\.sql", entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    return tuple(sorted(found))


@cache
def rights() -> tuple[str, bytes]:
    """What roles may do, and a name for it that is another one when that or the schema changes."""
    text = statements("tamias.database", "rights.sql")["give_rights"].text
    return f"{migrations()[-1].number}-{hashlib.sha256(text).hexdigest()[:16]}", text


def migrate(
    connection: "psycopg.Connection[tuple[Any, ...]]", *, create: bool, buckets: int, upto: int | None = None
) -> bool:
    """Brings the schema up to date; with `create` makes it. A newer schema than ours is refused.

    Returns whether something was to be done.
    """
    major = connection.info.server_version // 10000
    if major < OLDEST_MAJOR:
        raise DatabaseError(f"the server is PostgreSQL {major}; Tamias needs {OLDEST_MAJOR} or newer")
    steps = [step for step in migrations() if upto is None or step.number <= upto]
    version, chosen = _version_and_buckets(connection)
    if version == steps[-1].number and chosen:
        return False
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK])
        # So that Citus alters tables after their rows were changed; elsewhere the word means nothing.
        connection.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
        version, chosen = _version_and_buckets(connection)
        if not chosen and not create:
            raise DataMissing("the database holds no Tamias data; 'tamias crawl' or 'tamias add' creates it")
        if version and not chosen and upto is not None:
            # An embedded cluster comes with the newest schema (template.py), and an older one is wanted.
            connection.execute("DROP SCHEMA tamias CASCADE")
            version = 0
        _refuse_newer(version, steps[-1].number)
        for step in steps:
            if step.number <= version:
                continue
            # One after another: Citus tells its nodes the whole text that it was sent.
            for command in commands(step.text):
                connection.execute(command.encode())
        connection.execute("UPDATE meta SET schema_version = %s", [steps[-1].number])
        if not chosen:
            connection.execute("UPDATE meta SET buckets = %s, made_at = now()", [buckets])
    return True


def _refuse_newer(version: int, ours: int) -> None:
    if version > ours:
        raise SchemaTooNew(
            f"the data was written by a newer Tamias (schema {version}, this one knows {ours}); upgrade it"
        )


def refuse_unfinished(connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
    """Raises `DatabaseError` where only a part of the data is there."""
    made = "SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'tamias' AND tablename = %s"
    if connection.execute(made, [UNFINISHED]).fetchone() is not None:
        raise DatabaseError(
            "'tamias cluster rebucket' has not copied everything to this database yet: run it again to go on"
        )


def _version_and_buckets(connection: "psycopg.Connection[tuple[Any, ...]]") -> tuple[int, int]:
    """Zeros without a schema; without buckets as long as nobody has used it."""
    # Not to_regclass: its cache would not know what another process made while we waited for the lock.
    made = "SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'tamias' AND tablename = 'meta'"
    if connection.execute(made).fetchone() is None:
        return 0, 0
    row = connection.execute("SELECT schema_version, buckets FROM tamias.meta").fetchone()
    return (row[0], row[1]) if row else (0, 0)

"""The schema and its versions: `schema/` makes the first, `migrations/0078_pages.sql` is the next step.

Each step is applied once, in order, all or nothing.
"""

import hashlib
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tamias.database.embedded.binaries import OLDEST_MAJOR
from tamias.database.sql import commands, folder_of, statements
from tamias.model.errors import DatabaseError, DataMissing, SchemaTooNew, SchemaTooOld

if TYPE_CHECKING:  # the keeper has no other need of it, and it takes long to load
    import psycopg

ADVISORY_LOCK = 0x7A31A5
UNFINISHED = "unfinished_copy"
"""The table that a database has until all data of another is copied to it (`tamias.database.rebucket`)."""


FIRST = 77
"""The version that the files of `schema/` make."""
LAST_TO_UPGRADE = "42aa7390"
"""The commit of Tamias that upgrades data of every earlier version to the first."""


class Migration(NamedTuple):
    """One step of the schema."""

    number: int
    text: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Read the first schema and all steps after it, oldest first."""
    folder = folder_of("tamias.database")
    first = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("schema/*.sql")))
    later = sorted(folder.glob("migrations/*.sql"))
    return (
        Migration(FIRST, first),
        *(Migration(int(path.name[:4]), path.read_text(encoding="utf-8")) for path in later),
    )


@cache
def rights() -> tuple[str, bytes]:
    """What roles may do, and a name for it that is another one when that or the schema changes."""
    text = statements("tamias.database", "rights.sql")["give_rights"].text
    return f"{migrations()[-1].number}-{hashlib.sha256(text).hexdigest()[:16]}", text


def migrate(
    connection: "psycopg.Connection[tuple[Any, ...]]", *, create: bool, buckets: int, upto: int | None = None
) -> bool:
    """Bring the schema up to date; with `create` make it. Raise where `refuse_other_versions` does.

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
        if version:
            refuse_other_versions(version)
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


def refuse_other_versions(version: int) -> None:
    """Raise `SchemaTooNew` or `SchemaTooOld` for data of a version that cannot be brought up to date."""
    newest = migrations()[-1].number
    if version > newest:
        raise SchemaTooNew(
            f"the data was written by a newer Tamias (schema {version}, this one knows {newest}); upgrade it"
        )
    if version < FIRST:
        raise SchemaTooOld(
            f"the data was written by an older Tamias (schema {version}, this one opens {FIRST} and later); "
            f"check out commit {LAST_TO_UPGRADE} and open the data with it once ('tamias stats'), then come "
            "back; of a backup, restore it with that commit and make a new one"
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

"""The schema and its versions: `schema/` makes the first, `steps.sql` has the steps after it.

Each step is applied once, in order, all or nothing.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tamias.database.embedded_server import OLDEST_MAJOR
from tamias.database.sql import commands, folder_of, statements
from tamias.model.errors import ConfigError, DatabaseError, DataMissing, SchemaTooNew, SchemaTooOld
from tamias.model.faults import reached
from tamias.plugins import features

if TYPE_CHECKING:  # the keeper has no other need of it, and it takes long to load
    import psycopg

ADVISORY_LOCK = 0x7A31A5
UNFINISHED = "unfinished_copy"
"""The table that a database has until all data of another is copied to it (`tamias.database.rebucket`)."""
_HAS_TABLE = "SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'tamias' AND tablename = %s"
FIRST = 77
"""The version that the files of `schema/` make."""
LAST_TO_UPGRADE = "42aa7390"
"""The commit of Tamias that upgrades data of every earlier version to the first."""
FEATURES_FROM = 81
"""From this version on the database knows which steps of features it has seen."""


class Migration(NamedTuple):
    """A step of the schema."""

    number: int
    text: str
    feature: str = "core"


@cache
def migrations() -> tuple[Migration, ...]:
    """Read the first schema and all steps after it, oldest first."""
    folder = folder_of("tamias.database")
    first = "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("schema/*.sql")))
    return Migration(FIRST, first), *_steps("tamias.database", "steps.sql", "core")


@cache
def feature_steps() -> tuple[Migration, ...]:
    """Read the steps of the schema of each feature that is on, in order."""
    owned = [feature for feature in features() if feature.schema]
    return tuple(step for each in owned for step in _steps(each.module, each.schema, each.name))


def _steps(package: str, file: str, feature: str) -> Iterator[Migration]:
    for name, block in statements(package, file).items():
        if name != "rights":
            yield Migration(int(name.removeprefix("version_")), block.text.decode(), feature)


@cache
def rights() -> tuple[str, bytes]:
    """Return what roles may do, and a name for it that is another one when that or a schema changes."""
    text = statements("tamias.database", "rights.sql")["give_rights"].text
    for feature in features():
        block = statements(feature.module, feature.schema).get("rights") if feature.schema else None
        text += b"\n" + block.text if block else b""
    named = hashlib.sha256(text + json.dumps(newest_of_features()).encode())
    return f"{migrations()[-1].number}-{named.hexdigest()[:16]}", text


def newest_of_features() -> dict[str, int]:
    """Return the number of the last step of each feature."""
    return {step.feature: step.number for step in feature_steps()}


def migrate(
    connection: "psycopg.Connection[tuple[Any, ...]]", *, create: bool, buckets: int, upto: int | None = None
) -> bool:
    """Bring the schema up to date; with `create` make it. Raise where `refuse_other_versions` does.

    Returns whether something was to be done.
    """
    if (major := connection.info.server_version // 10000) < OLDEST_MAJOR:
        raise DatabaseError(f"the server is PostgreSQL {major}; Tamias needs {OLDEST_MAJOR} or newer")
    steps = [step for step in migrations() if upto is None or step.number <= upto]
    version, chosen, known = _state(connection)
    if version == steps[-1].number and chosen and not _missing_steps(known, version):
        return False
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK])
        # So that Citus alters tables after their rows were changed; elsewhere the word means nothing.
        connection.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
        version, chosen, known = _state(connection)
        if not chosen and not create:
            raise DataMissing("the database holds no Tamias data; 'tamias crawl' or 'tamias add' creates it")
        if version and not chosen and upto is not None:
            # An embedded cluster comes with the newest schema (template.py), and an older one is wanted.
            connection.execute("DROP SCHEMA tamias CASCADE")
            version, known = 0, {}
        if version:
            refuse_other_versions(version)
        _take_steps(connection, steps, version, known)
        if not chosen:
            connection.execute("UPDATE meta SET buckets = %s, made_at = now()", [buckets])
    return True


def _take_steps(
    connection: "psycopg.Connection[tuple[Any, ...]]",
    steps: Sequence[Migration],
    version: int,
    known: dict[str, int],
) -> None:
    newest = steps[-1].number
    for step in [step for step in steps if step.number > version] + _missing_steps(known, newest):
        # One after another: Citus tells its nodes the whole text that it was sent.
        for command in commands(step.text):
            connection.execute(command.encode())
            reached("schema-step")
    connection.execute("UPDATE meta SET schema_version = %s", [newest])
    if newest >= FEATURES_FROM:
        connection.execute("UPDATE meta SET features = %s", [json.dumps(known | newest_of_features())])


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
    """Raise `DatabaseError` where only a part of the data is there."""
    if connection.execute(_HAS_TABLE, [UNFINISHED]).fetchone() is not None:
        raise DatabaseError(
            "'tamias cluster rebucket' has not copied everything to this database yet: run it again to go on"
        )


def _missing_steps(known: dict[str, int], version: int) -> list[Migration]:
    """Return the steps of features that are left to do; of the first ones, an older schema knows nothing."""
    return [
        step
        for step in feature_steps()
        if step.number > known.get(step.feature, 0) and (version >= FEATURES_FROM or step.number == 1)
    ]


def _state(connection: "psycopg.Connection[tuple[Any, ...]]") -> tuple[int, int, dict[str, int]]:
    """Return the version, the number of buckets, and the steps of features.

    Zeros without a schema; without buckets as long as nobody has used it.
    """
    # Not to_regclass: its cache would not know what another process made while we waited for the lock.
    if connection.execute(_HAS_TABLE, ["meta"]).fetchone() is None:
        return 0, 0, {}
    text = "SELECT schema_version, buckets, coalesce(to_jsonb(meta)->'features', '{}') FROM tamias.meta"
    version, buckets, known = connection.execute(text).fetchone() or (0, 0, {})
    return version, buckets, known


def refuse_other_encodings(cursor: "psycopg.Cursor[Any]") -> None:
    """Raise `ConfigError` for a database that cannot hold all text."""
    row = cursor.execute("SELECT current_setting('server_encoding')").fetchone()
    if row is not None and row[0] != "UTF8":
        raise ConfigError(
            f"the database stores text as {row[0]}, which cannot hold what the Web has; make one by"
            " CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
        )

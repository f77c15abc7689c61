"""F21: a strategy wants more rights than its role has, on every PostgreSQL that is at hand."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.postgres_17 import postgres_17
from tamias.crawl.strategy.versions import apply
from tamias.database.connect import Database, Session
from tamias.database.embedded.binaries import OLDEST_MAJOR, Binaries, newest, of_major
from tamias.model.errors import UsageError

SECONDS = 2.0
_GRAB = """
CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE sql AS $$ SELECT 0.5::float8 $$;
CREATE FUNCTION grab() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
    BEGIN EXECUTE 'SET ROLE NONE'; EXCEPTION WHEN OTHERS THEN NULL; END;
    BEGIN EXECUTE 'CREATE TABLE tamias.escaped ()'; EXCEPTION WHEN OTHERS THEN NULL; END;
    RETURN 1; END $$;
"""
_LATER = """
CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM SCHEMA.grab(); RETURN NULL; END $$;
CREATE TABLE mine (word text);
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON mine DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION later();
INSERT INTO mine VALUES ('a word');
"""
_HELD = "DO $$ BEGIN EXECUTE 'DECLARE held CURSOR WITH HOLD FOR SELECT SCHEMA.grab()'; END $$;"
_PATH = """
CREATE TABLE kept AS SELECT 1 AS number, 'in force'::text AS state, now() AS in_force_at,
    NULL::text AS problem, 0 AS slow;
CREATE VIEW strategy AS SELECT * FROM kept WHERE SCHEMA.grab() = 1;
SET search_path = SCHEMA, tamias, pg_catalog;
"""
_ENDLESS = """
DO $do$ BEGIN EXECUTE 'CREATE FUNCTION catch() RETURNS void LANGUAGE plpgsql AS $$ BEGIN LOOP'
    ' BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_' || 'canceled THEN NULL; END; END LOOP; END $$';
END $do$;
SELECT catch();
"""
ATTACKS = (_LATER, _HELD, _PATH, _ENDLESS)


def run(setup: ExperimentSetup) -> Result:
    """What is put off to the commit, a held cursor, a search path, and a time limit that is caught."""
    majors = range(OLDEST_MAJOR, newest().major + 1)
    found = {major: programs for major in majors if (programs := _programs(major)) is not None}
    out = {major: _escapes(setup.folder / str(major), programs) for major, programs in found.items()}
    absent = ", ".join(str(major) for major in majors if major not in found)
    tried = len(ATTACKS) * len(found)
    return Result(
        ok=not any(out.values()),
        figure=f"{tried} strategies on PostgreSQL {', '.join(map(str, found))}: {sum(out.values())} got out"
        + (f"; not installed: {absent}" if absent else ""),
    )


def _programs(major: int) -> Binaries | None:
    return postgres_17() if major == 17 else of_major(major)


def _escapes(data: Path, programs: Binaries) -> int:
    with _with(programs), closing(Database(data)) as database, closing(database.session()) as session:
        return sum(_got_out(session, number, text) for number, text in enumerate(ATTACKS, 1))


def _got_out(session: Session, number: int, text: str) -> bool:
    with suppress(UsageError):
        apply(session, 1, "escape", (_GRAB + text).replace("SCHEMA", f"strategy_{number}"), [], SECONDS)
    asked = "SELECT to_regclass('tamias.escaped') IS NOT NULL"
    row = session.transact(lambda cursor: cursor.execute(asked).fetchone())
    session.transact(lambda cursor: cursor.execute("DROP TABLE IF EXISTS tamias.escaped"))
    return bool(row and row[0])


@contextmanager
def _with(programs: Binaries) -> Iterator[None]:
    """Servers are started with these programs meanwhile."""
    before = os.environ.get("TAMIAS_PG_BIN")
    os.environ["TAMIAS_PG_BIN"] = programs.folder
    try:
        yield
    finally:
        del os.environ["TAMIAS_PG_BIN"]
        if before is not None:
            os.environ["TAMIAS_PG_BIN"] = before

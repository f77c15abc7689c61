"""Data of every schema that ever was can be opened: rows stay, and the schema is that of new data."""

import os

import psycopg
import pytest
from psycopg import sql

from tamias.database.migrate import migrate, migrations

SHAPES = {
    "columns": """
        SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
        WHERE table_schema = 'tamias'""",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'tamias'",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'tamias'::regnamespace""",
    "functions": """
        SELECT proname, prosrc, pg_get_function_arguments(oid) FROM pg_proc
        WHERE pronamespace = 'tamias'::regnamespace""",
    "triggers": """
        SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(pg_trigger.oid)
        FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
        WHERE relnamespace = 'tamias'::regnamespace AND NOT tgisinternal""",
    "views": "SELECT viewname, definition FROM pg_views WHERE schemaname = 'tamias'",
}
ROWS = {
    "crawl": "INSERT INTO crawl (crawl, name) OVERRIDING SYSTEM VALUE VALUES (100, 'kept')",
    "portal": "INSERT INTO portal (portal, url, kind, first_seen) VALUES (7, 'http://p.example/', 'ckan', 1)",
    "described": (
        "INSERT INTO described (portal, record, iri, title, first_seen, last_seen)"
        " VALUES (7, 'a', 'http://p.example/a', 'A title', 1, 5)"
    ),
    "offered": (
        "INSERT INTO offered (portal, record, url, title, last_seen)"
        " VALUES (7, 'a', 'http://a.example/', 'é', 5)"
    ),
    "resource": (
        "INSERT INTO resource (resource, url, host, added_at, title)"
        " VALUES ('a', 'http://a.example/', 'a.example', 1, 'é')"
    ),
}
"""One for each table that has been there from some schema on."""


@pytest.fixture
def database(administrator, request):
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


def shape(connection):
    """Columns by name, since a column that was added later comes last."""
    return {what: set(connection.execute(query).fetchall()) for what, query in SHAPES.items()}


def put_rows(connection):
    there = {
        row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'tamias'")
    }
    put = [table for table in ROWS if table in there]
    for table in put:
        connection.execute(ROWS[table])
    return put


def test_data_of_every_schema_is_upgraded_to_the_schema_of_new_data(database):
    """Every schema in `make interop`; else one in six and the last ones, for each takes a database."""
    new = database("new")
    migrate(new, create=True, buckets=4)
    wanted, steps = shape(new), migrations()
    assert all(wanted.values())
    for step in steps[:-1] if os.environ.get("TAMIAS_INTEROP") else [*steps[:-4:6], *steps[-4:-1]]:
        old = database(f"schema_{step.number}")
        migrate(old, create=True, buckets=4, upto=step.number)
        put = put_rows(old)
        migrate(old, create=False, buckets=4)
        version = old.execute("SELECT schema_version, buckets FROM meta").fetchone()
        assert (step.number, version) == (step.number, (steps[-1].number, 4))
        assert {
            what: found ^ wanted[what] for what, found in shape(old).items() if found != wanted[what]
        } == {}
        kept = {
            "crawl": "SELECT name FROM crawl WHERE name = 'kept'",
            "portal": "SELECT url FROM portal",
            "described": "SELECT title, told_at FROM described",
            "offered": "SELECT title, told_at FROM offered",
            "resource": "SELECT title FROM resource WHERE resource = 'a'",
        }
        found = {table: old.execute(kept[table]).fetchone() for table in put}
        expected = {
            "crawl": ("kept",), "portal": ("http://p.example/",), "described": ("A title", 5),
            "offered": ("é", 5), "resource": ("é",),
        }  # fmt: skip
        assert found == {table: expected[table] for table in put}


def test_the_numbers_of_steps_never_change():
    """What was released is in data directories out there: a step is added at the end, and none is edited."""
    numbers = [step.number for step in migrations()]
    assert numbers == sorted(set(numbers))

"""An archive on a cluster is upgraded there: its rows stay, tables and rights are those of a new one."""

from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest

from tamias.archive.sources.catalogues import note_datasets, note_whole
from tamias.database import citus as citus_tables
from tamias.database.connect import Database
from tamias.database.migrate import FIRST, migrate, migrations
from tamias.database.roles import Role
from tamias.model.dataset import Dataset, Distribution
from tamias.model.errors import DatabaseError
from tests.messages import unsaid

from .conftest import done

BUCKETS = 16
SCHEMAS = sorted({FIRST, migrations()[-2].number})
"""The first one, and the last one before this release's."""
PORTAL = "http://portal.example/"
FILLED = (
    "INSERT INTO crawl (crawl, name) OVERRIDING SYSTEM VALUE VALUES (100, 'kept')",
    "INSERT INTO host (bucket, qid, hkey, ready_at) SELECT mod(n, 16), n, 'h' || n, n FROM numbers",
    "INSERT INTO queue (bucket, qid, crawl, lane, next_due, known, open)"
    " SELECT mod(n, 16), n, 100, 0, n, 1, 1 FROM numbers",
    "INSERT INTO url (bucket, qid, crawl, lane, uid, due, first_seen, score, url)"
    " SELECT mod(n, 16), n, 100, 0, n, n, n, 0.5, 'http://h' || n || '/é' FROM numbers",
    "INSERT INTO resource (resource, url, host, added_at, title)"
    " SELECT 'r' || n, 'http://h' || n || '/', 'h' || n, n, 'é ' || n FROM numbers",
    f"INSERT INTO portal (portal, url, kind, first_seen, walked_at) VALUES (7, '{PORTAL}', 'ckan', 1, 60)",
    "INSERT INTO described (portal, record, iri, title, first_seen, last_seen, told_at, gone_at)"
    " SELECT 7, 'd' || n, 'http://portal.example/d' || n, 'Title ü ' || n, n, 60 - mod(n, 3), 60 - mod(n, 3),"
    " CASE WHEN mod(n, 3) > 0 THEN 60 END FROM numbers",
    "INSERT INTO offered (portal, record, url, title, format, first_seen, last_seen, told_at, gone_at)"
    " SELECT 7, 'd' || mod(n, 20) + 1, 'http://h' || n || '/', nullif('File ' || mod(n, 4), 'File 0'),"
    " nullif('CSV ' || mod(n, 5), 'CSV 0'), n, 60 - mod(n, 2), 60 - mod(n, 2),"
    " CASE WHEN mod(n, 2) > 0 THEN 60 END FROM numbers",
    "INSERT INTO absence (portal, record, url, gone_at, back_at)"
    " SELECT 7, 'd' || n, CASE WHEN mod(n, 2) > 0 THEN 'http://h' || n || '/' ELSE '' END, n, n + 1"
    " FROM numbers",
    "INSERT INTO source_record (resource, number, portal, iri, record, catalogue, mapping, captured_at,"
    " media_type, sha256, byte_size, body)"
    " SELECT 'r' || n, 1, 7, 'i' || n, 'd' || n, 'c', 'ckan', n, 'application/json', '\\x00', 1, '\\x01'"
    " FROM numbers",
)
TABLES = b"""
SELECT relname::text, array_agg(attname::text ORDER BY attname) FROM pg_class
JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
WHERE relnamespace = 'tamias'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
  AND relname <> 'meta' AND (relname, attname) <> ('crawl', 'made_at')
GROUP BY relname
"""
"""All but what differs between two databases."""
SHAPES = {
    "columns": """
        SELECT relname::text, attname::text, format_type(atttypid, atttypmod), attnotnull
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = 'tamias'::regnamespace AND relkind IN ('r', 'p', 'v') AND attnum > 0
          AND NOT attisdropped""",
    "constraints": """
        SELECT relname::text, conname::text, pg_get_constraintdef(pg_constraint.oid)
        FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
        WHERE relnamespace = 'tamias'::regnamespace""",
    "triggers": """
        SELECT relname::text, tgname::text, proname::text, tgtype
        FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_proc ON pg_proc.oid = tgfoid
        WHERE relnamespace = 'tamias'::regnamespace AND NOT tgisinternal""",
}
PLACES = """
SELECT relname::text, citus_table_type FROM citus_tables JOIN pg_class ON pg_class.oid = table_name
WHERE relnamespace = 'tamias'::regnamespace
"""
RIGHTS = """
SELECT relname::text, '', given.grantee::regrole::text, given.privilege_type
FROM pg_class CROSS JOIN aclexplode(relacl) AS given
WHERE relnamespace = 'tamias'::regnamespace AND relkind IN ('r', 'p')
  AND given.grantee = ANY(%(roles)s::regrole[])
UNION ALL
SELECT relname::text, attname::text, given.grantee::regrole::text, given.privilege_type
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid CROSS JOIN aclexplode(attacl) AS given
WHERE relnamespace = 'tamias'::regnamespace AND relkind IN ('r', 'p')
  AND given.grantee = ANY(%(roles)s::regrole[])
"""
REFUSED = {
    Role.WORKER: ("UPDATE earlier_description SET title = ''", "DELETE FROM earlier_description"),
    Role.FRONTIER: ("UPDATE earlier_description SET title = ''", "DELETE FROM described"),
    Role.SERVICE: (
        "INSERT INTO earlier_description (portal, record, url, until, told_at) VALUES (7, 'd1', '', 1, 1)",
        "UPDATE described SET told_at = 99",
    ),
}
EARLIER = "SELECT record, url, until, told_at, iri, title, format FROM earlier_description"


@pytest.fixture(params=SCHEMAS)
def older(request, database_of, tamias_at):
    """The executable on one server and on a cluster, both with the same rows of an older schema."""
    made = {}
    for name, nodes in {"plain": 0, "cluster": None}.items():
        url = database_of(f"older_{name}", nodes)
        with closing(psycopg.connect(url, autocommit=True)) as connection:
            migrate(connection, create=True, buckets=BUCKETS, upto=request.param)
        with (
            closing(Database(Path(), url, upto=request.param)) as old,
            closing(old.session()) as session,
        ):
            if nodes is None:  # without the rights, which are those of the newest schema
                session.transact(lambda cursor: citus_tables._distribute(cursor, 8))
            for statement in FILLED:
                session.execute(statement.replace("numbers", "generate_series(1, 48) AS n").encode())
        made[name] = tamias_at(f"older_{name}")
        made[name].env |= {"TAMIAS_DB": url, "PGOPTIONS": ""}
    return made["plain"], made["cluster"]


def asked(url, statement, **values):
    with closing(psycopg.connect(url, options="-c search_path=tamias,public")) as connection:
        return sorted(connection.execute(statement, values or None), key=repr)


def contents(url, columns):
    """All rows of all tables."""
    return {table: asked(url, f"SELECT {', '.join(names)} FROM {table}") for table, names in columns.items()}


def node_urls(citus, url):
    name = url.rpartition("/")[2].partition("?")[0]
    return [server.url(name) for server in citus.nodes]


def harvest(url, day, titles):
    """A worker notes what a harvest saw of the first datasets."""
    with (
        closing(Database(Path(), url, role=Role.WORKER)) as database,
        closing(database.session()) as session,
    ):
        assert session.fetch_one(b"SELECT current_user::text") == (Role.WORKER,)

        def note(cursor):
            seen = [
                Dataset(
                    record=f"d{number}",
                    iri=f"{PORTAL}d{number}",
                    title=title,
                    distributions=(Distribution(url=f"http://h{number}/", title=title, format="CSV"),),
                )
                for number, title in titles.items()
            ]
            note_datasets(cursor, PORTAL, "ckan", day, seen)
            note_whole(cursor, PORTAL, day)

        session.transact(note)


def test_an_archive_on_a_cluster_is_upgraded_with_its_rows_places_and_rights(
    older, citus, database_of, tamias_at, table
):
    plain, cluster = older
    here, there = cluster.env["TAMIAS_DB"], plain.env["TAMIAS_DB"]
    columns = dict(asked(here, TABLES))
    before = contents(here, columns)
    assert before == contents(there, columns)
    assert all(before[name] for name in ("url", "described", "offered", "absence", "source_record"))

    for tamias in older:
        done(tamias.run("list"))
    assert asked(here, "SELECT schema_version FROM meta") == [(migrations()[-1].number,)]
    after = contents(here, columns)
    assert {name: rows for name, rows in after.items() if rows != before[name]} == {}
    assert contents(here, dict(asked(here, TABLES))) == contents(there, dict(asked(there, TABLES)))

    fresh = tamias_at("fresh")
    fresh.env |= {"TAMIAS_DB": database_of("fresh"), "PGOPTIONS": ""}
    done(fresh.run("cluster init", "--shards", "8"))
    new = fresh.env["TAMIAS_DB"]
    for what, statement in SHAPES.items():
        assert asked(here, statement) == asked(new, statement), what
    places = dict(asked(here, PLACES))
    assert places == dict(asked(new, PLACES))
    assert set(dict(asked(here, TABLES))) | {"meta"} <= set(places)
    assert {name for name, kind in places.items() if kind == "reference"} == set(citus_tables.REFERENCED)
    assert (places["described"], places["offered"], places["earlier_description"]) == ("local",) * 3
    assert places["url"] == "distributed"
    table.append(
        f"{'Citus: upgraded from ' + str(SCHEMAS[0]):<28}{sum(map(len, before.values()))} rows of"
        f" {len(before)} tables kept, {len(places)} tables placed as in a new one"
    )


def test_a_worker_at_a_node_lets_the_coordinator_upgrade(older, citus):
    _, cluster = older
    here = cluster.env["TAMIAS_DB"]
    cluster.env["TAMIAS_DB"] = node_urls(citus, here)[0]
    done(cluster.run("list"))
    assert asked(here, "SELECT schema_version FROM meta") == [(migrations()[-1].number,)]
    assert dict(asked(here, PLACES))["earlier_description"] == "local"
    assert not unsaid(done(cluster.run("doctor")))


def test_a_node_of_a_cluster_without_data_says_that_there_is_none(citus, database_of, tamias_at):
    tamias = tamias_at("empty")
    tamias.env |= {"TAMIAS_DB": node_urls(citus, database_of("empty"))[0], "PGOPTIONS": ""}
    refused = tamias.run("list")
    assert refused.returncode != 0
    assert "holds no Tamias data" in refused.stderr


def test_roles_have_their_rights_on_a_cluster_that_was_upgraded(older, citus):
    plain, cluster = older
    for tamias in older:
        done(tamias.run("list"))
    here, there = cluster.env["TAMIAS_DB"], plain.env["TAMIAS_DB"]
    roles = {"roles": list(Role)}
    wanted = asked(there, RIGHTS, **roles)
    assert {name for name, *_ in wanted} >= {"described", "offered", "earlier_description"}
    for url in (here, *node_urls(citus, here)):
        assert asked(url, RIGHTS, **roles) == wanted
        for role, statements in REFUSED.items():
            with ExitStack() as stack:
                database = stack.enter_context(closing(Database(Path(), url, role=role)))
                session = stack.enter_context(closing(database.session()))
                assert session.fetch_one(b"SELECT current_user::text") == (role,)
                assert session.fetch_all(b"SELECT FROM earlier_description") == []
                for statement in statements:
                    with pytest.raises(DatabaseError, match="permission denied"):
                        session.execute(statement.encode())


def test_workers_of_an_upgraded_cluster_store_the_words_from_before_the_upgrade(older, citus):
    plain, cluster = older
    for tamias in older:
        done(tamias.run("list"))
    here, there = cluster.env["TAMIAS_DB"], plain.env["TAMIAS_DB"]
    for day, titles in {70: {1: "New", 3: "Title ü 3"}, 80: {1: "Newer", 3: "Last"}}.items():
        harvest(there, day, titles)
        harvest(here if day == 70 else node_urls(citus, here)[0], day, titles)
    earlier = asked(here, EARLIER)
    assert ("d1", "", 70, 59, f"{PORTAL}d1", "Title ü 1", None) in earlier
    assert ("d1", "", 80, 70, f"{PORTAL}d1", "New", None) in earlier
    assert ("d3", "", 80, 60, f"{PORTAL}d3", "Title ü 3", None) in earlier
    assert earlier == asked(there, EARLIER)
    columns = dict(asked(there, TABLES))
    found, wanted = contents(here, columns), contents(there, columns)
    for name in ("described", "offered", "absence", "earlier_description"):
        assert found[name] == wanted[name], name

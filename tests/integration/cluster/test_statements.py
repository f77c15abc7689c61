"""Every statement of the program is run by a coordinator and by a node, as the owner who is no superuser.

Each has parameters, as the program gives them, and is rolled back. What one server takes, a cluster takes.
"""

import re
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest

from tamias.database.citus import distribute
from tamias.database.connect import Database
from tamias.database.sql import statements

PARAMETER = re.compile(r"%\((\w+)\)b::([\w.]+(?:\[\])?)")
RUN = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "MERGE")
ELSEWHERE = ("embedded/login.sql", "database/rights.sql", "database/roles.sql", "database/citus.sql")
"""Not asked on a cluster by those who crawl, or no statements with a plan."""
COORDINATORS = {
    "features/strategy/strategy.sql:begin_version",
    "sinks/outbox.sql:add_sink",
    "frontier/service.sql:make_crawl",
    "features/stats/figures.sql:states",
    "features/pages/pages.sql:planned",
}
"""Crawls, sinks and strategies have small numbers, which no other node gives out; samples are taken there."""
ONE_SERVER = {
    "archive/stored_files.sql:dead_writers",
    "frontier/frontier.sql:put_new",
    "frontier/service.sql:analyse_frontier",
}
"""Not asked on a cluster: the program looks first."""
VALUES = {
    "bool": "true",
    "uuid": "01890000-0000-7000-8000-000000000001",
    "jsonb": "{}",
    "bytea": r"\\x00",
    "timestamptz": "2026-01-01",
}
_SECONDS = 20


def blocks():
    """All statements as `(file and name, text)`."""
    root = Path(str(files("tamias")))
    for path in sorted(root.rglob("*.sql")):
        place = path.relative_to(root)
        if path.parent.name in {"schema", "migrations"} or str(place).endswith(ELSEWHERE):
            continue
        package = ".".join(("tamias", *place.parent.parts))
        for each in statements(package, path.name).values():
            yield f"{place}:{each.name}", each.text.decode()


def prepared(text):
    """What makes the statement, and what runs it."""
    found = dict(PARAMETER.findall(text))
    names = list(found)
    made = PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}::{match[2]}", text).replace("%%", "%")
    kinds = f"({', '.join(found.values())})" if found else ""
    given = f"({', '.join(map(literal, found.values()))})" if found else ""
    return f"PREPARE tried{kinds} AS {made}", f"EXECUTE tried{given}"


def literal(kind):
    one = VALUES.get(kind.removesuffix("[]"), "1")
    return f"E'{{\"{one}\"}}'::{kind}" if kind.endswith("[]") else f"E'{one}'::{kind}"


@pytest.fixture(scope="module")
def placed(citus, tmp_path_factory):
    """The name of a database whose tables are on a cluster."""
    url = citus.make_database("statements")
    with (
        closing(Database(tmp_path_factory.mktemp("none") / "none", url, buckets=16)) as database,
        closing(database.session()) as session,
    ):
        distribute(session, 8)
    yield "statements"
    citus.drop_database("statements")


@pytest.fixture(scope="module")
def by_one_server(citus, asked, tmp_path_factory):
    """What one server has against each statement that it does not take."""
    plain = citus.coordinator.make_database("plain_statements")
    Database(tmp_path_factory.mktemp("plain") / "none", plain, buckets=16).close()
    yield refusals(plain, asked)
    citus.coordinator.execute("DROP DATABASE plain_statements WITH (FORCE)")


def refusals(url, asked):
    found = {}
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute(f"SET search_path = tamias, public; SET statement_timeout = '{_SECONDS}s'")
        for name, text in asked.items():
            try:
                with connection.transaction(force_rollback=True):
                    for part in prepared(text):
                        connection.execute(part.encode())
            except psycopg.Error as error:
                found[name] = str(error).splitlines()[0]
            connection.execute("DEALLOCATE ALL")
    return found


@pytest.fixture(scope="module")
def asked():
    return {name: text for name, text in blocks() if text.startswith(RUN) and name not in ONE_SERVER}


def test_most_statements_can_be_run_without_the_program(asked, by_one_server):
    """Those that need words filled in, or a table of their own, are run by the tests of the verbs."""
    assert len(by_one_server) < len(asked) / 8, by_one_server


@pytest.mark.parametrize("place", ["coordinator", "node"])
def test_a_cluster_takes_every_statement_that_one_server_takes(
    asked, placed, by_one_server, citus, place, table
):
    server = citus.coordinator if place == "coordinator" else citus.nodes[0]
    among = {name: text for name, text in asked.items() if name not in by_one_server}
    if place == "node":
        among = {name: text for name, text in among.items() if name not in COORDINATORS}
    assert refusals(server.url(placed), among) == {}
    table.append(f"{f'Citus: statements, {place}':<28}{len(among)} of {len(asked)} run, none refused")

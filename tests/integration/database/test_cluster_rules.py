"""Rules that let the schema stand on a cluster of servers, seen on one; `../cluster` has a real cluster."""

import re
from contextlib import closing

import pytest

from tamias.database.citus import REFERENCED, tables_by_bucket

TRIGGERS = b"""
SELECT pg_proc.proname::text, pg_trigger.tgoldtable::text, pg_trigger.tgnewtable::text, pg_proc.prosrc
FROM pg_trigger JOIN pg_proc ON pg_proc.oid = pg_trigger.tgfoid
JOIN pg_class ON pg_class.oid = pg_trigger.tgrelid
WHERE pg_class.relnamespace = 'tamias'::regnamespace AND NOT pg_trigger.tgisinternal
"""
FUNCTIONS = b"""
SELECT pg_proc.proname::text, pg_proc.prosrc
FROM pg_proc JOIN pg_language ON pg_language.oid = pg_proc.prolang
WHERE pg_proc.pronamespace = 'tamias'::regnamespace AND pg_language.lanname = 'sql' AND pg_proc.pronargs > 0
"""
TABLES = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:tamias\.)?(\w+)")


@pytest.fixture
def session(database):
    with closing(database.session()) as session:
        yield session


def test_every_table_with_a_bucket_is_distributed_by_it_or_known_not_to_be(session):
    """On a cluster a table without the bucket first in its key stays on the coordinator."""
    having = session.fetch_all(
        b"SELECT pg_class.relname::text FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
        b" WHERE relnamespace = 'tamias'::regnamespace AND relkind IN ('r', 'p') AND attname = 'bucket'"
    )
    distributed = set(session.transact(tables_by_bucket))
    assert {name for (name,) in having} - distributed == {"rescoring"}


def test_every_table_that_a_cluster_copies_to_all_nodes_has_a_key(session):
    """Else it could not be copied to a new node while it is in use."""
    with_key = session.fetch_all(
        b"SELECT conrelid::regclass::text FROM pg_constraint"
        b" WHERE contype = 'p' AND connamespace = 'tamias'::regnamespace"
    )
    assert set(REFERENCED) <= {name for (name,) in with_key}


def test_no_distributed_table_has_a_trigger(session):
    found = session.fetch_all(
        b"SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
        b" WHERE relnamespace = 'tamias'::regnamespace AND relkind IN ('r', 'p') AND NOT tgisinternal"
    )
    assert {name for (name,) in found} & {*session.transact(tables_by_bucket), *REFERENCED} == set()


def test_no_statement_of_a_trigger_reads_the_rows_of_its_statement_beside_a_table(session):
    """Citus plans none that has both: the rows are read into arrays first (0041_clusters.sql)."""
    wrong = {}
    for name, old, new, source in session.fetch_all(TRIGGERS):
        rows = {old, new} - {None}
        for statement in source.split(";"):
            tables = set(TABLES.findall(statement)) - {"unnest"}
            if tables & rows and tables - rows - {"names", "numbers", "types", "times"} - _variables(source):
                wrong[name] = statement.strip()
    assert wrong == {}


def test_no_function_in_sql_asks_tables_by_its_parameters(session):
    """Citus takes none; one in PL/pgSQL it does."""
    wrong = {name for name, source in session.fetch_all(FUNCTIONS) if "tamias." in source}
    assert wrong <= {"search_words", "size_bucket"}


def _variables(source):
    """What a SELECT may write to: its INTO is not that of an INSERT."""
    return set(re.findall(r"(\w+) (?:int8?|text|bytea)(?:\[\])?\b", source))

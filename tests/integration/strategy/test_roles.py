"""On somebody else's server the role may not be ours to make: then we say what its administrator does."""

from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict


@pytest.fixture
def administrator(database):
    with closing(psycopg.connect(database.embedded.address(), autocommit=True)) as connection:
        yield connection.execute


@pytest.fixture
def elsewhere(database, administrator):
    """The URL of a database whose owner is nobody else."""
    administrator("CREATE ROLE plain LOGIN")
    administrator("CREATE DATABASE elsewhere OWNER plain")
    place = conninfo_to_dict(database.embedded.address())
    port = f"&port={place['port']}" if "port" in place else ""
    return f"postgresql://plain@/elsewhere?host={quote(place['host'], safe='')}{port}"


def test_a_user_who_may_not_make_roles_is_told_what_an_administrator_does(strategy, by_word, elsewhere):
    done = strategy("apply", by_word, "--db", elsewhere)
    assert done.code == 1
    assert "CREATE ROLE tamias_strategy NOLOGIN; GRANT tamias_strategy TO plain" in done.err


def test_with_the_role_an_ordinary_user_can_have_strategies(strategy, by_word, elsewhere, administrator):
    administrator("CREATE ROLE tamias_strategy NOLOGIN")
    administrator("GRANT tamias_strategy TO plain")
    assert strategy("apply", by_word, "--db", elsewhere).code == 0
    assert "0.95" in strategy("test", "http://a.example/good", "--db", elsewhere).out

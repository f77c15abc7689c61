"""On somebody else's server the role may not be ours to make: then we say what its administrator does."""

from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest


@pytest.fixture
def administer(administrator):
    """Runs a statement as the superuser of the server."""
    with closing(psycopg.connect(**administrator, autocommit=True)) as connection:
        yield connection.execute


@pytest.fixture
def elsewhere(administrator, administer):
    """The URL of a database whose owner is nobody else."""
    administer("CREATE ROLE plain LOGIN")
    administer("CREATE DATABASE elsewhere OWNER plain")
    yield f"postgresql://plain@/elsewhere?host={quote(administrator['host'], safe='')}&port=5432"
    administer("DROP DATABASE elsewhere WITH (FORCE)")
    administer("DROP ROLE plain")
    administer("DROP ROLE IF EXISTS tamias_strategy")


def test_a_user_who_may_not_make_roles_is_told_what_an_administrator_does(strategy, by_word, elsewhere):
    done = strategy("apply", by_word, "--db", elsewhere)
    assert done.code == 1
    assert "CREATE ROLE tamias_strategy NOLOGIN; GRANT tamias_strategy TO plain" in done.err


def test_with_the_role_an_ordinary_user_can_have_strategies(strategy, by_word, elsewhere, administer):
    administer("CREATE ROLE tamias_strategy NOLOGIN")
    administer("GRANT tamias_strategy TO plain")
    assert strategy("apply", by_word, "--db", elsewhere).code == 0
    assert "0.95" in strategy("test", "http://a.example/good", "--db", elsewhere).out

"""A function of the server's own that looks neither for a limit of time nor for an order to end."""

import json
from contextlib import closing

import pytest

from tests.database_servers import DatabaseServer
from tests.messages import unsaid

DEAF = "length(translate(repeat(url, 1000000), repeat('!', 20000), '?'))"
"""It takes many minutes."""
WORKING = (
    "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%tamias_scores%' AND pid <> pg_backend_pid()"
)


@pytest.fixture
def server(tmp_path, tamias_at):
    """Its sessions are killed at the end: nothing else ends them."""
    with closing(DatabaseServer(tmp_path / "server")) as server:
        yield server


@pytest.fixture
def strategy(server, tamias_at, tmp_path):
    tamias = tamias_at("data")
    tamias.env |= {"TAMIAS_DB": server.new_database(), "TAMIAS_STRATEGY__SECONDS": "1"}

    def apply(when):
        file = tmp_path / "strategy.sql"
        file.write_text(
            "CREATE FUNCTION score_url(url text) RETURNS float8 LANGUAGE sql AS"
            f" $$ SELECT CASE WHEN {when} THEN {DEAF} ELSE 0.5 END $$"
        )
        return tamias.run("strategy apply", str(file))

    tamias.apply = apply
    return tamias


def test_a_strategy_that_cannot_be_ended_is_refused_in_time(strategy, server):
    done = strategy.apply("true")
    assert done.returncode == 2, done.stderr
    assert not unsaid(done.stderr, "1", "strategy.seconds")
    assert server.rows(strategy.env["TAMIAS_DB"], WORKING) == [(1,)]
    done = strategy.apply("false")
    assert done.returncode == 2, done.stderr
    assert not unsaid(done.stderr, part=2)


def test_a_crawl_leaves_a_strategy_that_cannot_be_ended_and_goes_on(strategy, server, site):
    site.pages["/"] = b"".join(b"<> <#to> <%s> ." % site.url(path).encode() for path in ("/1", "/slow", "/3"))
    site.pages |= dict.fromkeys(("/1", "/slow", "/3"), b"<> <#is> <#there> .")
    done = strategy.apply("strpos(url, 'slow') > 0")
    assert done.returncode == 0, done.stderr
    done = strategy.run("crawl", "--allow-private", "--delay", "0", "--workers", "1", site.url("/"))
    assert done.returncode == 0, done.stderr
    assert {path for path, _ in site.log} == {"/", "/1", "/slow", "/3", "/robots.txt"}
    assert server.rows(strategy.env["TAMIAS_DB"], WORKING) == [(1,)]
    (listed,) = json.loads(strategy.run("strategy list", "--json").stdout)
    assert listed["state"] not in {"in force", "active"}
    assert not unsaid(listed["problem"])

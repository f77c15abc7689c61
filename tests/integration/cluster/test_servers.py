"""PostgreSQL of every version that is supported, as administrators run it, and PgBouncer before one."""

import json
import os
from contextlib import closing

import psycopg
import pytest

from tests.messages import unsaid

from .conftest import FULL, done

MAJORS = (15, 16, 17, 18)
PAGES = {
    "/a.ttl": b"<> <urn:x:p> <b.ttl>, <c.ttl> .",
    "/b.ttl": b'<> <urn:x:p> "b" .',
    "/c.ttl": b"<> <urn:x:p> <a.ttl> .",
}


@pytest.fixture
def at(tamias_at):
    def make(url):
        tamias = tamias_at(f"data-{os.urandom(3).hex()}")
        tamias.env |= {"TAMIAS_DB": url}
        return tamias

    return make


def new_database(server):
    name = f"tamias_{os.urandom(3).hex()}"
    server.make_database(name)
    return name


def worked(tamias, site, reply, tmp_path):
    """A crawl, an archive with two versions, a strategy, a backup: what a user sees of them."""
    site.pages |= PAGES
    csv = site.url("/t.csv")
    for number, body in enumerate((b"a\n1\n", b"a\n1\n2\n")):
        site.pages["/t.csv"] = reply(200, body, **{"Content-Type": "text/csv"})
        if number == 0:
            done(tamias.crawl(site.url("/a.ttl")))
            done(tamias.run("add", csv))
        done(tamias.crawl("--recrawl", *([csv] if number else [])))
    strategy = tmp_path / "strategy.sql"
    strategy.write_text(
        "CREATE FUNCTION score_url(u known_url) RETURNS float8 LANGUAGE sql AS $$ SELECT 0.5 $$;"
    )
    done(tamias.run("strategy apply", str(strategy)))
    done(tamias.run("check"))
    versions = json.loads(done(tamias.run("versions", csv, "--json")))
    return tamias.quads(), [(each["number"], each["sha256"]) for each in versions]


@pytest.fixture
def expected(tamias, site, reply, tmp_path):
    """What the embedded database gives."""
    if not FULL:
        pytest.skip("compared with servers that are run by `make nightly`")
    (tmp_path / "embedded").mkdir()
    return worked(tamias, site, reply, tmp_path / "embedded")


@pytest.mark.parametrize("major", MAJORS)
def test_every_version_serves_an_owner_who_is_no_superuser(
    major, server_of, at, expected, site, reply, tmp_path, table
):
    server = server_of(major)
    name = new_database(server)
    tamias = at(server.url(name))
    assert worked(tamias, site, reply, tmp_path) == expected
    told = done(tamias.run("doctor"))
    assert "no superuser" in told
    assert not unsaid(told)
    version = server.execute("SHOW server_version")[0][0]
    table.append(f"{f'PostgreSQL {version}':<28}TLS, SCRAM, owner without rights: same quads and versions")


def test_a_server_without_tls_is_refused_where_the_address_wants_it(server_of):
    server = server_of(18)
    with pytest.raises(psycopg.OperationalError, match="no encryption"):
        psycopg.connect(server.url(new_database(server)).replace("verify-ca", "disable"))


@pytest.mark.parametrize("ignored", [False, True], ids=["options are refused", "options are ignored"])
def test_a_pooler_that_keeps_sessions_is_as_good_as_the_server(
    ignored, pooler_of, server_of, at, expected, site, reply, tmp_path, table
):
    settings = {"ignore_startup_parameters": "options"} if ignored else {}
    pooler = pooler_of(pool_mode="session", **settings)
    tamias = at(pooler.url(new_database(server_of(18))))
    assert worked(tamias, site, reply, tmp_path) == expected
    assert not unsaid(done(tamias.run("doctor")))
    how = "options ignored" if ignored else "options refused"
    table.append(f"{f'PgBouncer, session, {how}':<38}same quads and versions")


@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize("ignored", [False, True], ids=["options are refused", "options are ignored"])
def test_a_pooler_that_shares_connections_is_refused_with_what_to_set(
    mode, ignored, pooler_of, server_of, at, site, table
):
    settings = {"ignore_startup_parameters": "options"} if ignored else {}
    pooler = pooler_of(pool_mode=mode, **settings)
    refused = at(pooler.url(new_database(server_of(18)))).crawl(site.url("/a.ttl"))
    assert refused.returncode == 1
    assert "pool_mode = session" in refused.stderr
    table.append(f"{f'PgBouncer, {mode}':<38}refused: {refused.stderr.strip()[:150]}")


def test_nothing_is_prepared_where_the_address_says_so(server_of, tmp_path):
    from tamias.database.connect import Database

    server = server_of(18)
    url = server.url(new_database(server))
    kept = b"SELECT count(*) FROM pg_prepared_statements"
    for word, expected in {"": True, "&prepare=on": True, "&prepare=off": False}.items():
        with closing(Database(tmp_path, url + word)) as database, closing(database.session()) as session:
            for _ in range(10):
                session.fetch_one(b"SELECT buckets FROM meta")
            assert (session.fetch_one(kept)[0] > 0) is expected

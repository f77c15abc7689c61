"""URLs that are put one by one over gRPC are stored by a cluster, and behind a pooler, as by one server."""

import os
from contextlib import closing, contextmanager

import psycopg
import pytest
from frontier_client import Client, Instance, Stream, discovered, known

from tamias.database.connect import Database

from .conftest import FULL, done

OK, SKIPPED = 0, 1
BUCKETS = "16"
HOSTS = 6
ROWS = {
    "url": "SELECT bucket, qid, crawl, lane, uid, status, fails, depth, score, cut, url, spelling, metadata,"
    " tags, due = 9223372036854775807 FROM url",
    "queue": "SELECT bucket, qid, crawl, lane, known, open, active, paused, held_to IS NULL FROM queue",
    "host": "SELECT bucket, qid, hkey, delay_ms, token FROM host",
}


@contextmanager
def running(data, url=None):
    """A client of a `tamias frontier` on the database, on an embedded one without an address.

    It is closed before a server is started: a child with gRPC's threads could not change its account.
    """
    instance = Instance(data, env={"TAMIAS_FRONTIER__BUCKETS": BUCKETS} | ({"TAMIAS_DB": url} if url else {}))
    try:
        with closing(Client(instance.address)) as client:
            yield client
    finally:
        instance.stop()


@pytest.fixture
def expected(tmp_path):
    """The verdicts and rows of an embedded database."""
    if not FULL:
        pytest.skip("compared with servers that are run by `make nightly`")
    with running(tmp_path / "embedded") as client:
        verdicts = put_all(client, lambda: None)
    with closing(Database(tmp_path / "embedded")) as database, closing(database.session()) as session:
        return verdicts, {
            name: sorted(session.fetch_all(asked.encode()), key=repr) for name, asked in ROWS.items()
        }


def put_all(client, interrupt):
    """Puts new and known URLs, alone and with others; gives the verdicts."""
    verdicts = []
    with closing(Stream(client)) as stream:
        for turn in range(8):
            for host in range(HOSTS):
                verdicts.append(stream.put(f"http://h{host}.example/{turn}"))
                verdicts.append(stream.put(f"http://h{host}.example/{turn // 2}"))
            verdicts.append(stream.put(f"http://h0.example/ü/{turn}", note=["a\tb", "é"]))
            if turn % 3 == 2:
                interrupt()
        verdicts.append(stream.put("http://h0.example/long", note=["x" * 100_000]))
    items = [discovered(f"http://h{number % HOSTS}.example/many/{number % 150}") for number in range(200)]
    verdicts += sorted(status for _, status in client.put(*items))
    done_with = [known(f"http://h{host}.example/0", 0) for host in range(HOSTS)]
    verdicts += [status for _, status in client.put(*done_with)]
    with closing(Stream(client)) as stream:
        verdicts += [stream.put(f"http://h{host}.example/last") for host in range(HOSTS)]
    return verdicts


def rows(url):
    with closing(psycopg.connect(url, options="-c search_path=tamias,public")) as connection:
        return {name: sorted(connection.execute(asked), key=repr) for name, asked in ROWS.items()}


def end_sessions(server, name):
    """As a server that is started again, or an administrator, does."""
    server.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        " AND application_name = 'tamias'"
    )


@pytest.mark.parametrize("place", ["coordinator", "node"])
def test_a_cluster_stores_the_urls_that_one_server_does(
    place, citus, database_of, tamias_at, expected, tmp_path, table
):
    url = database_of("puts")
    tamias = tamias_at("initialised")
    tamias.env |= {"TAMIAS_DB": url, "TAMIAS_FRONTIER__BUCKETS": BUCKETS, "PGOPTIONS": ""}
    done(tamias.run("cluster init", "--shards", "8"))
    name = url.rpartition("/")[2].partition("?")[0]
    server = citus.coordinator if place == "coordinator" else citus.nodes[0]
    with running(tmp_path / "data", server.url(name)) as client:
        verdicts = put_all(client, lambda: end_sessions(server, name))
    assert (verdicts, rows(url)) == expected
    table.append(f"{f'Citus: gRPC puts, {place}':<30}{len(expected[1]['url'])} URLs, the same rows")


@pytest.mark.parametrize("ignored", [False, True], ids=["options are refused", "options are ignored"])
def test_a_pooler_that_keeps_sessions_passes_puts(ignored, pooler_of, server_of, expected, tmp_path, table):
    server = server_of(18)
    settings = {"ignore_startup_parameters": "options"} if ignored else {}
    pooler = pooler_of(pool_mode="session", **settings)
    name = f"puts_{os.urandom(3).hex()}"
    server.make_database(name)
    with running(tmp_path / "data", pooler.url(name)) as client:
        verdicts = put_all(client, lambda: end_sessions(server, name))
    assert (verdicts, rows(server.url(name))) == expected
    table.append(f"{'PgBouncer, session: gRPC puts':<38}{len(expected[1]['url'])} URLs, the same rows")

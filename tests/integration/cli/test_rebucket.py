"""`tamias cluster rebucket`: the data in another number of buckets. A real cluster is in ../cluster."""

import os
import time
from contextlib import ExitStack, closing
from threading import Timer
from urllib.parse import urlencode
from uuid import UUID

import psycopg
import pytest
from click.testing import CliRunner

from tamias.cli.main import cli
from tamias.database.connect import Database
from tamias.features.cluster import rebucket as rebucketing
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Outcome
from tamias.model.errors import DatabaseError, UsageError
from tamias.model.item import NEVER, Item
from tamias.model.lease import Done, Return

COPY_ROWS = rebucketing._copy_rows
WAIT_FOR_REPORTS = rebucketing._wait_for_reports
CAPTURE = UUID("01890000-0000-7000-8000-000000000001")


@pytest.fixture
def empty(administrator):
    """`empty(name)` is the URL of an empty database."""

    def make(name):
        whole = f"{name}_{os.urandom(4).hex()}"
        with psycopg.connect(**administrator, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {whole}")
        return "postgresql:///?" + urlencode({**administrator, "dbname": whole})

    return make


@pytest.fixture
def source(empty, tmp_path):
    """The URL and a session of a database with one bucket."""
    url = empty("source")
    with closing(Database(tmp_path, url)) as database, closing(database.session()) as session:
        yield url, session


@pytest.fixture
def target(empty):
    return empty("target")


@pytest.fixture
def copied(source, target, tmp_path):
    """`copied(buckets)` is a session of the copy."""
    with ExitStack() as stack:

        def copy(buckets):
            cluster("rebucket", "--db", source[0], "--to", target, "--buckets", buckets)
            database = stack.enter_context(closing(Database(tmp_path, target)))
            return stack.enter_context(closing(database.session()))

        yield copy


@pytest.fixture(autouse=True)
def reported(source, monkeypatch):
    """Copies need not wait eleven seconds: the sessions of this test have ended, or report before each."""

    def report(there):
        others = (
            b"SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        while len(source[1].fetch_all(others)) > 1:  # the session of the copy
            time.sleep(0.05)
        source[1].execute(b"SELECT pg_stat_force_next_flush()")

    monkeypatch.setattr(rebucketing, "_wait_for_reports", report)


def cluster(*words):
    """`tamias cluster`: what it says, or how it ends."""
    done = CliRunner().invoke(
        cli, ["cluster", *map(str, words)], standalone_mode=False, catch_exceptions=True
    )
    if done.exception is not None:
        raise done.exception
    return done.output


def item(number):
    host = f"h{number % 30}.example"
    return Item(url=f"http://{host}/{number}", key=f"http://{host}/{number}", host=host, tags=("seed",))


def frontier(session):
    return PostgresFrontier(
        session, same_url=str.__eq__, delay_ms=0, clock=lambda: time.time_ns() // 1_000_000
    )


def drain(lending):
    """All that is due, visited."""
    urls = []
    while leases := lending.lease(100):
        urls += [task.url for lease in leases for task in lease.tasks]
        lending.finish([Return(lease=lease, done=tuple(map(done, lease.tasks))) for lease in leases])
    return urls


def done(task):
    return Done(task=task, outcome=Outcome.OK, due=NEVER, fails=0)


def visit_some(lending):
    lease = lending.lease(1, per_host=4)[0]
    lending.finish([Return(lease=lease, done=tuple(map(done, lease.tasks)))])
    return {task.url for task in lease.tasks}


def test_a_copy_in_other_buckets_is_crawled_to_its_end(source, copied):
    lending = frontier(source[1])
    lending.put([item(number) for number in range(300)])
    visited = visit_some(lending)
    copy = frontier(copied(16))
    assert copy.buckets == 16
    assert sorted(drain(copy)) == sorted({item(number).url for number in range(300)} - visited)


def test_the_copy_counts_as_the_original_does(source, copied):
    lending = frontier(source[1])
    lending.put([item(number) for number in range(60)])
    visit_some(lending)
    before, after = lending.figures().crawls, frontier(copied(4)).figures().crawls
    assert [(each.name, each.known, each.open, each.hosts) for each in after] == [
        (each.name, each.known, each.open, each.hosts) for each in before
    ]


def test_new_rows_of_the_copy_get_numbers_that_are_free(source, copied):
    source[1].transact(lambda cursor: cursor.execute("INSERT INTO crawl (name) VALUES ('one')"))
    copied(4).transact(lambda cursor: cursor.execute("INSERT INTO crawl (name) VALUES ('another')"))


def test_data_with_hosts_in_hand_is_not_copied(source, copied):
    lending = frontier(source[1])
    lending.put([item(1)])
    lending.lease(1)
    with pytest.raises(UsageError, match="stop the crawl"):
        copied(4)


def test_a_database_with_data_is_not_copied_into(source, copied):
    lending = frontier(source[1])
    lending.put([item(1)])
    copied(4)
    with pytest.raises(UsageError, match="name an empty one"):
        copied(4)


def test_an_odd_number_of_buckets_is_refused(copied):
    with pytest.raises(UsageError, match="not a power of two"):
        copied(12)


def test_a_server_without_citus_is_told_of(source):
    with pytest.raises(DatabaseError, match="has no Citus extension"):
        cluster("init", "--db", source[0])


def test_what_waits_for_a_sink_goes_where_its_capture_goes(source, copied):
    def fill(cursor):
        cursor.execute(
            "INSERT INTO capture (bucket, capture, qid, crawl, uid, started_at, ended_at, outcome, depth,"
            " url, reason, worker, agent)"
            " VALUES (0, %s, 7, 1, 1, 1, 2, 1, 0, 'http://a.example/', '', '1', 'x')",
            [CAPTURE],
        )
        cursor.execute(
            "INSERT INTO outbox (bucket, sink, document_key, due, started_at, capture, document)"
            " VALUES (0, 1, '\\x00', 0, 1, %s, 'http://a.example/')",
            [CAPTURE],
        )

    source[1].transact(fill)
    buckets = (
        "SELECT capture.bucket, outbox.bucket FROM capture JOIN outbox ON outbox.capture = capture.capture"
    )
    assert copied(4).transact(lambda cursor: cursor.execute(buckets).fetchall()) == [(3, 3)]


def test_a_copy_that_is_cut_off_goes_on_with_the_next_piece(source, target, tmp_path, monkeypatch, caplog):
    lending = frontier(source[1])
    lending.put([item(number) for number in range(300)])
    visited = visit_some(lending)
    pieces = cut_off_at(monkeypatch, "url 0 7")
    with pytest.raises(ConnectionAbortedError):
        cluster("rebucket", "--db", source[0], "--to", target, "--buckets", 8)
    with pytest.raises(DatabaseError, match="has not copied everything"):
        Database(tmp_path, target)
    with pytest.raises(UsageError, match="of other buckets"):
        cluster("rebucket", "--db", source[0], "--to", target, "--buckets", 4)
    again = cut_off_at(monkeypatch, None)
    cluster("rebucket", "--db", source[0], "--to", target, "--buckets", 8)
    assert again[0] == pieces[-1] == "url 0 7", "what was cut off is copied again, and nothing before it"
    assert not set(again) & set(pieces[:-1])
    with closing(Database(tmp_path, target)) as database, closing(database.session()) as session:
        assert rows_of(session) == rows_of(source[1])
        assert sorted(drain(frontier(session))) == sorted({item(n).url for n in range(300)} - visited)


def test_data_that_changes_while_it_is_copied_is_told_of(source, target, monkeypatch):
    lending = frontier(source[1])
    lending.put([item(number) for number in range(30)])
    cut_off_at(monkeypatch, "url 0 7")
    with pytest.raises(ConnectionAbortedError):
        cluster("rebucket", "--db", source[0], "--to", target, "--buckets", 8)
    lending.put([item(number) for number in range(30, 60)])
    source[1].execute(b"SELECT pg_stat_force_next_flush()")
    cut_off_at(monkeypatch, None)
    with pytest.raises(UsageError, match="changed since"):
        cluster("rebucket", "--db", source[0], "--to", target, "--buckets", 8)


def test_what_a_session_wrote_before_the_copy_is_no_change(source, target, monkeypatch):
    writer = psycopg.connect(source[0], autocommit=True)
    writer.execute("SET search_path TO tamias")
    for name in ("one", "two"):  # the second within a second of the first: it is reported at the end
        writer.execute("INSERT INTO crawl (name) VALUES (%s)", [name])
    source[1].execute(b"SELECT pg_stat_force_next_flush()")
    leaves = Timer(1.0, writer.close)
    leaves.start()

    def wait(there):
        monkeypatch.setattr(rebucketing, "UNREPORTED", 60.0)
        source[1].close()
        WAIT_FOR_REPORTS(there)

    monkeypatch.setattr(rebucketing, "_wait_for_reports", wait)
    monkeypatch.setattr(rebucketing, "_copy_rows", lambda *piece: (writer.close(), COPY_ROWS(*piece)))
    cluster("rebucket", "--db", source[0], "--to", target, "--buckets", 8)
    leaves.join()


def cut_off_at(monkeypatch, last):
    """The process is lost after it copied the rows of a piece, before the end of the transaction."""
    begun = []

    def copy(there, here, piece, buckets):
        begun.append(piece.name)
        COPY_ROWS(there, here, piece, buckets)
        if piece.name == last:
            raise ConnectionAbortedError

    monkeypatch.setattr(rebucketing, "_copy_rows", copy)
    return begun


def rows_of(session):
    asked = {
        "url": b"SELECT qid, crawl, uid, due, score, status, url, tags FROM url ORDER BY qid, uid",
        "host": b"SELECT qid, hkey, ready_at, visits FROM host ORDER BY qid",
        "queue": b"SELECT qid, crawl, lane, known, open FROM queue ORDER BY qid, crawl, lane",
    }
    return {name: session.fetch_all(text) for name, text in asked.items()}

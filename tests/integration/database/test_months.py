"""Captures by month: the last part is divided in time."""

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from tamias.database.connect import Database
from tamias.database.months import divide_months, first_id, next_month
from tests.integration.serve.conftest import Running
from tests.integration.serve.test_webhooks import wait_until

PUT = """
INSERT INTO capture (bucket, capture, qid, crawl, uid, started_at, ended_at, outcome, depth, url, reason,
                     worker, agent)
SELECT %(bucket)s, id, 1, 1, row_number() OVER (), 1, 2, 1, 0, 'http://a.example/' || id, '', 'w', 'a'
FROM unnest(%(ids)s::uuid[]) AS id"""
PARTS = """
SELECT part.relname::text FROM pg_inherits JOIN pg_class AS part ON part.oid = inhrelid
WHERE inhparent = 'tamias.capture'::regclass ORDER BY 1"""


@pytest.fixture
def empty(administrator):
    """A connection to an empty database."""
    name = "months"
    with psycopg.connect(**administrator, autocommit=True) as boss:
        boss.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        place = {**administrator, "dbname": name, "options": "-c search_path=tamias,public"}
        with psycopg.connect(**place, autocommit=True) as connection:
            yield connection
        boss.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def place_of(empty, administrator):
    """The URL of that database."""
    where = f"host={administrator['host']}&port={administrator['port']}"
    return f"postgresql://{administrator['user']}@/{empty.info.dbname}?{where}"


@pytest.fixture
def database(place_of):
    """The database as Tamias opens it."""
    with closing(Database(Path(), place_of)) as made:
        yield made


def ids(moment, count=3):
    return [UUID(int=first_id(moment).int + number) for number in range(count)]


def put(connection, moment, count=3):
    made = ids(moment, count)
    connection.execute(PUT, {"bucket": 0, "ids": made})
    return made


def placed(connection):
    """Which ids are in which part."""
    found = {}
    for part, name in connection.execute(
        "SELECT tableoid::regclass::text, capture FROM capture ORDER BY capture"
    ):
        found.setdefault(part, []).append(name)
    return found


def test_the_view_of_pages_shows_the_captures_of_every_month(database):
    with closing(database.session()) as session:
        made = session.transact(
            lambda cursor: put(cursor, datetime.now(UTC)) + put(cursor, datetime(2100, 1, 1, tzinfo=UTC))
        )
        shown = session.fetch_all(b"SELECT url FROM pages")
    assert sorted(shown) == sorted((f"http://a.example/{name}",) for name in made)


def test_captures_of_a_month_to_come_go_to_a_part_of_their_own(database, monkeypatch):
    now = datetime.now(UTC)
    months = [next_month(now + timedelta(days=7))]
    for _ in range(3):
        months.append(next_month(months[-1]))
    with closing(database.session()) as session:
        made = session.transact(lambda cursor: put(cursor, now) + put(cursor, months[0]))
        assert divide_months(session) is None, "there is time"
        monkeypatch.setattr(session, "now", lambda: round(months[0].timestamp() * 1000) + 86_400_000)
        assert divide_months(session) == f"capture_{months[1]:%Y_%m}"
        assert divide_months(session) is None, "it is done"
        # Nobody divided for some months: the rows of all of them are in one part, and none was refused.
        late = session.transact(lambda cursor: [put(cursor, month) for month in months[1:]])
        monkeypatch.setattr(session, "now", lambda: round(months[3].timestamp() * 1000))
        following = next_month(months[3])
        assert divide_months(session) == f"capture_{following:%Y_%m}"
        last = session.transact(lambda cursor: put(cursor, following))
        found = session.transact(placed)
    assert found == {
        "capture_first": made[:3],
        f"capture_{months[0]:%Y_%m}": made[3:],
        f"capture_{months[1]:%Y_%m}": [name for each in late for name in each],
        f"capture_{following:%Y_%m}": last,
    }


def test_a_time_is_looked_for_in_its_own_month_alone(database, monkeypatch):
    start = next_month(datetime.now(UTC) + timedelta(days=7))
    with closing(database.session()) as session:
        monkeypatch.setattr(session, "now", lambda: round(start.timestamp() * 1000))
        divide_months(session)
        asked = {"first": first_id(start), "last": first_id(start + timedelta(days=1))}
        plan = session.fetch_all(
            b"EXPLAIN SELECT FROM capture WHERE bucket = 0 AND capture >= %(first)s AND capture < %(last)s",
            asked,
        )
    read = " ".join(line for (line,) in plan)
    assert f"capture_{start:%Y_%m}" in read
    assert "capture_first" not in read


def test_who_reads_all_captures_is_not_disturbed_and_the_division_waits(database, monkeypatch):
    start = next_month(datetime.now(UTC) + timedelta(days=7))
    with closing(database.session()) as session, closing(database.session()) as reader:
        monkeypatch.setattr(session, "now", lambda: round(start.timestamp() * 1000))
        session.transact(lambda cursor: put(cursor, start))
        reading = reader.rows(b"SELECT capture FROM capture ORDER BY capture", at_once=1)
        first = next(reading)
        assert divide_months(session) is None
        assert [first, *reading] == [(name,) for name in ids(start)]
        assert divide_months(session) is not None


def make_older(connection):
    """As if the database had been made three months ago: when its second part begins, and its name."""
    past = (datetime.now(UTC) - timedelta(days=90)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    [last] = [name for (name,) in connection.execute(PARTS) if name != "capture_first"]
    begin, bound = f"capture_{past:%Y_%m}", sql.Literal(str(first_id(past)))
    connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(last)))
    connection.execute("ALTER TABLE capture DETACH PARTITION capture_first")
    attach = "ALTER TABLE capture ATTACH PARTITION capture_first FOR VALUES FROM (MINVALUE) TO ({})"
    connection.execute(sql.SQL(attach).format(bound))
    make = "CREATE TABLE {} PARTITION OF capture FOR VALUES FROM ({}) TO (MAXVALUE)"
    connection.execute(sql.SQL(make).format(sql.Identifier(begin), bound))
    return past, begin


def test_a_service_divides_the_last_part_where_the_workers_are_elsewhere(empty, database, tmp_path, place_of):
    """As it is when the data was made three months ago, and nobody but workers used it since."""
    past, begin = make_older(empty)
    made = put(empty, past, 3) + put(empty, datetime.now(UTC), 3)
    coming = next_month(datetime.now(UTC) + timedelta(days=7))
    service = Running(tmp_path / "data", "--no-crawl", "--db", place_of)
    try:
        wait_until(lambda: (f"capture_{coming:%Y_%m}",) in empty.execute(PARTS).fetchall())
    finally:
        service.stop()
    assert placed(empty) == {begin: made}


def test_months_that_are_over_are_counted_once_and_again_when_they_change(
    empty, database, tamias_at, place_of
):
    past, _ = make_older(empty)
    put(empty, past - timedelta(days=40), 100)
    put(empty, datetime.now(UTC), 10)

    def stats():
        empty.execute("SELECT pg_stat_force_next_flush()")
        told = tamias_at("any").run("stats", "--db", place_of, "--json")
        assert told.returncode == 0, told.stderr
        rows = (
            "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables"
            " WHERE relname = 'capture_first'"
        )
        return json.loads(told.stdout)["corpus"]["outcomes"], empty.execute(rows).fetchone()

    first, read = stats()
    assert [(each["outcome"], each["attempts"]) for each in first] == [("ok", 110)]
    assert read >= (100,)
    assert stats() == (first, read), "the month that is over was not read again"
    put(empty, past - timedelta(days=50), 7)
    [again], read_again = stats()
    assert again["attempts"] == 117
    assert read_again >= (read[0] + 107,)

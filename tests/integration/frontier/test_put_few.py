"""URLs that are put in one round trip, a few or many new ones, leave the same rows as by many statements."""

from contextlib import closing

import pytest

from tamias.database.connect import Database
from tamias.frontier.put import UrlPut
from tamias.model.item import NEVER, Item

TABLES = {
    "host": b"SELECT hkey, ready_at, class, not_before, blocked_until, delay_ms, token FROM host ORDER BY 1",
    "queue": b"""SELECT qid, crawl, lane, next_due, class, active, known, open, again FROM queue
                 ORDER BY 1, 2, 3""",
    "url": b"""SELECT qid, crawl, uid, due, first_seen, score, depth, cut, url, spelling, metadata, tags
               FROM url ORDER BY 1, 2, 3""",
}


def items():
    for number in range(60):
        host, crawl = f"h{number % 7}.example", 1 + number % 2
        url = f"http://{host}/{number % 50}"
        due = [None, 5, NEVER, 2_000_000][number % 4]
        yield Item(
            url=url, key=url, host=host, crawl=crawl, due=due, score=number % 10 / 10, depth=number % 3,
            spelling=f"{url}#" if number % 5 == 0 else None,
            metadata='{"a":["b"]}' if number % 6 == 0 else None,
            tags=("kind=page",) if number % 9 == 0 else (),
        )  # fmt: skip


@pytest.mark.parametrize("durable", [True, False])
def test_one_after_another_is_as_all_at_once(tmp_path, durable):
    def rows(name, size):
        with closing(Database(tmp_path / name)) as database, closing(database.session()) as session:
            put = UrlPut(session, str.__eq__, clock=lambda: 1_000_000)
            put._may_put_new = name.startswith("new")
            some = list(items())
            some[50:50] = some[:5]  # known ones among others that are new
            taken = []
            for start in range(0, len(some), size):
                taken += put.put(some[start : start + size], shortens=False, durable=durable)
            return taken, {table: session.fetch_all(sql) for table, sql in TABLES.items()}

    assert rows("new", 1) == rows("plain", 1)
    together = rows("plain together", 20)
    assert rows("new together", 20) == together
    assert set(together[0]) == {True, False}


@pytest.mark.parametrize("count", [1, 5, 60])
def test_a_queue_that_was_removed_is_made_again(tmp_path, count):
    with closing(Database(tmp_path / "data")) as database, closing(database.session()) as session:
        put = UrlPut(session, str.__eq__)
        for time in range(3):
            urls = [f"http://h.example/{time}/{number}" for number in range(count)]
            some = [Item(url=url, key=url, host="h.example") for url in urls]
            assert put.put(some, shortens=False) == [True] * count
            assert session.fetch_one(b"SELECT sum(known)::int4 FROM queue") == (count,)
            session.execute(b"DELETE FROM url")
            session.execute(b"DELETE FROM queue")

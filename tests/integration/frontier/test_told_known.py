"""What clients say of known URLs leaves the same rows in one statement as URL by URL in many."""

import secrets
from contextlib import closing

import pytest

from tamias.database.connect import Database
from tamias.features.urlfrontier.held import Holds, Wish
from tamias.frontier import put as putting
from tamias.frontier.put import UrlPut
from tamias.model.item import NEVER, Item

# Not the classes: they follow at the next serving where the next due time is the same.
TABLES = {
    "host": b"SELECT hkey, blocked_until, delay_ms, token, ready_at > 9e18 FROM host ORDER BY 1",
    "queue": b"""SELECT qid, crawl, lane, next_due, active, known, open, again FROM queue
                 ORDER BY 1, 2, 3""",
    "url": b"""SELECT qid, crawl, uid, due, first_seen, score, url, spelling, metadata, tags, held_until
               FROM url ORDER BY 1, 2, 3""",
}
HELD = 9_000_000


def known_urls():
    for number in range(60):
        url = f"http://h{number % 7}.example/{number}"
        yield Item(
            url=url, key=url, host=f"h{number % 7}.example", crawl=1 + number % 2, score=number % 10 / 10,
            due=100 + number,  # each at another time, so that the same ones are held every time
        )  # fmt: skip


def told():
    """Known ones done, put off, with metadata, with tags, in another spelling; unknown ones; one twice."""
    for number in range(10, 80):
        url = f"http://h{number % 7}.example/{number}"
        yield Item(
            url=f"{url}?" if number % 11 == 0 else url, key=url, host=f"h{number % 7}.example",
            crawl=1 + number % 2, due=[NEVER, 2_000_000, 5][number % 3], overwrites=True,
            metadata='{"a":["b"]}' if number % 4 == 0 else None,
            tags=("kind=page",) if number % 9 == 0 else (), keeps_tags=number % 9 != 0,
        )  # fmt: skip
    again = "http://h5.example/12"
    yield Item(url=again, key=again, host="h5.example", due=3_000_000, overwrites=True, keeps_tags=True)


@pytest.mark.parametrize(("size", "limited"), [(7, False), (100, True)])
def test_in_one_statement_as_in_many(tmp_path, monkeypatch, size, limited):
    def rows(name):
        with closing(Database(tmp_path / name)) as database, closing(database.session()) as session:
            monkeypatch.setattr(session, "now", lambda: 1_000_000)
            monkeypatch.setattr(secrets, "randbelow", lambda _: 0)  # which class of hosts is looked at first
            put = UrlPut(session, lambda one, other: one.strip("?") == other.strip("?"))
            put.put(list(known_urls()), shortens=False)
            session.execute(b"UPDATE host SET delay_ms = 0")
            if limited:
                session.execute(b"UPDATE queue SET most_done = 3")
            Holds(session).next(Holds(session).begin(Wish(hosts=7, per_host=4, hold_ms=HELD)))
            some = list(told())
            taken = []
            for start in range(0, len(some), size):
                taken += put.put(some[start : start + size], shortens=False)
            return taken, {table: session.fetch_all(sql) for table, sql in TABLES.items()}

    quick = rows("quick")
    monkeypatch.setattr(putting, "_write_updates", lambda _cursor, _there, part, _is_update: part[0])
    assert quick == rows("slow")
    assert quick[0] == [True] * 71


def test_a_url_of_another_text_with_the_same_number_is_left_alone(tmp_path):
    with closing(Database(tmp_path / "data")) as database, closing(database.session()) as session:
        put = UrlPut(session, str.__eq__)
        url = "http://h.example/1"
        put.put([Item(url=url, key=url, host="h.example")], shortens=False)
        session.execute(b"UPDATE url SET url = 'http://h.example/2'")
        put.put(
            [Item(url=url, key=url, host="h.example", due=NEVER, overwrites=True, keeps_tags=True)],
            shortens=False,
        )
        assert session.fetch_all(b"SELECT url, due = 9223372036854775807 FROM url ORDER BY url") == [
            (url, True),
            ("http://h.example/2", False),
        ]
        assert session.fetch_one(b"SELECT known::int4, open::int4 FROM queue") == (2, 1)

"""How the database finds what a worker with an interest gets: by indexes, never by reading tables."""

from contextlib import closing

import pytest

from tamias.database.sql import statements
from tamias.frontier import queries
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.item import Item

LEASE = statements("tamias.frontier", "frontier.sql")["lease"].text
HOSTS, PAGES = 400, 12_000


@pytest.fixture
def session(clean_database):
    with closing(clean_database.session()) as session:
        frontier = PostgresFrontier(session, same_url=str.__eq__)
        pages = [(f"h{n % HOSTS}", f"http://h{n % HOSTS}/{n}", n) for n in range(PAGES)]
        frontier.put(
            [
                Item(url=url, key=url, host=host, tags=("rare",) if n % 100 == 0 else ("usual",))
                for host, url, n in pages
            ]
        )
        session.transact(lambda cursor: cursor.execute("ANALYZE host, queue, url"))
        yield session


def plan(session, **words):
    now = session.now()
    asked = {
        **queries.probes(0, 10), "crawls": None, "by_queue": True, "require": ["rare"], "forbid": [],
        "round_end": 0, "bucket": 0,
        "now": now, "token": 1, "lease_end": now, "hosts": 10, "per_host": 10, "queues": 3, **words,
    }  # fmt: skip
    lines = session.transact(lambda cursor: cursor.execute(b"EXPLAIN " + LEASE, asked).fetchall())
    return "\n".join(line[0] for line in lines)


@pytest.mark.parametrize(
    "words", [{}, {"require": [], "forbid": ["usual"]}, {"crawls": [1]}], ids=["require", "forbid", "crawl"]
)
def test_a_lease_with_an_interest_reads_hosts_queues_and_urls_by_index(session, words):
    told = plan(session, **words)
    assert "Index Scan using queue_due on queue" in told
    assert "Index Scan using url_due on url" in told
    for table in ("host", "queue", "url"):
        assert f"Seq Scan on {table}" not in told

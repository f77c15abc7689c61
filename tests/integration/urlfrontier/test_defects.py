"""What the reference gets wrong, and this service must not."""

import time
from itertools import pairwise

import pytest
from frontier_client import discovered, known

from tamias.database.sql import statements
from tamias.frontier.queries import probes

OK = 0


@pytest.mark.parametrize(
    ("key", "crawl"), [("_DEFAULT_", ""), ("a_b.example", ""), ("a.example", "my_crawl")]
)
def test_keys_and_crawls_with_underscores_are_served(client, key, crawl):
    client.discover("http://a.example/", key=key, crawl=crawl)
    (given,) = client.call("GetURLs")
    assert (given.url, given.key, given.crawlID) == ("http://a.example/", key, crawl or "DEFAULT")


def test_completing_a_url_twice_counts_once(client):
    client.discover("http://a.example/", "http://a.example/2")
    client.put(known("http://a.example/", 0))
    client.put(known("http://a.example/", 0), known("http://a.example/", 0))
    stats = client.stats()
    assert (stats.size, stats.counts["completed"]) == (1, 1)


def test_rescheduling_a_done_url_corrects_the_counts(client):
    client.put(known("http://a.example/", 0))
    client.put(known("http://a.example/", 4_000_000_000))
    stats = client.stats()
    assert (stats.size, stats.counts["completed"]) == (1, 0)


def test_a_blank_crawl_id_in_a_get_means_default(client):
    client.discover("http://a.example/")
    assert client.get(crawlID="") == ["http://a.example/"]


def served_at(client, times):
    """When a client that completes each URL before it asks for the next one gets them."""
    moments = []
    deadline = time.monotonic() + 20
    while len(moments) < times and time.monotonic() < deadline:
        if got := client.get(urls=1):
            moments.append(time.monotonic())
            client.put(known(got[0], 0))
        time.sleep(0.01)
    return [later - earlier for earlier, later in pairwise(moments)]


def test_a_queue_is_served_again_after_its_delay_and_not_a_second_later(client):
    client.discover(*(f"http://a.example/{number}" for number in range(4)))
    client.call("SetDelay", key="a.example", delay_requestable=1)
    gaps = served_at(client, 4)
    assert len(gaps) == 3
    assert min(gaps) > 0.9
    assert min(gaps) < 1.9


def test_a_delay_may_be_shorter_than_a_second(client):
    client.discover(*(f"http://a.example/{number}" for number in range(6)))
    client.call("SetDelay", key="a.example", delay_ms=50)
    assert min(served_at(client, 6)) < 0.9


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://user:secret@a.example/x", "a.example"),
        ("http://[2001:db8::1]:8080/x", "2001:db8::1"),
        ("HTTP://WWW.A.Example/x", "www.a.example"),
        ("http://a.example.:80/x", "a.example"),
    ],
    ids=["user", "IPv6", "upper case", "final dot"],
)
def test_the_queue_of_a_url_without_a_key_is_its_host(client, url, key):
    client.discover(url)
    assert list(client.call("ListQueues").values) == [key]


def test_a_hold_never_ends_early(client):
    client.call("SetDelay", delay_ms=0)
    client.discover("http://a.example/")
    began = time.monotonic()
    assert client.get(hold=2)
    while not client.get(hold=2):
        time.sleep(0.02)
    assert time.monotonic() - began >= 2


def test_a_date_of_eleven_digits_hides_nothing(client):
    client.put(known("http://a.example/far", 10**10), discovered("http://a.example/now"))
    assert client.get() == ["http://a.example/now"]


def test_a_done_url_keeps_its_metadata(client):
    client.put(known("http://a.example/", 0, reason=["gone"]))
    status = client.call("GetURLStatus", url="http://a.example/")
    assert list(status.known.info.metadata["reason"].values) == ["gone"]


def test_idle_queues_are_not_looked_at(client, frontier_session):
    client.put(*(known(f"http://h{number}.example/", 4_000_000_000) for number in range(2000)))
    client.discover("http://due.example/")
    now = frontier_session.now()
    asked = {
        **probes(0, 100),
        "bucket": 0,
        "now": now,
        "asked_at": now,
        "crawl": None,
        "lanes": None,
        "most_held": 10,
        "hosts": 100,
    }
    text = (
        b"EXPLAIN (ANALYZE, FORMAT JSON) "
        + statements("tamias.features.urlfrontier", "held.sql")["choose_hosts"].text
    )
    ((plan,),) = frontier_session.transact(lambda cursor: cursor.execute(text, asked).fetchall())
    assert rows_looked_at(plan[0]["Plan"]) < 100


def rows_looked_at(node):
    """Rows that the scans of a plan came across, those they threw away included."""
    seen = (
        node["Actual Rows"]
        + node.get("Rows Removed by Filter", 0)
        + node.get("Rows Removed by Index Recheck", 0)
    )
    own = seen * node["Actual Loops"] if "Scan" in node["Node Type"] else 0
    return own + sum(rows_looked_at(each) for each in node.get("Plans", ()))

"""What the service remembers of known URLs is never more than what the frontier knows."""

from contextlib import closing

import pytest
from frontier_client import Client, Instance, discovered, info, known, make

OK, SKIPPED = 0, 1
URLS = [f"http://a.example/{number}" for number in range(40)]


@pytest.fixture
def services(tmp_path):
    """Two instances on one database."""
    instances = [Instance(tmp_path / "data") for _ in range(2)]
    clients = [Client(each.address) for each in instances]
    yield clients
    for client in clients:
        client.close()
    for each in instances:
        each.stop()


def batch(client, urls, crawl=""):
    (answer,) = client.call(
        "PutDiscovered", make("DiscoveredBatch", ID="b", items=[info(url, "", crawl) for url in urls])
    )
    return list(answer.statuses)


REMOVALS = {
    "a queue is deleted": lambda client: client.call("DeleteQueue", key="a.example", crawlID="one").value,
    "the crawl is deleted": lambda client: client.call("DeleteCrawl", value="one").value,
    "old URLs are purged": lambda client: client.call("PurgeURLs", crawlID="one", days=0).value,
}


@pytest.mark.parametrize("removal", REMOVALS)
def test_urls_are_new_again_after_another_instance_removed_them(services, removal):
    first, second = services
    assert first.discover(*URLS, crawl="one") == [OK] * 40
    for _ in range(2):
        assert first.discover(*URLS, crawl="one") == [SKIPPED] * 40
        assert batch(first, URLS, "one") == [SKIPPED] * 40
    assert REMOVALS[removal](second) == 40
    assert batch(first, URLS[:20], "one") == [OK] * 20
    assert first.discover(*URLS, crawl="one") == [SKIPPED] * 20 + [OK] * 20
    assert second.call("CountURLs", crawlID="one").value == 40


def test_what_is_removed_from_one_crawl_stays_known_in_another(services):
    first, second = services
    for crawl in ("one", "two"):
        assert batch(first, URLS, crawl) == [OK] * 40
        assert batch(first, URLS, crawl) == [SKIPPED] * 40
    second.call("DeleteCrawl", value="one")
    assert batch(first, URLS, "two") == [SKIPPED] * 40
    assert batch(first, URLS, "one") == [OK] * 40


def test_known_and_new_urls_of_one_stream_are_answered_in_order_under_their_own_names(services):
    first, _ = services
    assert first.discover(*URLS[::2]) == [OK] * 20
    names = ["", "n", "ü", "x" * 200]
    items = [discovered(url, name=names[at % 4]) for at, url in enumerate(URLS)]
    for turn in range(2):
        expected = [
            (names[at % 4] or url, SKIPPED if turn or at % 2 == 0 else OK) for at, url in enumerate(URLS)
        ]
        assert first.put(*items) == expected


def test_a_known_item_is_written_however_often_its_url_was_discovered(services):
    first, second = services
    for expected in (OK, SKIPPED, SKIPPED):
        assert first.discover(URLS[0]) == [expected]
    for _ in range(2):
        assert first.put(known(URLS[0], 0, name="k")) == [("k", OK)]
    assert second.stats("a.example").counts["completed"] == 1
    assert first.discover(URLS[0]) == [SKIPPED]


def test_a_crawl_without_syncs_has_all_that_was_answered(tmp_path):
    data = tmp_path / "data"
    instance = Instance(data, "--no-sync", "loose", "--no-sync", "DEFAULT")
    try:
        with closing(Client(instance.address)) as client:
            for crawl in ("loose", "", "kept"):
                assert client.discover(*URLS, crawl=crawl) == [OK] * 40
                assert len(client.get(crawlID=crawl or "DEFAULT", hold=600)) == 40
                done = [known(url, 0, crawl=crawl, name=url) for url in URLS]
                assert client.put(*done) == [(url, OK) for url in URLS]
    finally:
        instance.stop()
    again = Instance(data)
    try:
        with closing(Client(again.address)) as client:
            for crawl in ("loose", "", "kept"):
                assert client.stats(crawl=crawl).counts["completed"] == 40
    finally:
        again.stop()

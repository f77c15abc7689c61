"""Several crawls with the same keys: what is set for a queue holds for that queue, and goes with it."""

import itertools
import time

import pytest
from frontier_client import Client, Instance

from tamias.frontier.service import Queues
from tests.messages import unsaid

CRAWLS = ("DEFAULT", "one", "two")
HOUR = 3600
PAIRS = list(itertools.permutations(CRAWLS, 2))


def fill(client, *crawls, urls=2, key="a.example"):
    for crawl in crawls:
        assert (
            client.discover(*(f"http://{key}/{n}" for n in range(urls)), key=key, crawl=crawl) == [0] * urls
        )


def get(client, crawl, urls=1, key="a.example"):
    return len(client.get(urls=urls, key=key, crawlID=crawl))


@pytest.mark.parametrize(("crawl", "other"), PAIRS)
def test_a_block_is_that_of_one_crawl(client, crawl, other):
    fill(client, crawl, other)
    client.call("BlockQueueUntil", key="a.example", crawlID=crawl, time=int(time.time()) + HOUR)
    assert (get(client, crawl), get(client, other)) == (0, 1)


@pytest.mark.parametrize(("crawl", "other"), PAIRS)
def test_a_window_is_that_of_one_crawl(client, crawl, other):
    fill(client, crawl, other)
    assert (get(client, crawl), get(client, crawl), get(client, other)) == (1, 0, 1)


@pytest.mark.parametrize(("crawl", "other"), PAIRS)
def test_a_delay_is_that_of_one_crawl(client, crawl, other):
    fill(client, crawl, other)
    for each, seconds in ((crawl, HOUR), (other, 0)):
        client.call("SetDelay", key="a.example", crawlID=each, delay_requestable=seconds)
    assert (get(client, crawl), get(client, other)) == (1, 1)
    time.sleep(0.02)
    assert (get(client, crawl, urls=2), get(client, other, urls=2)) == (0, 1)


def test_who_asks_for_any_crawl_is_given_the_queues_of_all(client):
    fill(client, *CRAWLS)
    given = client.call("GetURLs", max_urls_per_queue=1)
    assert sorted((each.crawlID, each.key) for each in given) == [(crawl, "a.example") for crawl in CRAWLS]


@pytest.mark.parametrize("crawl", CRAWLS)
@pytest.mark.parametrize("deletion", ["DeleteCrawl", "DeleteQueue"])
def test_nothing_that_was_set_outlives_its_queue(client, crawl, deletion):
    fill(client, crawl)
    client.call("SetDelay", key="a.example", crawlID=crawl, delay_requestable=HOUR)
    assert get(client, crawl) == 1
    client.call("BlockQueueUntil", key="a.example", crawlID=crawl, time=int(time.time()) + HOUR)
    client.call("SetCrawlLimit", key="a.example", crawlID=crawl, limit=1)
    words = {"value": crawl} if deletion == "DeleteCrawl" else {"key": "a.example", "crawlID": crawl}
    assert client.call(deletion, **words).value == 2
    fill(client, crawl)
    assert get(client, crawl) == 1
    assert get(client, crawl) == 0  # the usual delay of a second
    time.sleep(1.1)
    assert get(client, crawl, urls=2) == 1


@pytest.mark.parametrize(("crawl", "other"), PAIRS)
def test_what_another_crawl_has_set_outlives_a_deletion(client, crawl, other):
    fill(client, crawl, other)
    client.call("BlockQueueUntil", key="a.example", crawlID=other, time=int(time.time()) + HOUR)
    client.call("DeleteCrawl", value=crawl)
    assert get(client, other) == 0
    assert client.stats("a.example", other).size == 2


def test_every_call_means_the_queue_of_its_crawl(client):
    for number, crawl in enumerate(CRAWLS, 1):
        fill(client, crawl, urls=number)
    for number, crawl in enumerate(CRAWLS, 1):
        words = {"key": "a.example", "crawlID": crawl}
        assert client.stats("a.example", crawl).size == number
        assert client.call("CountURLs", **words).value == number
        assert len(client.call("ListURLs", **words)) == number
        assert list(client.call("ListQueues", crawlID=crawl).values) == ["a.example"]
        state = client.call("GetURLStatus", url="http://a.example/0", **words)
        assert (state.known.info.key, state.known.info.crawlID) == ("a.example", crawl)
    assert client.call("PurgeURLs", key="a.example", crawlID="one", days=0).value in {0, 2}
    assert client.stats("a.example", "two").size == 3


def test_the_size_of_a_list_is_what_was_sent(client):
    fill(client, "one", urls=1)
    fill(client, "one", urls=1, key="b.example")
    for words, size in (({}, 2), ({"size": 1}, 1), ({"start": 1}, 1), ({"start": 5}, 0), ({"size": 50}, 2)):
        answer = client.call("ListQueues", crawlID="one", **words)
        assert (answer.size, len(answer.values), answer.total) == (size, size, 2)


def test_the_operator_blocks_a_key_for_all_crawls(client, frontier_session):
    fill(client, *CRAWLS)
    queues = Queues(frontier_session, same_url=str.__eq__)
    assert queues.pause_for_all("a.example", 1000 * (int(time.time()) + HOUR))
    assert [get(client, crawl) for crawl in CRAWLS] == [0, 0, 0]
    assert queues.pause_for_all("a.example", 0)
    assert [get(client, crawl) for crawl in CRAWLS] == [1, 1, 1]
    assert not queues.pause_for_all("unknown.example", 0)


@pytest.fixture
def tamias_crawl(tamias, site):
    """A crawl of Tamias's own that knows a host and has asked nothing of it yet."""
    site.pages["/a"] = b'<> <#says> "a" .'
    begun = tamias.run("crawl", "--allow-private", "--max-time", "0", "--delay", "30", site.url("/a"))
    assert begun.returncode == 5, begun.stderr
    return "127.0.0.1"


@pytest.mark.parametrize("first", ["DEFAULT", "one"])
def test_a_host_that_tamias_asks_too_is_asked_at_its_delay_whoever_asks(tamias, tamias_crawl, first):
    service = Instance(tamias.data)
    client = Client(service.address)
    try:
        fill(client, "one", "two", key=tamias_crawl)
        fill(client, "two", key="other.example")
        second = "one" if first == "DEFAULT" else "DEFAULT"
        assert get(client, first, key=tamias_crawl) == 1
        assert get(client, second, key=tamias_crawl) == 0
        assert get(client, "two", key=tamias_crawl) == 0
        assert [each.key for each in client.call("GetURLs", max_urls_per_queue=1)] == ["other.example"]
        client.call("SetDelay", key=tamias_crawl, delay_requestable=0)
        time.sleep(1.1)  # the delay of the crawl's own queue
        assert get(client, second, key=tamias_crawl) == 1
    finally:
        client.close()
        service.stop()


def test_a_host_that_tamias_asks_too_is_given_out_once_in_an_answer_for_any_crawl(tamias, tamias_crawl):
    service = Instance(tamias.data)
    client = Client(service.address)
    try:
        fill(client, "one", "two", key=tamias_crawl)
        given = client.call("GetURLs", max_urls_per_queue=1)
        assert [each.key for each in given] == [tamias_crawl]
    finally:
        client.close()
        service.stop()


def test_clients_get_their_turn_although_a_crawl_works_on_the_host(tamias, site):
    site.pages |= {f"/{number}": b'<> <#says> "a" .' for number in range(60)}
    service = Instance(tamias.data)
    client = Client(service.address)
    try:
        fill(client, "one", key="127.0.0.1")
        client.call("SetDelay", key="127.0.0.1", crawlID="one", delay_requestable=3600)
        words = ("--allow-private", "--delay", "0.3", "--workers", "1")
        crawl = tamias.start("crawl", *words, *(site.url(f"/{number}") for number in range(60)))
        tamias.wait_until(lambda: len(site.log) > 2)
        tamias.wait_until(lambda: get(client, "one", key="127.0.0.1") == 1)
        assert crawl.poll() is None
        assert len(site.log) < 55
        crawl.kill()
    finally:
        client.close()
        service.stop()


def test_what_the_operator_blocked_stays_blocked_whoever_deletes_queues(tamias, tamias_crawl):
    service = Instance(tamias.data)
    client = Client(service.address)
    try:
        client.call("BlockQueueUntil", key=tamias_crawl, time=int(time.time()) + HOUR)
        client.call("DeleteCrawl", value="DEFAULT")
        fill(client, "DEFAULT", key=tamias_crawl)
        assert get(client, "DEFAULT", key=tamias_crawl) == 0
    finally:
        client.close()
        service.stop()


def test_crawls_share_politeness_where_that_is_wished_and_may_then_be_crawled_by_tamias(tamias, site):
    site.pages["/a"] = b'<> <#says> "a" .'
    service = Instance(tamias.data, "--shared-politeness", "--delay", "30")
    client = Client(service.address)
    try:
        fill(client, "one", "two", key="a.example")
        assert (get(client, "one"), get(client, "two")) == (1, 0)
        assert client.discover(site.url("/a"), crawl="three") == [0]
    finally:
        client.close()
        service.stop()
    done = tamias.crawl("--crawl", "three")
    assert done.returncode == 0, done.stderr
    assert len(tamias.quads()) == 1


def test_a_crawl_of_clients_is_not_crawled_by_tamias_in_silence(tamias, site):
    service = Instance(tamias.data)
    client = Client(service.address)
    try:
        fill(client, "one", key="a.example")
    finally:
        client.close()
        service.stop()
    done = tamias.crawl("--crawl", "one", site.url("/a"))
    assert done.returncode == 2
    assert not unsaid(done.stderr)
    assert "--shared-politeness" in done.stderr

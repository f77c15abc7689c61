"""The Java reference of the frontier API, where it is installed: both get the same questions."""

import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import grpc
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "integration" / "urlfrontier"))

from frontier_client import Client, Instance, known

from tests.interop.servers.running import free_port

HOUR = 3600
CRAWLS = ("DEFAULT", "one", "two")
KEYS = ("a.example", "b.example")
WINDOW = 2.3
"""The usual delay of a second is up to two in the reference, which counts whole seconds."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The address of the reference with RocksDB."""
    jar = os.environ.get("TAMIAS_URLFRONTIER_JAR")
    if not jar:
        pytest.skip("not run: TAMIAS_URLFRONTIER_JAR does not name the jar of the reference's service")
    port = free_port()
    words = [
        *("java", "-Xmx1g", "-jar", jar),
        *("-h", "127.0.0.1", "-p", str(port), f"rocksdb.path={tmp_path_factory.mktemp('rocks')}"),
        "implementation=crawlercommons.urlfrontier.service.rocksdb.RocksDBService",
    ]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with closing(Client(f"127.0.0.1:{port}")) as client:
            grpc.channel_ready_future(client.channel).result(timeout=60)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def ours(tmp_path):
    instance = Instance(tmp_path / "data")
    yield instance.address
    instance.stop()


def test_every_answer_is_that_of_the_reference(reference, ours):
    with closing(Client(reference)) as theirs, closing(Client(ours)) as client:
        expected, found = list(answers(theirs)), list(answers(client))
    assert found == expected
    assert len(found) > 60


def answers(client):
    """What is asked, and the answer to it.

    The total of ListQueues is left out: the reference says 0. So are the URLs of GetURLs: which of those that
    are due at the same time is the first is not promised.
    """

    def get(crawl, key, urls=1):
        words = {"max_urls_per_queue": urls, "delay_requestable": HOUR, "key": key, "crawlID": crawl}
        return [(info.key, info.crawlID) for info in client.call("GetURLs", **words)]

    for crawl in CRAWLS:
        for key in KEYS:
            yield "put", crawl, key, client.discover(*urls_of(key, 4), key=key, crawl=crawl)
    yield "put again", client.discover("http://a.example/0", key="a.example", crawl="one")
    yield "crawls", sorted(client.call("ListCrawls").values)
    for crawl in CRAWLS:
        for words in ({}, {"size": 1}, {"start": 1}, {"start": 5}, {"size": 50}):
            answer = client.call("ListQueues", crawlID=crawl, **words)
            yield "queues", crawl, words, len(answer.values), answer.start, answer.size, answer.crawlID
        yield "stats", crawl, stats(client, crawl)
    until = int(time.time()) + HOUR
    client.call("BlockQueueUntil", key="a.example", crawlID="one", time=until)
    for turn in ("a block of one", "a window of each"):
        for crawl in CRAWLS:
            yield turn, crawl, get(crawl, "a.example")
    client.call("SetDelay", key="b.example", crawlID="two", delay_requestable=HOUR)
    for turn in range(2):
        for crawl in CRAWLS:
            yield "a delay of two", turn, crawl, len(get(crawl, "b.example"))
        time.sleep(WINDOW)
    for crawl in CRAWLS:
        yield "stats", crawl, stats(client, crawl, "b.example")
    yield "done", client.put(known("http://b.example/0", 0, "b.example", "one"))
    yield "stats", stats(client, "one", "b.example")
    yield "delete a crawl", client.call("DeleteCrawl", value="one").value
    yield "crawls", sorted(client.call("ListCrawls").values)
    for crawl in CRAWLS:
        yield "stats", crawl, stats(client, crawl)
    yield "put anew", client.discover(*urls_of("a.example", 2), key="a.example", crawl="one")
    yield "without the block", get("one", "a.example")
    yield "delete a queue", client.call("DeleteQueue", key="b.example", crawlID="two").value
    yield "put anew", client.discover(*urls_of("b.example", 2), key="b.example", crawl="two")
    yield "without the delay", len(get("two", "b.example"))
    time.sleep(WINDOW)
    yield "after a delay", len(get("two", "b.example", urls=2))
    for crawl in CRAWLS:
        yield "unknown block", crawl, tried(client, "BlockQueueUntil", key="x.example", crawlID=crawl, time=1)
        yield "count", crawl, client.call("CountURLs", key="a.example", crawlID=crawl).value
        listed = client.call("ListURLs", key="a.example", crawlID=crawl, size=100)
        yield "list", crawl, sorted(each.known.info.url for each in listed)
        words = {"url": "http://a.example/1", "key": "a.example", "crawlID": crawl}
        status = client.call("GetURLStatus", **words).known.info
        yield "status", crawl, status.url, status.key, status.crawlID
        yield "unknown status", tried(client, "GetURLStatus", **{**words, "url": "http://a.example/x"})
    for crawl in CRAWLS:
        yield "delete", crawl, client.call("DeleteCrawl", value=crawl).value
    yield "crawls", sorted(client.call("ListCrawls").values)


def urls_of(key, count):
    return [f"http://{key}/{number}" for number in range(count)]


def stats(client, crawl, key=""):
    answer = client.stats(key, crawl)
    return answer.size, answer.inProcess, answer.numberOfQueues, answer.crawlID, answer.counts["completed"]


def tried(client, name, **words):
    """The bytes of an answer, or that it is an error."""
    try:
        return client.call(name, **words).SerializeToString()
    except grpc.RpcError as error:
        return error.code().name

"""Several instances on one database, and instances that are killed: nothing is forgotten."""

import threading
import time
from contextlib import closing, suppress

import grpc
import pytest
from frontier_client import Client, Instance, discovered, known

OK, SKIPPED = 0, 1
HOUR = 3600


@pytest.fixture
def restarted(tmp_path):
    """A client of a fresh service, and what ends that one by force and gives a client of the next."""
    running = []
    clients = []

    def next_client():
        if running:
            running[-1].kill()
        running.append(Instance(tmp_path))
        clients.append(Client(running[-1].address))
        return clients[-1]

    yield next_client
    for each in clients:
        each.close()
    running[-1].stop()


def test_everything_survives_a_kill_between_the_phases(restarted):
    client = restarted()
    client.discover(
        *(f"http://h{host}.example/{number}" for host in range(5) for number in range(3)), crawl="kept"
    )
    client.put(known("http://h0.example/0", 0, crawl="kept"))
    client.call("SetDelay", key="h1.example", crawlID="kept", delay_requestable=HOUR)
    client.call("BlockQueueUntil", key="h2.example", crawlID="kept", time=int(time.time()) + HOUR)
    client.call("SetCrawlLimit", key="h0.example", crawlID="kept", limit=1)
    held = client.get(urls=1, hold=HOUR, crawlID="kept")
    assert sorted(url.split("/")[2] for url in held) == ["h1.example", "h3.example", "h4.example"]

    client = restarted()
    stats = client.stats(crawl="kept")
    assert (stats.size, stats.inProcess, stats.counts["completed"], stats.numberOfQueues) == (14, 3, 1, 5)
    time.sleep(1.1)
    again = client.get(urls=2, hold=HOUR, crawlID="kept")
    assert sorted({url.split("/")[2] for url in again}) == ["h3.example", "h4.example"]
    assert not set(again) & set(held)


def test_a_pause_of_the_service_survives_a_kill(restarted):
    client = restarted()
    client.discover("http://a.example/")
    client.call("SetActive", state=False)
    client = restarted()
    assert client.call("GetActive").state is False
    assert client.get() == []


def test_what_was_answered_before_a_kill_is_there_and_what_was_deleted_is_not(restarted):
    client = restarted()
    client.discover("http://gone.example/", "http://kept.example/")
    client.call("DeleteQueue", key="gone.example")
    client = restarted()
    assert list(client.call("ListQueues", include_inactive=True).values) == ["kept.example"]
    assert client.call("CountURLs").value == 1


def test_every_answered_item_of_a_stream_that_was_killed_is_stored(tmp_path):
    instance = Instance(tmp_path)
    answered = []
    with closing(Client(instance.address)) as client:
        asked, answers = client.types["PutURLs"]
        stub = client.channel.stream_stream(
            "/urlfrontier.URLFrontier/PutURLs", asked.SerializeToString, answers.FromString
        )

        def items():
            return (discovered(f"http://h{n % 50}.example/{n}", name=str(n)) for n in range(10**9))

        def read():
            with suppress(grpc.RpcError):
                answered.extend(ack.ID for ack in stub(items()))

        reader = threading.Thread(target=read)
        reader.start()
        while len(answered) < 2000:
            time.sleep(0.01)
        instance.kill()
        reader.join()
    instance = Instance(tmp_path)
    with closing(Client(instance.address)) as client:
        stored = {item.known.info.url for item in client.call("ListURLs", size=2**31 - 1)}
        assert {f"http://h{int(n) % 50}.example/{n}" for n in answered} <= stored
        assert client.stats().size == len(stored)
    instance.stop()


def test_two_instances_give_no_url_twice_and_see_each_others_puts(instance, client, frontier_data):
    other = Instance(frontier_data)
    with closing(Client(other.address)) as second:
        urls = [f"http://h{number % 40}.example/{number}" for number in range(400)]
        client.discover(*urls[:200])
        assert set(second.discover(*urls)) == {OK, SKIPPED}
        client.call("SetDelay", delay_ms=0)
        got = []
        threads = [
            threading.Thread(target=lambda each=each: got.extend(each.get(urls=20, hold=HOUR)))
            for each in (client, second) * 3
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got) == sorted(urls)
        assert set(second.call("ListNodes").values) >= {instance.address, other.address}
    other.stop()


def test_an_instance_that_stopped_is_no_node(instance, client, frontier_data):
    other = Instance(frontier_data)
    address = other.address
    other.stop()
    assert address not in client.call("ListNodes").values


def test_a_worker_does_not_lease_what_a_client_holds(client, frontier_session):
    from tamias.frontier.postgres import PostgresFrontier

    client.discover("http://a.example/held", "http://a.example/free")
    (held,) = client.get(urls=1, hold=HOUR)
    worker = PostgresFrontier(frontier_session, same_url=str.__eq__)
    assert worker.lease(10) == []
    time.sleep(1.1)
    (lease,) = worker.lease(10)
    assert [task.url for task in lease.tasks] == [
        ({"http://a.example/held", "http://a.example/free"} - {held}).pop()
    ]
    assert client.get() == []


def test_a_client_gets_what_a_worker_has_put(client, frontier_session):
    from tamias.frontier.postgres import PostgresFrontier
    from tamias.model.item import Item

    worker = PostgresFrontier(frontier_session, same_url=str.__eq__)
    worker.put([Item(url="http://a.example/x", key="http://a.example/x", host="a.example")])
    assert client.discover("http://a.example/x") == [SKIPPED]
    assert client.get() == ["http://a.example/x"]


def test_the_archives_own_crawl_is_given_only_to_who_names_it(client, frontier_session):
    from tamias.frontier.postgres import PostgresFrontier
    from tamias.model.item import Item

    worker = PostgresFrontier(frontier_session, same_url=str.__eq__)
    worker.put([Item(url="http://a.example/x", key="http://a.example/x", host="a.example", crawl=2)])
    assert client.get() == []
    assert client.get(crawlID="watch") == ["http://a.example/x"]


def test_puts_of_several_clients_store_every_url_once(instance, client):
    def put(answers):
        with closing(Client(instance.address)) as mine:
            answers.extend(
                mine.discover(*(f"http://h{number % 30}.example/{number}" for number in range(600)))
            )

    answers = []
    threads = [threading.Thread(target=put, args=(answers,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (answers.count(OK), answers.count(SKIPPED)) == (600, 1800)
    assert client.stats().size == 600


def test_sixteen_buckets_serve_as_one(tmp_path):
    settings = tmp_path / "tamias.toml"
    settings.write_text("[frontier]\nbuckets = 16\n", encoding="utf-8")
    instance = Instance(tmp_path / "data", "--config", str(settings))
    with closing(Client(instance.address)) as client:
        urls = [f"http://h{number % 40}.example/{number}" for number in range(200)]
        assert set(client.discover(*urls)) == {OK}
        assert len(client.call("ListQueues").values) == 40
        pages = [client.call("ListURLs", start=start, size=30) for start in range(0, 200, 30)]
        assert sorted(item.known.info.url for page in pages for item in page) == sorted(urls)
        assert len(client.get(urls=1, queues=25)) == 25
        assert client.stats().inProcess == 25
        assert client.call("DeleteCrawl", value="").value == 200
    instance.stop()


def test_a_drain_that_is_killed_midway_loses_nothing_and_gives_nothing_twice_early(tmp_path):
    assert any(drained_until_hold_ends(tmp_path / str(hold), hold) for hold in (20, 60, 180)), "too slow"


def drained_until_hold_ends(data, hold):
    """Drain, kill and drain again; false where the first holds were over before that."""
    urls = {f"http://h{host}.example/{number}" for host in range(300) for number in range(30)}
    instance = Instance(data, "--delay", "0")
    # At most 64 KiB are on their way, so the service cannot have sent everything when it is killed.
    small_window = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 1 << 16)]
    with closing(Client(instance.address, options=small_window)) as client:
        assert set(client.discover(*sorted(urls))) == {OK}
        asked, answers = client.types["GetURLs"]
        stub = client.channel.unary_stream(
            "/urlfrontier.URLFrontier/GetURLs", asked.SerializeToString, answers.FromString
        )
        first, began = [], time.time()
        with suppress(grpc.RpcError):
            for each in stub(asked(delay_requestable=hold)):
                first.append(each.url)
                if len(first) == 1000:
                    instance.kill()
        assert 1000 <= len(first) < len(urls)
    instance = Instance(data)
    with closing(Client(instance.address)) as client:
        second = client.get(hold=HOUR)
        stats = client.stats()
        if time.time() >= began + hold:
            instance.stop()
            return False
        assert len({*first, *second}) == len(first) + len(second)
        # What was held for the first client and did not reach it comes when that hold ends.
        assert stats.inProcess == stats.size == len(urls)
        time.sleep(began + hold * 1.05 + 1 - time.time())
        assert set(client.get(hold=HOUR)) == urls - set(second)
        assert client.get() == []
    instance.stop()
    return True

"""Two transactions of puts at a time: each URL is new once, what is said of it keeps its order."""

import random
import threading
from contextlib import closing, suppress

import grpc
import pytest
from frontier_client import Client, Instance, discovered, info, known, make

OK, SKIPPED = 0, 1
COUNTS = b"""
    SELECT (SELECT count(*) FROM url), (SELECT sum(known) FROM queue)::int8,
           (SELECT sum(open) FROM queue)::int8, (SELECT count(*) FROM url WHERE due < 9223372036854775807)"""
DEADLOCKS = b"SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


def urls_of(name, hosts, count):
    """The service remembers what it knows, so each test has its own."""
    return [f"http://h{number % hosts}.{name}{hosts}.example/{number}" for number in range(count)]


def batches(urls, size=256):
    return [
        make("DiscoveredBatch", ID=str(start), items=[info(url) for url in urls[start : start + size]])
        for start in range(0, len(urls), size)
    ]


def at_once(*works):
    """Results of functions that run at the same time."""
    found = [None] * len(works)

    def run(place):
        found[place] = works[place]()

    threads = [threading.Thread(target=run, args=[place]) for place in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def put_batches(instance, urls):
    with closing(Client(instance.address)) as client:
        answers = client.call("PutDiscovered", *batches(urls), timeout=120)
    return dict(zip(urls, [status for answer in answers for status in answer.statuses], strict=True))


@pytest.mark.parametrize("hosts", [1, 40, 3000])
def test_streams_that_bring_the_same_urls_in_any_order_put_each_once(
    client, instance, frontier_session, hosts
):
    urls = urls_of("same", hosts, 6000)
    orders = [urls, urls[::-1], random.Random(1).sample(urls, len(urls))]
    verdicts = at_once(*(lambda order=order: put_batches(instance, order) for order in orders))
    assert {tuple(sorted(each[url] for each in verdicts)) for url in urls} == {(OK, SKIPPED, SKIPPED)}
    assert frontier_session.fetch_one(COUNTS) == (6000, 6000, 6000, 6000)
    assert frontier_session.fetch_one(DEADLOCKS) == (0,)


def test_what_is_said_of_a_url_keeps_its_order(client, frontier_session):
    """Each URL is discovered, completed, scheduled and completed again, hundreds of items apart."""
    urls = urls_of("order", 300, 2000)
    rounds = [
        [discovered(url) for url in urls],
        [known(url, 0) for url in urls],
        [known(url, 2_000_000_000) for url in urls],
        [known(url, 0 if number % 2 else 2_000_000_001) for number, url in enumerate(urls)],
    ]
    answers = client.put(*(item for items in rounds for item in items))
    assert [status for _, status in answers] == [OK] * 8000
    assert frontier_session.fetch_one(COUNTS) == (2000, 2000, 1000, 1000)
    dates = {
        each.known.info.url: each.known.refetchable_from_date for each in client.call("ListURLs", size=2000)
    }
    assert dates == {url: 0 if number % 2 else 2_000_000_001 for number, url in enumerate(urls)}


def test_streams_that_discover_and_complete_the_same_urls_wait_in_no_circle(
    client, instance, frontier_session
):
    urls = urls_of("circle", 50, 4000)

    def complete(order):
        with closing(Client(instance.address)) as own:
            return [status for _, status in own.put(*(known(url, 0) for url in order))]

    _, first, second = at_once(
        lambda: put_batches(instance, urls),
        lambda: complete(urls[::-1]),
        lambda: complete(urls[1::2] + urls[::2]),
    )
    assert first == second == [OK] * 4000
    assert frontier_session.fetch_one(COUNTS) == (4000, 4000, 0, 0)
    assert frontier_session.fetch_one(DEADLOCKS) == (0,)


def test_a_service_that_is_killed_while_it_puts_has_kept_what_it_answered(tmp_path):
    from tamias.database.connect import Database

    urls = urls_of("kill", 2000, 60_000)
    first = Instance(tmp_path / "data")
    answered = []
    with closing(Client(first.address)) as client:
        asked, answer = client.types["PutDiscovered"]
        stub = client.channel.stream_stream(
            "/urlfrontier.URLFrontier/PutDiscovered", asked.SerializeToString, answer.FromString
        )
        with suppress(grpc.RpcError):
            for each in stub(iter(batches(urls)), timeout=120):
                assert list(each.statuses) == [OK] * len(each.statuses)
                answered += urls[int(each.ID) : int(each.ID) + 256]
                if len(answered) == 256 * 24:
                    first.kill()
    assert len(answered) < len(urls)
    second = Instance(tmp_path / "data")
    verdicts = put_batches(second, urls)
    assert {verdicts[url] for url in answered} == {SKIPPED}
    with closing(Database(tmp_path / "data")) as database, closing(database.session()) as session:
        assert session.fetch_one(COUNTS) == (60_000, 60_000, 60_000, 60_000)
    second.stop()


BY_QUEUE = b"""
    SELECT queue.qid, queue.crawl, queue.known, queue.open, count(url.uid),
           count(url.uid) FILTER (WHERE url.due < 9223372036854775807),
           queue.held_to IS NOT NULL OR queue.next_due <= coalesce(min(url.due), 9223372036854775807)
    FROM queue LEFT JOIN url USING (bucket, qid, crawl, lane)
    GROUP BY queue.bucket, queue.qid, queue.crawl, queue.lane"""
LOST_URLS = b"""
    SELECT url FROM url WHERE NOT EXISTS (
        SELECT FROM queue WHERE queue.bucket = url.bucket AND queue.qid = url.qid
        AND queue.crawl = url.crawl AND queue.lane = url.lane)"""
DATES = b"SELECT crawl.name, url.url, url.due FROM url JOIN crawl USING (crawl) ORDER BY 1, 2"


@pytest.mark.parametrize("seed", range(3))
def test_whatever_comes_at_once_leaves_what_a_model_says(client, instance, frontier_session, seed):
    """Writers discover the same URLs, and each speaks of its own; others delete, limit and get meanwhile."""
    chance = random.Random(seed)
    urls = urls_of(f"model{seed}", chance.choice([2, 30, 500]), 1500)
    crawls = ["", "other", "deleted"]
    told = [[] for _ in range(3)]
    for writer, words in enumerate(told):
        for _ in range(30):
            some = chance.sample(range(len(urls)), chance.choice([1, 1, 20, 60, 300]))
            some += chance.choices(some, k=len(some) // 10)
            words_of = chance.choice(["known", "discovered", "both"])
            crawl = chance.choice(crawls)
            words.append(
                [
                    (crawl, urls[at], chance.choice([0, 1_000, 2_000_000_000 + at]))
                    if words_of == "known" or (words_of == "both" and chance.random() < 0.5)
                    else (crawl, urls[at], None)
                    for at in (some if words_of == "discovered" else [3 * (at // 3) + writer for at in some])
                ]
            )
    is_over = threading.Event()

    def write(words):
        with closing(Client(instance.address)) as own:
            return [
                own.put(
                    *(
                        discovered(url, crawl=crawl) if date is None else known(url, date, crawl=crawl)
                        for crawl, url, date in load
                    )
                )
                for load in words
            ]

    def disturb():
        with closing(Client(instance.address)) as own:
            while not is_over.wait(0.02):
                own.call("DeleteCrawl", value="deleted")
                with suppress(grpc.RpcError):  # there may be no such queue yet
                    own.call("SetCrawlLimit", key=urls[1].split("/")[2], limit=5, crawlID="other")
                own.get(urls=5, queues=5, hold=1, crawlID="other")

    disturbing = threading.Thread(target=disturb)
    disturbing.start()
    try:
        answers = at_once(*(lambda words=words: write(words) for words in told))
    finally:
        is_over.set()
        disturbing.join()
    new, dates = {}, {}
    for words, answered in zip(told, answers, strict=True):
        for load, acks in zip(words, answered, strict=True):
            assert [name for name, _ in acks] == [url for _, url, _ in load]
            for (crawl, url, date), (_, status) in zip(load, acks, strict=True):
                if crawl != "deleted":
                    dates.setdefault((crawl, url), None)
                    if date is None:
                        new[crawl, url] = new.get((crawl, url), 0) + (status == OK)
                    else:
                        assert status == OK
                        dates[crawl, url] = date
    assert max(new.values()) == 1
    assert {new[place] for place, date in dates.items() if date is None} == {1}
    found = {
        ("" if crawl == "default" else crawl, url): due
        for crawl, url, due in frontier_session.fetch_all(DATES)
        if crawl != "deleted"
    }
    assert found.keys() == dates.keys()
    for place, date in dates.items():
        if date is None or date == 1_000:  # what is due by now may be moved, out of what clients hold
            assert 1_000_000 <= found[place] < 2_000_000_000_000, (place, date)
        else:
            assert found[place] == (2**63 - 1 if date == 0 else 1000 * date), (place, date)
    assert frontier_session.fetch_all(LOST_URLS) == []
    for *place, known_urls, open_urls, counted, counted_open, wakes in frontier_session.fetch_all(BY_QUEUE):
        assert (known_urls, open_urls, wakes) == (counted, counted_open, True), place
    assert frontier_session.fetch_one(DEADLOCKS) == (0,)

"""What a service compatible with URLFrontier 2.6 must show, through a real gRPC channel."""

import threading
import time
from contextlib import closing

import grpc
import pytest
from frontier_client import Client, Instance, discovered, info, known, make

from tamias.database.connect import Database

OK, SKIPPED = 0, 1
HOUR = 3600


def now():
    return int(time.time())


def undelayed(client):
    client.call("SetDelay", delay_ms=0)


def test_two_identical_items_are_both_answered_and_stored_once(client):
    assert client.discover("http://a.example/", "http://a.example/") == [OK, SKIPPED]
    assert list(client.call("ListQueues").values) == ["a.example"]


def test_a_known_item_without_a_date_is_never_served_even_if_it_was_never_seen(client):
    assert client.put(known("http://a.example/done", 0)) == [("http://a.example/done", OK)]
    assert client.get() == []


def test_the_earlier_date_comes_first(client):
    client.put(known("http://a.example/later", now() - 5), known("http://a.example/sooner", now() - 50))
    assert client.get() == ["http://a.example/sooner", "http://a.example/later"]


def test_a_url_that_was_given_is_in_process_until_its_hold_ends(client):
    undelayed(client)
    client.discover("http://a.example/")
    assert client.get(hold=1) == ["http://a.example/"]
    assert client.stats().inProcess == 1
    assert client.get(hold=1) == []
    time.sleep(1.1)
    assert client.stats().inProcess == 0
    assert client.get(hold=1) == ["http://a.example/"]


def test_deleting_a_queue_tells_how_many_urls_went(client):
    client.discover("http://a.example/1", "http://a.example/2")
    assert client.call("DeleteQueue", key="a.example").value == 2
    assert client.stats().numberOfQueues == 0


def test_deleting_a_queue_that_is_not_there_removes_nothing(client):
    assert client.call("DeleteQueue", key="nowhere.example").value == 0


def test_a_url_without_a_key_lands_in_the_queue_of_its_host(client):
    client.discover("http://gac.icann.org?language_id=9")
    assert list(client.call("ListQueues").values) == ["gac.icann.org"]
    assert client.get() == ["http://gac.icann.org?language_id=9"]


def test_an_empty_crawl_id_means_default(client):
    assert client.discover("http://a.example/", crawl="") == [OK]
    assert client.discover("http://a.example/", crawl="DEFAULT") == [SKIPPED]
    assert client.stats(crawl="").crawlID == "DEFAULT"


def test_another_crawl_holds_its_own_copy_and_outlives_the_first(client):
    client.discover("http://a.example/", crawl="one")
    assert client.discover("http://a.example/", crawl="two") == [OK]
    assert list(client.call("ListCrawls").values) == ["one", "two"]
    assert client.call("DeleteCrawl", value="one").value == 1
    assert client.stats(crawl="two").size == 1
    client.call("DeleteCrawl", value="two")
    assert list(client.call("ListCrawls").values) == []


def test_a_batch_is_answered_item_by_item(client):
    batch = make("DiscoveredBatch", ID="7")
    for url in ("http://a.example/1", "http://a.example/2", "http://b.example/", "http://b.example/", ""):
        batch.items.append(info(url))
    (answer,) = client.call("PutDiscovered", batch)
    assert (answer.ID, list(answer.statuses)) == ("7", [OK, OK, OK, SKIPPED, SKIPPED])
    assert client.stats().numberOfQueues == 2


def test_known_urls_of_a_batch_are_skipped(client):
    client.discover("http://a.example/")
    (answer,) = client.call("PutDiscovered", make("DiscoveredBatch", items=[info("http://a.example/")]))
    assert list(answer.statuses) == [SKIPPED]


def test_an_empty_batch_is_answered(client):
    (answer,) = client.call("PutDiscovered", make("DiscoveredBatch", ID="probe"))
    assert (answer.ID, list(answer.statuses)) == ("probe", [])


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (discovered("http://a.example/"), lambda date: 0 < date <= now()),
        (known("http://a.example/", 0), lambda date: date == 0),
        (known("http://a.example/", 4_000_000_000), lambda date: date == 4_000_000_000),
    ],
    ids=["discovered", "completed", "to be fetched again"],
)
def test_the_status_of_a_url_is_a_known_item_with_its_dates(client, item, expected):
    client.put(item)
    status = client.call("GetURLStatus", url="http://a.example/")
    assert expected(status.known.refetchable_from_date)
    assert status.creation_date > 0


def test_the_status_of_an_unknown_url_is_not_found(client):
    with pytest.raises(grpc.RpcError) as error:
        client.call("GetURLStatus", url="http://a.example/")
    assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_done_and_scheduled_urls_are_listed(client):
    client.put(
        known("http://a.example/done", 0),
        discovered("http://a.example/open"),
        discovered("http://b.example/"),
    )
    everything = {item.known.info.url for item in client.call("ListURLs")}
    of_a = {item.known.info.url for item in client.call("ListURLs", key="a.example")}
    assert everything == of_a | {"http://b.example/"}
    assert of_a == {"http://a.example/done", "http://a.example/open"}


def test_pages_of_urls_see_each_once(client):
    client.discover(*(f"http://h{number % 7}.example/{number}" for number in range(50)))
    pages = [client.call("ListURLs", start=start, size=20) for start in (0, 20, 40, 60)]
    assert [len(page) for page in pages] == [20, 20, 10, 0]
    assert len({item.known.info.url for page in pages for item in page}) == 50


def test_urls_are_counted_by_a_part_of_them(client):
    client.discover("http://a.example/Data", "http://a.example/data", "http://b.example/x")
    assert client.call("CountURLs").value == 3
    assert client.call("CountURLs", filter="data").value == 1
    assert client.call("CountURLs", filter="data", ignoreCase=True).value == 2
    assert client.call("CountURLs", key="b.example").value == 1


def test_a_discovered_item_never_reschedules_a_done_url_and_a_known_one_does(client):
    client.put(known("http://a.example/", 0))
    assert client.discover("http://a.example/") == [SKIPPED]
    assert client.get() == []
    client.put(known("http://a.example/", now() - 1))
    assert client.get() == ["http://a.example/"]


def test_concurrent_gets_never_serve_a_queue_twice_inside_its_delay(client, instance):
    client.discover(*(f"http://h{host}.example/{number}" for host in range(20) for number in range(20)))
    client.call("SetDelay", delay_requestable=3600)
    got = []

    def get():
        mine = Client(instance.address)
        got.extend(mine.get(urls=1))
        got.extend(mine.get(urls=1, key="h1.example", crawlID=""))
        mine.close()

    threads = [threading.Thread(target=get) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(url.split("/")[2] for url in got) == sorted(f"h{host}.example" for host in range(20))


def test_an_answer_without_urls_leaves_the_window_as_it_was(client):
    client.put(known("http://a.example/", now() + HOUR))
    assert client.get() == []
    client.discover("http://a.example/now")
    assert client.get() == ["http://a.example/now"]


def test_a_queue_of_which_enough_is_held_is_passed_over(client):
    undelayed(client)
    client.discover("http://a.example/1", "http://a.example/2", "http://a.example/3")
    assert len(client.get(urls=2)) == 2
    assert client.get(urls=2) == []
    assert len(client.get(urls=3)) == 1


def test_a_block_holds_through_its_last_second_also_for_who_names_the_queue(client):
    client.discover("http://a.example/")
    client.call("BlockQueueUntil", key="a.example", time=now() + HOUR)
    assert client.get() == []
    assert client.get(key="a.example", crawlID="DEFAULT") == []
    client.call("BlockQueueUntil", key="a.example", time=0)
    assert client.get(key="a.example", crawlID="DEFAULT") == ["http://a.example/"]


def test_a_limit_stops_a_queue_when_enough_is_done(client):
    undelayed(client)
    client.discover("http://a.example/1", "http://a.example/2")
    client.call("SetCrawlLimit", key="a.example", limit=1)
    (first,) = client.get(urls=1)
    client.put(known(first, 0))
    assert client.get(key="a.example", crawlID="DEFAULT") == []
    client.call("SetCrawlLimit", key="a.example", limit=0)
    assert len(client.get()) == 1


def test_a_limit_for_an_unknown_queue_is_an_error(client):
    with pytest.raises(grpc.RpcError):
        client.call("SetCrawlLimit", key="nowhere.example", limit=1)


@pytest.mark.parametrize("call", ["BlockQueueUntil", "SetDelay"])
def test_steering_an_unknown_queue_succeeds_silently(client, call):
    assert client.call(call, key="nowhere.example").ByteSize() == 0


def test_pages_of_queues_see_each_once_although_another_crawl_is_between(client):
    for number in range(30):
        client.discover(f"http://h{number}.example/", crawl="mine" if number % 2 else "other")
    client.call("BlockQueueUntil", key="h1.example", crawlID="mine", time=now() + HOUR)
    pages = [client.call("ListQueues", start=start, size=5, crawlID="mine") for start in (0, 5, 10)]
    assert sorted(key for page in pages for key in page.values) == sorted(
        f"h{n}.example" for n in range(3, 30, 2)
    )
    assert [(page.start, page.size, page.crawlID) for page in pages] == [
        (0, 5, "mine"),
        (5, 5, "mine"),
        (10, 4, "mine"),
    ]
    assert client.call("ListQueues", crawlID="mine", include_inactive=True).total == 15


def test_the_creation_date_survives_updates_and_purging_goes_by_it(client, frontier_session):
    client.discover("http://a.example/old", "http://a.example/new")
    age = "UPDATE url SET first_seen = first_seen - 864000000 WHERE url LIKE '%old'"
    frontier_session.transact(lambda cursor: cursor.execute(age))
    before = client.call("GetURLStatus", url="http://a.example/old").creation_date
    client.put(known("http://a.example/old", 0))
    assert client.call("GetURLStatus", url="http://a.example/old").creation_date == before
    assert client.call("PurgeURLs", key="a.example", days=5).value == 1
    assert [item.known.info.url for item in client.call("ListURLs")] == ["http://a.example/new"]
    assert (client.stats().size, client.stats().counts["completed"]) == (1, 0)


def test_repeated_ids_are_all_answered(client):
    answers = client.put(*(discovered(f"http://a.example/{number}", name="same") for number in range(5)))
    assert answers == [("same", OK)] * 5


def test_a_control_call_reaches_all(client):
    client.discover("http://a.example/")
    client.call("SetActive", state=False)
    assert client.call("GetActive").state is False
    assert client.get() == []
    assert client.discover("http://b.example/") == [OK]
    client.call("SetActive", state=True)
    assert len(client.get()) == 2


def test_dates_far_apart_stay_in_order(client):
    dates = [now() - 1, 999_999_999, 1]
    client.put(*(known(f"http://a.example/{date}", date) for date in dates))
    assert client.get() == [f"http://a.example/{date}" for date in sorted(dates)]


def test_metadata_comes_back_as_it_was_told(client):
    client.put(discovered("http://a.example/", depth=["1"], lang=["de", "ελ"]))
    (given,) = client.call("GetURLs")
    assert {name: list(each.values) for name, each in given.metadata.items()} == {
        "depth": ["1"],
        "lang": ["de", "ελ"],
    }


def test_who_names_a_queue_but_no_crawl_gets_nothing(client):
    client.discover("http://a.example/")
    assert client.get(key="a.example") == []


def test_the_numbers_of_queues_and_urls_of_an_answer_are_as_asked(client):
    client.discover(*(f"http://h{host}.example/{number}" for host in range(10) for number in range(10)))
    got = client.get(urls=3, queues=4)
    hosts = [url.split("/")[2] for url in got]
    assert len(got) == 12
    assert len(set(hosts)) == 4


def test_a_drain_gives_every_url_once(client):
    urls = {f"http://h{number % 3}.example/{number}" for number in range(1000)}
    client.discover(*sorted(urls))
    got = client.get(hold=HOUR)
    assert len(got) == 1000
    assert set(got) == urls


def test_the_instance_is_among_the_nodes(client, instance):
    assert instance.address in client.call("ListNodes").values


def test_a_log_level_can_be_set(client):
    assert client.call("SetLogLevel", package="crawlercommons", level=3).ByteSize() == 0


def test_the_database_has_statistics_soon_after_the_first_thousand_urls(tmp_path):
    instance = Instance(tmp_path)
    asked = b"SELECT analyze_count FROM pg_stat_user_tables WHERE relname IN ('host', 'queue', 'url')"
    with (
        closing(Client(instance.address)) as client,
        closing(Database(tmp_path)) as database,
        closing(database.session()) as session,
    ):
        client.discover(*(f"http://h{number % 50}.example/{number}" for number in range(1200)))
        ends_at = time.monotonic() + 20
        # Not by the database itself, which counts what it does by itself apart.
        while (counts := session.fetch_all(asked)) != [(1,)] * 3 and time.monotonic() < ends_at:
            time.sleep(0.1)
        assert counts == [(1,)] * 3
    instance.stop()

"""Tags that clients give to URLs, through a real channel: the metadata `tags`."""

import json
from contextlib import closing

import pytest
from frontier_client import Client, Instance, discovered, info, known, make

from tamias.features.exports.urlfrontier_lines import urlfrontier_lines

URL = "http://a.example/1"
FAR = 4_000_000_000


@pytest.fixture
def stored(frontier_session):
    """`stored(url)`: its tags in the frontier, and those of its lane."""

    def read(url=URL):
        asked = "SELECT url.tags, lane.tags FROM url JOIN lane ON lane.lane = url.lane WHERE url.url = %s"
        return frontier_session.transact(lambda cursor: cursor.execute(asked, [url]).fetchone())

    return read


@pytest.fixture
def counts(frontier_session):
    """`counts()`: known and open URLs of the queues that have any, by the tags of their lane."""

    def read():
        asked = (
            "SELECT lane.tags, queue.known, queue.open FROM queue JOIN lane ON lane.lane = queue.lane "
            "WHERE queue.known <> 0 OR queue.open <> 0"
        )
        rows = frontier_session.transact(lambda cursor: cursor.execute(asked).fetchall())
        return {tuple(tags): (urls, still_open) for tags, urls, still_open in rows}

    return read


def noted(told):
    return {name: list(each.values) for name, each in told.metadata.items()}


def status(client, url=URL):
    return noted(client.call("GetURLStatus", url=url, key="a.example").known.info)


def test_tags_of_an_item_are_tags_of_the_url(client, stored):
    client.put(discovered(URL, tags=["news", "lang=de"]))
    assert stored() == (["news", "lang=de"], ["lang=de", "news"])


def test_tags_come_back_among_the_metadata(client):
    client.put(discovered(URL, tags=["news", "lang=de"], depth=["3"]))
    (given,) = client.call("GetURLs")
    assert noted(given) == {"tags": ["news", "lang=de"], "depth": ["3"]}


def test_tags_are_no_metadata_in_the_database(client, frontier_session):
    client.put(discovered(URL, tags=["news"]))
    asked = "SELECT metadata FROM url"
    assert frontier_session.transact(lambda cursor: cursor.execute(asked).fetchone()) == (None,)


def test_tags_of_a_batch_are_tags_of_the_urls(client, stored):
    batch = make("DiscoveredBatch", ID="b", items=[info(URL, tags=["news"]), info("http://a.example/2")])
    client.call("PutDiscovered", batch)
    assert (stored(), stored("http://a.example/2")) == ((["news"], ["news"]), (None, []))


def test_what_cannot_be_a_tag_stays_metadata(client, stored):
    client.put(discovered(URL, tags=["breaking news", "news", "x" * 101]))
    assert stored() == (["news"], ["news"])
    assert status(client) == {"tags": ["news", "breaking news", "x" * 101]}


def test_of_too_many_tags_the_last_stay_metadata(client, stored):
    client.put(discovered(URL, tags=[f"t{number:02}" for number in range(40)]))
    assert len(stored()[0]) == 32
    assert len(status(client)["tags"]) == 40


def test_tags_are_told_with_the_status_and_in_lists(client):
    client.put(discovered(URL, tags=["news"]))
    (listed,) = client.call("ListURLs")
    assert [status(client), noted(listed.known.info)] == [{"tags": ["news"]}] * 2


def test_a_known_item_gives_other_tags(client, stored):
    client.put(discovered(URL, tags=["news"]))
    client.put(known(URL, FAR, tags=["sport"]))
    assert stored() == (["sport"], ["sport"])


def test_a_known_item_without_tags_keeps_them(client, stored):
    client.put(discovered(URL, tags=["news"]))
    client.put(known(URL, FAR, reason=["gone"]))
    assert stored() == (["news"], ["news"])


def test_an_empty_list_takes_the_tags_away(client, stored):
    client.put(discovered(URL, tags=["news"]))
    client.put(known(URL, FAR, tags=[]))
    assert stored() == (None, [])


def test_a_discovered_item_leaves_the_tags_of_a_known_url(client, stored):
    client.put(discovered(URL, tags=["news"]))
    client.put(discovered(URL, tags=["sport"]))
    assert stored() == (["news"], ["news"])


def test_queues_count_urls_in_the_lanes_of_their_tags(client, counts):
    client.put(
        discovered(URL, tags=["news"]),
        discovered("http://a.example/2"),
        known("http://a.example/3", 0, tags=["news"]),
    )
    assert counts() == {("news",): (2, 1), (): (1, 1)}


def test_queues_count_a_url_that_gets_other_tags_once(client, counts):
    client.put(discovered(URL, tags=["news"]), discovered("http://a.example/2", tags=["news"]))
    client.put(known(URL, 0, tags=["sport"]))
    assert counts() == {("news",): (1, 1), ("sport",): (1, 0)}


def test_a_url_that_got_other_tags_is_given_when_it_is_due(client):
    client.put(discovered(URL, tags=["news"]))
    client.put(known(URL, 1, tags=["sport"]))
    assert client.get() == [URL]


def test_the_first_word_about_tags_counts_where_the_last_says_nothing(client, stored):
    client.put(discovered(URL, tags=["news"]), known(URL, FAR), known(URL, FAR, reason=["late"]))
    assert stored() == (["news"], ["news"])


def test_an_export_has_tags_and_what_cannot_be_one(client, frontier_session):
    client.put(discovered(URL, tags=["breaking news", "news"]))
    (line,) = b"".join(urlfrontier_lines(frontier_session)).splitlines()
    assert json.loads(line)["known"]["info"]["metadata"] == {"tags": {"values": ["news", "breaking news"]}}


def test_a_service_with_an_interest_gives_what_clients_tagged(client, frontier_data):
    client.put(discovered(URL, tags=["lang=de"]), discovered("http://b.example/1", tags=["lang=fr"]))
    interested = Instance(frontier_data, "--require", "lang=de")
    try:
        with closing(Client(interested.address)) as other:
            assert other.get() == [URL]
    finally:
        interested.stop()

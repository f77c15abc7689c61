"""News as feeds: Atom, JSON Feed, and the event stream that our own reader reads back whole."""

import asyncio
import time

import pytest
from lxml import etree
from plain_client import PlainClient

from tamias.features.ldes.harvester import LdesHarvester
from tamias.features.portals.dcat import CatalogueHarvester
from tamias.features.service.files.comparison import COMPARED_AT_ONCE
from tamias.fetch.credentials import HttpOptions
from tamias.fetch.http import HttpFetcher
from tamias.model.finding import Datasets, Harvest, Quads
from tamias.model.resource import Source, resource_id
from tamias.model.url import url_key
from tamias.permit.delay import retry_after_ms

from .conftest import DAY, START

NUMBERS = resource_id(url_key("http://data.example/a.csv"))
ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def harvest(tmp_path):
    """`harvest(harvester, url, kind)` gives the steps of a harvest."""

    async def steps(harvester, url, kind, bookmark):
        options = HttpOptions(user_agent="Tamias/test", spool_dir=str(tmp_path))
        fetcher = HttpFetcher(
            options,
            forbidden=lambda _: None,
            now=lambda: time.time_ns() // 1_000_000,
            retry_after=retry_after_ms,
        )
        try:
            told = Harvest(url=url, kind=kind, bookmark=bookmark)
            return [step async for step in harvester.harvest(told, PlainClient(fetcher))]
        finally:
            await fetcher.close()

    return lambda harvester, url, kind, bookmark=None: asyncio.run(steps(harvester, url, kind, bookmark))


def members(steps):
    found = [finding for step in steps for finding in step.findings if isinstance(finding, Quads)]
    told = [quad for finding in found for quad in finding.quads]
    return {quad.subject.value for quad in told if quad.predicate.value.endswith("#isVersionOf")}


def items(client, query):
    return [item["id"] for item in client.get(f"/api/v1/changes.feed.json?{query}").json()["items"]]


def explained(client, query, but=0):
    """The items of a feed when all changes, but so many, are said in words."""
    until = time.monotonic() + 60
    while True:
        found = client.get(f"/api/v1/changes.feed.json?{query}").json()["items"]
        if sum(": changed, " in each["content_text"] for each in found) <= but or time.monotonic() > until:
            return found
        time.sleep(0.05)


def test_a_json_feed_has_what_the_specification_requires(client):
    answer = client.get("/api/v1/changes.feed.json?limit=2")
    told = answer.json()
    assert answer.headers["content-type"] == "application/feed+json"
    assert told["version"] == "https://jsonfeed.org/version/1.1"
    assert told["title"]
    assert all({"id", "url", "content_text", "date_published"} <= set(item) for item in told["items"])


def test_a_json_feed_leads_page_by_page_to_every_version(client):
    url, seen = "/api/v1/changes.feed.json?limit=2", []
    while url:
        told = client.get(url).json()
        seen += [item["id"] for item in told["items"]]
        url = told.get("next_url")
    assert {f"urn:tamias:version:{NUMBERS}_{number}" for number in (1, 2, 3)} <= set(seen)
    assert len(seen) == len(set(seen))


def test_a_feed_of_a_dataset_has_its_versions_only(client):
    assert items(client, f"dataset={NUMBERS}") == [f"urn:tamias:version:{NUMBERS}_{n}" for n in (3, 2, 1)]


@pytest.mark.parametrize(
    ("old", "new", "media_type", "sentence"),
    [
        (b"k,price\n1,2\n2,3\n", b"k,price\n1,9\n2,3\n3,4\n4,5\n", "text/csv", "2 rows added, 1 changed"),
        (b"k,price\n1,2\n2,3\n", b"k,cost\n1,2\n2,3\n", "text/csv", "column price renamed to cost"),
        (b"<a:a> <a:b> <a:c> .", b"<a:a> <a:b> <a:d> .", "text/turtle", "1 statement added, 1 removed"),
    ],
)
def test_an_entry_says_what_changed(client, filled, old, new, media_type, sentence):
    name = filled.put(f"http://said.example/{sentence.replace(' ', '-')}", old, new, media_type=media_type)
    newest, first = explained(client, f"dataset={name}")
    atom = client.get(f"/api/v1/changes.atom?dataset={name}").text
    assert f": {sentence}, {len(new)} bytes" in newest["content_text"]
    assert f": first seen, {len(old)} bytes" in first["content_text"]
    assert f": {sentence}, {len(new)} bytes" in atom


def test_large_versions_do_not_keep_others_from_being_explained(client, filled):
    large = b"x\n" * COMPARED_AT_ONCE
    for number in range(30):
        filled.put(f"http://large.example/{number}.csv", large, large + b"1\n", start=START + 400 * DAY)
    filled.put("http://large.example/small.csv", b"a,b\n1,2\n", b"a,b\n1,2\n3,4\n", start=START + 300 * DAY)
    items = explained(client, "host=large.example", but=30)
    said = {item["id"]: item["content_text"] for item in items}
    small = resource_id(url_key("http://large.example/small.csv"))
    assert ": 1 row added, " in said[f"urn:tamias:version:{small}_2"]


def test_a_feed_does_not_wait_until_all_versions_are_compared_and_the_next_one_has_them(client, filled):
    """They take seconds to compare, each says something else."""
    rows = [f"{n},{'x' * 20}" for n in range(9000)]
    for number in range(20):
        old, new = (("\n".join(["n,x", *rows[: 8000 + more], ""])).encode() for more in (0, 1 + number))
        filled.put(f"http://slow.example/{number}.csv", old, new)
    first = client.get("/api/v1/changes.feed.json?host=slow.example").json()["items"]
    assert any(": changed, " in each["content_text"] for each in first)
    said = {
        item["content_text"].partition(".csv: ")[2].partition(",")[0]
        for item in explained(client, "host=slow.example")
    }
    assert said == {"first seen", "1 row added", *(f"{n} rows added" for n in range(2, 21))}


def test_the_newest_entry_says_how_many_versions_were_probably_missed(client, filled):
    name = filled.put("http://missed.example/a.csv", b"a,b\n1,2\n", b"a,b\n1,3\n")
    filled.run("UPDATE resource SET missed = 7.2 WHERE resource = %s", name)
    newest, first = client.get(f"/api/v1/changes.feed.json?dataset={name}").json()["items"]
    atom = client.get("/api/v1/changes.atom?host=missed.example").text
    said = "; about 7 versions were probably missed between visits"
    assert newest["content_text"].endswith(said)
    assert "missed" not in first["content_text"].partition("a.csv")[2]
    assert atom.count(said) == 1
    changes = client.get("/api/v1/changes?host=missed.example").json()["items"]
    assert [each["missed"] for each in changes] == [7, 0]


def test_a_feed_of_a_dataset_that_is_not_there_is_not_found(client):
    assert client.get("/api/v1/changes.atom?dataset=http://nowhere.example/").status_code == 404


def test_a_feed_of_words_has_what_a_search_finds(client):
    assert items(client, "q=numbers") == items(client, f"dataset={NUMBERS}")


def test_a_feed_of_a_host_and_one_of_a_portal_have_theirs(client, filled):
    filled.put("http://lone.example/x.csv", b"x\n", sources=())
    assert len(items(client, "host=lone.example")) == 1
    portal = items(client, "portal=http://portal.example/&limit=1000")
    assert items(client, "host=lone.example")[0] not in portal
    assert portal


def test_feeds_find_what_is_older_than_many_versions_of_others(client, filled):
    """More of them than are looked at before the resources are found by what was asked for."""
    old = "http://old.example/grandmother.csv"
    filled.put(
        old,
        b"1\n",
        b"2\n",
        b"3\n",
        start=START - 90 * DAY,
        sources=(Source(source="http://attic.example/r1", portal="http://attic.example/"),),
    )
    for number in range(25):
        filled.put(f"http://busy{number}.example/x.csv", b"x\n", start=START + number * DAY)
    name = resource_id(url_key(old))
    expected = [f"urn:tamias:version:{name}_{number}" for number in (3, 2, 1)]
    for asked in ("host=old.example", "portal=http://attic.example/", "q=grandmother"):
        assert items(client, f"{asked}&limit=1") == expected[:1]
        assert items(client, f"{asked}&limit=4") == expected
        assert items(client, f"{asked}&host=old.example&limit=4") == expected
    assert items(client, "q=grandmother&host=data.example") == []
    assert items(client, "portal=http://none.example/") == []


def test_an_atom_feed_tells_the_same_as_the_json_feed(client):
    feed = etree.fromstring(client.get(f"/api/v1/changes.atom?dataset={NUMBERS}").content)
    entries = [entry.findtext(f"{ATOM}id") for entry in feed.iter(f"{ATOM}entry")]
    assert entries == items(client, f"dataset={NUMBERS}")


def test_accept_chooses_the_feed(client):
    kinds = ("application/atom+xml", "application/feed+json", "application/json")
    told = [client.get("/api/v1/changes", headers={"Accept": kind}).headers["content-type"] for kind in kinds]
    assert told == list(kinds)


def test_our_own_reader_of_event_streams_reads_every_version(client, served, filled, harvest):
    for number in range(3):
        contents = [b"%d,%d\n" % (number, step) for step in range(80)]
        filled.put(f"http://stream.example/{number}.csv", *contents, step=60_000)
    steps = harvest(LdesHarvester(), f"{served.address}/ldes", "ldes")
    rows = filled.rows(
        "SELECT resource, number FROM version JOIN resource USING (resource)"
        " WHERE url <> 'http://optout.example/mined'"  # reserved by its server, in another test
    )
    wanted = {f"{served.address}/dataset/{resource}/{number}" for resource, number in rows}
    assert steps[-1].end.complete
    assert members(steps) == wanted
    assert len(wanted) > 200


def test_a_second_harvest_of_the_event_stream_brings_only_what_is_new(served, filled, harvest):
    bookmark = harvest(LdesHarvester(), f"{served.address}/ldes", "ldes")[-1].end.bookmark
    named = filled.put("http://stream.example/late.csv", b"new\n", start=1_000_000_000_000)
    steps = harvest(LdesHarvester(), f"{served.address}/ldes", "ldes", bookmark)
    assert members(steps) == {f"{served.address}/dataset/{named}/1"}


def test_a_full_page_of_the_event_stream_never_changes(client, filled):
    contents = [b"%d\n" % step for step in range(210)]
    filled.put("http://stream.example/many.csv", *contents, step=1000)
    first = client.get("/ldes")
    filled.put("http://stream.example/early.csv", b"old\n", start=900_000_000_000)
    assert "immutable" in first.headers["cache-control"]
    assert client.get("/ldes").content == first.content


def test_a_page_behind_the_end_of_the_event_stream_is_not_found(client):
    assert client.get("/ldes?page=9999").status_code == 404


def test_our_own_reader_of_catalogues_harvests_all_pages_of_ours(client, served, filled, harvest):
    for number in range(205):
        filled.put(f"http://paged.example/{number}.csv")
    steps = harvest(CatalogueHarvester(), f"{served.address}/catalog.ttl", "dcat")
    found = [finding for step in steps for finding in step.findings if isinstance(finding, Datasets)]
    names = {dataset.iri for finding in found for dataset in finding.datasets}
    (count,) = filled.rows("SELECT count(*) FROM resource")[0]
    wanted = {f"{served.address}/dataset/{name}" for (name,) in filled.rows("SELECT resource FROM resource")}
    assert steps[-1].end.complete
    assert wanted <= names
    assert count > 200


def test_feeds_say_when_a_dataset_went_and_came_back(filled, client):
    name = filled.put("http://leaving.example/a.csv", b"a\n1\n", b"a\n2\n")
    went, back = START + DAY // 2, START + 2 * DAY
    state = "UPDATE tamias.resource SET state = %s, gone_at = %s, tried_at = %s WHERE resource = %s"
    filled.run(state, "gone", went, went, name)
    told = client.get(f"/api/v1/changes.feed.json?dataset={name}").json()["items"]
    assert [each["title"].rpartition(": ")[2] for each in told] == ["version 2", "gone", "version 1"]
    filled.run(state, "active", None, back, name)
    wanted = ["back again", "version 2", "gone", "version 1"]
    url, seen = f"/api/v1/changes.feed.json?dataset={name}&limit=1", []
    while url is not None:
        page = client.get(url).json()
        seen += page["items"]
        url = page.get("next_url")
    assert [each["title"].rpartition(": ")[2] for each in seen] == wanted
    assert len({each["id"] for each in seen}) == 4
    feed = etree.fromstring(client.get(f"/api/v1/changes.atom?dataset={name}").content)
    entries = feed.findall(f"{ATOM}entry")
    assert [each.find(f"{ATOM}title").text.rpartition(": ")[2] for each in entries] == wanted
    # A file belongs to a version, not to a dataset that went.
    assert [each.find(f"{ATOM}link[@rel='enclosure']") is None for each in entries] == [
        True,
        False,
        True,
        False,
    ]
    assert [each["number"] for each in client.get(f"/api/v1/changes?dataset={name}").json()["items"]] == [
        2,
        1,
    ]
    assert items(client, "host=leaving.example") == [each["id"] for each in seen]
    query = "SELECT ?d { BIND(<http://leaving.example/a.csv> AS ?d) }"
    by_query = client.get("/feed", params={"sparql": query, "format": "json"}).json()["items"]
    assert [each["id"] for each in by_query] == [each["id"] for each in seen]

"""The list of datasets: its filters, its pages, and what each row says."""

import json
import re
import time

import pytest

from tamias.archive.sources.catalogues import note_datasets
from tamias.archive.sources.source_records import keep_records
from tamias.features.dcat.datasets.mapping import map_record
from tamias.features.portals.records.ckan import MAPPING
from tamias.frontier.keys import bucket_of, hash64, host_hash
from tamias.model.url import url_key

from .conftest import DAY, PORTAL, START

HTML = {"Accept": "text/html"}
HOST = "listed.example"


@pytest.fixture(scope="module")
def listed(filled):
    """Sixty datasets of one host, one of each trouble."""
    names = [
        filled.put(f"http://{HOST}/{n}.csv", b"a\n%d\n" % n, start=1_700_000_000_000 + n) for n in range(60)
    ]
    recent = int(time.time() * 1000) - 10 * DAY
    names.append(
        filled.put(f"http://{HOST}/busy.csv", b"a\n1\n", b"a\n2\n", b"a\n3\n", start=recent, title="Busy")
    )
    names.append(filled.put(f"http://{HOST}/new.csv"))
    trouble = "UPDATE tamias.resource SET trouble = %s, state = %s WHERE resource = %s"
    filled.run(trouble, "500 <b>out of order</b>", "active", names[3])
    filled.run(trouble, "410 Gone", "gone", names[4])
    filled.run(trouble, None, "stopped", names[5])
    return names


def found(client, **asked):
    url, names = "/datasets.json", []
    while True:
        view = client.get(url, params={"host": HOST, **asked}).json()
        names += [each["id"] for each in view["datasets"]]
        if view["next"] is None:
            return names
        asked["cursor"] = view["next"]


def test_all_are_listed_once_the_last_changed_first_and_those_without_a_version_last(client, listed):
    assert found(client) == [listed[60], *reversed(listed[:60]), listed[61]]


@pytest.mark.parametrize(("state", "place"), [("failing", 3), ("gone", 4), ("stopped", 5)])
def test_a_state_is_a_filter(client, listed, state, place):
    assert found(client, state=state) == [listed[place]]


def test_type_and_portal_are_filters(client, listed):
    assert len(found(client, type="csv")) == 61
    assert len(found(client, portal=PORTAL)) == 62
    assert found(client, type="text/turtle") == found(client, portal="http://none.example/") == []


def test_an_unknown_state_is_a_problem(client):
    assert client.get("/datasets", params={"state": "sleeping"}).status_code == 400


def test_new_versions_are_counted_by_week(client, listed):
    busy = client.get("/datasets.json", params={"host": HOST}).json()["datasets"][0]
    assert (sum(busy["weeks"]), len(busy["weeks"]), busy["title"]) == (3, 26, "Busy")
    assert sum(busy["weeks"][-3:]) == 3


def test_the_page_shows_trouble_in_words_and_keeps_the_filter_on_the_next_page(client, listed):
    page = client.get("/datasets", params={"host": HOST}, headers=HTML).text
    following = re.search(r'rel="next" href="([^"]+)"', page)[1].replace("&amp;", "&")
    second = client.get(following, headers=HTML).text
    assert f"host={HOST}" in following
    assert "500 &lt;b&gt;out of order" in second
    assert 'class="state failing"' in second
    assert f"/api/v1/changes.atom?host={HOST}" in page


@pytest.mark.parametrize(
    "path", ["/dataset/{}", "/host/listed.example", "/search?q=listed", f"/portal?url={PORTAL}"]
)
def test_a_feed_is_offered_where_something_can_be_followed(client, listed, path):
    page = client.get(path.format(listed[0]), headers=HTML).text
    feeds = set(re.findall(r'href="(/api/v1/changes.atom\?[^"]+)"', page))
    assert len(feeds) == 1
    feed = client.get(feeds.pop().replace("&amp;", "&"))
    assert (feed.status_code, feed.headers["content-type"].partition(";")[0]) == (200, "application/atom+xml")
    assert "<entry>" in feed.text


def test_a_dataset_has_a_calendar_of_its_changes(client, listed):
    page = client.get(f"/dataset/{listed[60]}", headers=HTML).text
    view = client.get(f"/dataset/{listed[60]}.json").json()
    assert list(view["changes_by_day"].values()) == [1, 1, 1]
    assert page.count('<rect class="some"') == 3


@pytest.mark.parametrize(
    ("bodies", "said"),
    [
        ([b"a\n1\n"], "It has not changed so far. A change is expected about every 2 days."),
        ([b"a\n1\n", b"a\n2\n"], "It changes about 0.5 times a day, that is every 2 days."),
    ],
)
def test_a_change_that_was_never_seen_is_only_expected(client, filled, bodies, said):
    name = filled.put(f"http://paced.example/{len(bodies)}.csv", *bodies)
    filled.run("UPDATE tamias.resource SET change_rate = 0.5 WHERE resource = %s", name)
    assert said in client.get(f"/dataset/{name}", headers=HTML).text


def test_versions_of_one_day_have_their_minutes(client, filled):
    name = filled.put("http://listed.example/minutes.csv", b"a\n1\n", b"a\n2\n", step=600_000)
    page = client.get(f"/dataset/{name}", headers=HTML).text
    assert re.findall(r'class="soft small nowrap">([^<]+)<', page) == ["2026-01-01 00:10", "2026-01-01 00:00"]


def test_the_sizes_of_versions_have_an_axis_and_say_themselves_when_pointed_at(client, filled):
    name = filled.put("http://listed.example/sizes.csv", b"a\n1\n", b"a\n" + 2046 * b"2", step=600_000)
    page = client.get(f"/dataset/{name}", headers=HTML).text
    figure = page[: page.index("Days with new versions")].rpartition("<figure>")[2]
    assert re.findall(r"<title>([^<]+)</title>", figure) == [
        "version 2, 2026-01-01 00:10: 2.0 KiB",
        "version 1, 2026-01-01 00:00: 4 B",
    ]
    assert (
        re.search(r'class="axis" aria-hidden="true"><span>([^<]+)</span><span>0</span>', figure)[1]
        == "2.0 KiB"
    )


NESTS = "http://nests.example/"
RECORD = {
    "id": "nests", "name": "nests", "title": "Nests of the wood", "notes": "Where <b>squirrels</b> sleep.",
    "license_url": "https://example.org/licence", "maintainer": "Office of Squirrels",
    "maintainer_email": "office@example.org", "organization": {"title": "Wood Council", "name": "wood"},
    "tags": [{"name": "dreys"}], "resources": [{"id": "r", "url": f"{NESTS}nests.csv", "format": "CSV"}],
}  # fmt: skip


def test_a_dataset_has_what_its_portal_says_of_it_until_that_is_forgotten(client, writer, filled):
    name = filled.put(RECORD["resources"][0]["url"], b"a\n1\n")
    mapped = map_record(MAPPING, json.dumps(RECORD).encode(), NESTS)

    def note(cursor):
        note_datasets(cursor, NESTS, "ckan", START, [mapped.dataset])
        keep_records(cursor, NESTS, START, [mapped.source])

    filled.session.transact(note)
    [said] = client.get(f"/dataset/{name}.json").json()["descriptions"]
    assert {each: said[each] for each in ("portal", "title", "description", "licence", "keywords")} == {
        "portal": NESTS, "title": RECORD["title"], "description": RECORD["notes"],
        "licence": RECORD["license_url"], "keywords": ["dreys"],
    }  # fmt: skip
    assert (said["publisher"]["name"], said["contact"]["name"], said["contact"]["email"]) == (
        "Wood Council",
        "Office of Squirrels",
        "office@example.org",
    )
    page = client.get(f"/dataset/{name}", headers=HTML).text
    assert "Where squirrels sleep." in page
    assert 'href="https://example.org/licence"' in page
    assert writer.post("/api/v1/forget", json={"url": mapped.source.iri, "reason": "asked"}).status_code < 300
    assert client.get(f"/dataset/{name}.json").json()["descriptions"] == []


def test_a_dataset_has_the_pages_that_link_to_it(client, filled):
    url = "http://listed.example/linked.csv"
    name = filled.put(url, b"a\n1\n")
    qid = host_hash("listed.example")
    [(buckets,)] = filled.rows("SELECT buckets::int4 FROM tamias.meta")
    filled.run(
        "INSERT INTO tamias.link"
        " (bucket, qid, crawl, uid, from_uid, first_seen, count, anchor, from_url, to_url)"
        " VALUES (%s, %s, 1, %s, 1, 1, 1, 'the nuts', 'http://from.example/', %s)",
        bucket_of(qid, buckets), qid, hash64(url_key(url)), url,
    )  # fmt: skip
    assert client.get(f"/dataset/{name}.json").json()["links_in"] == [
        {"url": "http://from.example/", "anchor": "the nuts"}
    ]
    assert "“the nuts”" in client.get(f"/dataset/{name}", headers=HTML).text

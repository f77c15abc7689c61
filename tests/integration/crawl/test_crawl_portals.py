"""Portals under watch: what they offer is watched, what vanishes from them is noticed."""

import json
import time
from contextlib import closing

import pytest

from tamias.database.connect import Database
from tests.all_resources import all_resources
from tests.messages import unsaid


@pytest.fixture
def portal(site, reply):
    """A CKAN portal; `site.datasets` are the names of its datasets."""
    site.datasets = ["one", "two", "three"]
    site.more = {}

    def search(handler):
        words = dict(pair.split("=") for pair in handler.path.partition("?")[2].split("&"))
        start, rows = int(words.get("start", 0)), int(words.get("rows", 10))
        names = sorted(site.datasets)
        results = [record(name) for name in names[start : start + rows]]
        body = {"success": True, "result": {"count": len(names), "results": results}}
        reply(200, json.dumps(body).encode(), **{"Content-Type": "application/json"})(handler)

    def record(name):
        resource = {"id": f"r-{name}", "url": site.url(f"/{name}.csv"), "format": "CSV", "name": "Table"}
        named = {"id": name, "name": name, "title": name.title(), "notes": "x", "resources": [resource]}
        return named | site.more

    site.pages["/api/3/action/package_search?"] = search
    for name in site.datasets:
        site.pages[f"/{name}.csv"] = reply(200, f"a,b\n{name},1\n".encode(), **{"Content-Type": "text/csv"})
    return site


@pytest.fixture
def rows(tamias):
    def read(query):
        with closing(Database(tamias.data, create=False)) as database, closing(database.session()) as session:
            return list(query(session))

    return read


def vanished(session):
    return session.rows("SELECT record FROM described WHERE gone_at IS NOT NULL ORDER BY record")


def visit(tamias, delay="0"):
    time.sleep(0.6)  # a portal is harvested again half a second after the last time
    done = tamias.run("crawl", "--recrawl", "--allow-private", "--delay", delay, "--workers", "1")
    assert done.returncode == 0, done.stderr


def test_what_a_portal_offers_comes_under_watch_with_its_source_and_format(tamias, portal, rows):
    done = tamias.run("add", f"ckan:{portal.url('/')}")
    assert done.returncode == 0, done.stderr
    visit(tamias)
    found = {each.url: each for each in rows(all_resources)}
    assert sorted(found) == sorted(portal.url(f"/{name}.csv") for name in portal.datasets)
    one = found[portal.url("/one.csv")]
    assert (one.versions, one.expected, one.title) == (1, "text/csv", "One: Table")
    assert one.sources[0].portal == portal.url("/")


def test_what_a_portal_offers_is_visited_in_the_same_run_although_the_host_wants_a_pause_first(
    tamias, portal, rows
):
    assert tamias.run("add", f"ckan:{portal.url('/')}").returncode == 0
    visit(tamias, delay="1")
    assert {each.url: each.versions for each in rows(all_resources)} == {
        portal.url(f"/{name}.csv"): 1 for name in portal.datasets
    }


def test_a_dataset_that_vanished_is_noticed_and_comes_back_if_it_does(tamias, portal, rows):
    tamias.env["TAMIAS_SCHEDULE__HARVESTS"] = "0.5"
    assert tamias.run("add", f"ckan:{portal.url('/')}").returncode == 0
    gone = []
    for names in (["one", "two", "three"], ["one", "three"], ["one", "two", "three"]):
        portal.datasets = names
        visit(tamias)
        gone.append([record for (record,) in rows(vanished)])
    assert gone == [[], ["two"], []]


def test_a_portal_whose_robots_txt_forbids_its_api_is_obeyed_unless_its_operator_permits(tamias, portal):
    portal.pages["/robots.txt"] = b"User-agent: *\nDisallow: /api/\n"
    done = tamias.crawl(f"ckan:{portal.url('/')}")
    assert done.returncode == 1, done.stderr
    assert not [path for path, _ in portal.log if path.startswith("/api/")]
    (attempt,) = tamias.attempts()[portal.url("/")]
    assert "permit" in attempt["reason"]


def test_permission_of_the_operator_is_used_and_told(tamias, portal):
    portal.pages["/robots.txt"] = b"User-agent: *\nDisallow: /api/\n"
    tamias.env["TAMIAS_PERMIT__GRANTED"] = "127.0.0.1"
    done = tamias.crawl(f"ckan:{portal.url('/')}")
    assert done.returncode == 0, done.stderr
    assert portal.asked("/one.csv") == 1
    (attempt,) = tamias.attempts()[portal.url("/")]
    assert not unsaid(attempt["reason"], "permit.granted")


def test_records_are_documents_to_be_asked_for_compared_and_read_again(tamias, portal):
    tamias.env["TAMIAS_SCHEDULE__HARVESTS"] = "0.5"
    assert tamias.run("add", f"ckan:{portal.url('/')}").returncode == 0
    visit(tamias)
    portal.more = {"maintainer": "A. Keeper", "isopen": True}
    visit(tamias)
    asked = len(portal.log)
    record = portal.url("/#one")
    versions = json.loads(tamias.run("versions", record, "--json").stdout)
    assert [each["number"] for each in versions] == [1, 2]
    first = json.loads(tamias.run("get", record, "--version", "1").stdout)
    latest = json.loads(tamias.run("get", record).stdout)
    assert ("maintainer" in first, latest["maintainer"]) == (False, "A. Keeper")
    difference = json.loads(tamias.run("diff", record, "--json").stdout)
    assert (difference["kind"], difference["added"]) == ("json", 2)
    stats = json.loads(tamias.run("stats", "--json").stdout)
    assert (stats["records"]["records"], stats["records"]["versions"]) == (3, 6)
    assert stats["archive"]["datasets"] == 3
    mapping = json.loads(tamias.run("stats", "--mapping", portal.url("/"), "--json").stdout)
    fields = {each["field"]: each for each in mapping["fields"]}
    assert (mapping["records"], mapping["lost"], mapping["unread"]) == (3, 0, [])
    assert (fields["maintainer"]["mapped"], fields["isopen"]["extra"]) == (3, 3)
    assert tamias.run("check").returncode == 0
    assert len(portal.log) == asked


@pytest.fixture
def dated(site, reply):
    """A CKAN portal that lists by the date of change; `site.records` are its records by number."""

    def record(number, stamp, text="as it was"):
        named = {"id": f"{number:04d}", "name": f"n{number}", "title": f"Title {number}", "notes": text}
        return named | {"metadata_modified": f"2024-01-01T{stamp:02d}:00:00.000000", "resources": []}

    def search(handler):
        words = dict(pair.split("=") for pair in handler.path.partition("?")[2].split("&"))
        start, rows = int(words["start"]), int(words["rows"])
        found = sorted(site.records.values(), key=lambda each: each["id"])
        if words["sort"] == "metadata_modified%20desc":
            found.sort(key=lambda each: each["metadata_modified"], reverse=True)
        body = {"success": True, "result": {"count": len(found), "results": found[start : start + rows]}}
        reply(200, json.dumps(body).encode(), **{"Content-Type": "application/json"})(handler)

    site.record = record
    site.records = {number: record(number, number % 20) for number in range(60)}
    site.pages["/api/3/action/package_search?"] = search
    return site


def test_a_second_harvest_reads_what_changed_and_leaves_the_catalogue_as_a_first_one_would(
    tamias, fresh, dated, rows
):
    tamias.env["TAMIAS_SCHEDULE__HARVESTS"] = "0.5"
    url = f"ckan:{dated.url('/')}"
    assert tamias.run("add", url).returncode == 0
    visit(tamias)
    first, asked = tamias.quads(), len(dated.log)
    visit(tamias)
    assert {path for path, _ in dated.log[asked:]} == {
        "/api/3/action/package_search?rows=20&start=0&sort=metadata_modified%20desc"
    }
    assert tamias.quads() == first
    attempts = tamias.attempts()[dated.url("/")]
    (reason,) = {each["reason"] for each in attempts if each["outcome"] == "unchanged"}
    assert not unsaid(reason, "3", "60", "2024-01-01T18:55:00", "metadata_modified", "1")
    dated.records |= {7: dated.record(7, 21, "changed"), 60: dated.record(60, 22)}
    del dated.records[30]
    visit(tamias)
    assert [record for (record,) in rows(vanished)] == ["0030"]
    other = fresh("other")
    assert other.run("add", url).returncode == 0
    visit(other)
    assert tamias.quads() == other.quads()


def test_a_count_of_views_alone_makes_no_new_version_of_a_record(tamias, portal):
    tamias.env["TAMIAS_SCHEDULE__HARVESTS"] = "0.5"
    assert tamias.run("add", f"ckan:{portal.url('/')}").returncode == 0
    numbers = []
    for more in ({"tracking_summary": {"total": 1}}, {"tracking_summary": {"total": 2}}, {"notes": "y"}):
        portal.more = more
        visit(tamias)
        versions = json.loads(tamias.run("versions", portal.url("/#one"), "--json").stdout)
        numbers.append(len(versions))
    assert numbers == [1, 1, 2]

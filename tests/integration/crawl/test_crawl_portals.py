"""Portals under watch: what they offer is watched, what vanishes from them is noticed."""

import json
from contextlib import closing

import pytest

from tamias.archive.versions.resources import all_resources
from tamias.database.connect import Database


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


def visit(tamias):
    done = tamias.run("crawl", "--recrawl", "--allow-private", "--delay", "0", "--workers", "1")
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
    assert "set aside by permit.granted" in attempt["reason"]


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

"""Records of portals that were forgotten: the next harvest does not bring them again, only the others."""

import json
from contextlib import closing

import pytest

from tamias.archive.sources.source_records import (
    count_of_records,
    latest_records,
    page_of_records,
    present_records,
)
from tamias.archive.tombstones import find_target, put_tombstone
from tamias.database.connect import Database
from tamias.features.service.api.portals import datasets_at

SECRET = "Zaphod Beeblebrox of Magrathea"


@pytest.fixture
def portal(site, reply):
    """A CKAN portal with three datasets, of which one names a person."""
    site.notes = {"one": "plain", "two": SECRET, "three": "plain"}
    site.titles = {}

    def search(handler):
        words = dict(pair.split("=") for pair in handler.path.partition("?")[2].split("&"))
        start, rows = int(words.get("start", 0)), int(words.get("rows", 10))
        names = sorted(site.notes)
        results = [record(name) for name in names[start : start + rows]]
        body = {"success": True, "result": {"count": len(names), "results": results}}
        reply(200, json.dumps(body).encode(), **{"Content-Type": "application/json"})(handler)

    def record(name):
        publisher = {"name": "office", "title": "The office"}
        return {
            "id": name, "name": name, "title": site.titles.get(name, name.title()), "notes": site.notes[name],
            "organization": publisher,
            "resources": [{"id": f"r-{name}", "url": site.url(f"/{name}.csv"), "format": "CSV"}],
        }  # fmt: skip

    site.pages["/api/3/action/package_search?"] = search
    return site


def harvest(tamias, portal):
    done = tamias.crawl("--recrawl", "--depth", "0", f"ckan:{portal.url('/')}")
    assert done.returncode == 0, done.stderr


def rows(tamias, statement):
    with closing(Database(tamias.data, create=False)) as database, closing(database.session()) as session:
        return session.fetch_all(statement)


def stored(tamias):
    """The records that are kept, and those that are described."""
    kept = rows(tamias, b"SELECT record, number FROM source_record ORDER BY record, number")
    described = rows(tamias, b"SELECT record FROM described ORDER BY record")
    offered = rows(tamias, b"SELECT record FROM offered ORDER BY record")
    return kept, [name for (name,) in described], [name for (name,) in offered]


def about(lines, *names):
    """The statements with one of these words."""
    return {line for line in lines if any(name in line for name in names)}


def test_a_forgotten_record_is_not_stored_again_by_the_next_harvest_and_the_others_are(tamias, portal):
    iri = portal.url("/") + "#two"
    harvest(tamias, portal)
    before = tamias.quads()
    assert about(before, SECRET)
    assert stored(tamias)[1] == ["one", "three", "two"]
    size, on_disk = rows(
        tamias, b"SELECT byte_size, octet_length(body) FROM source_record WHERE record = 'two'"
    )[0]
    target = json.loads(tamias.run("forget", iri, "--dry-run", "--json").stdout)["targets"][0]
    assert [target[name] for name in ("versions", "bytes", "stored_bytes")] == [1, size, on_disk]
    done = tamias.run("forget", iri, "--reason", "personal data")
    assert done.returncode == 0, done.stderr
    assert about(tamias.quads(), SECRET) == set()
    for _ in range(2):
        harvest(tamias, portal)
        assert stored(tamias) == ([("one", 1), ("three", 1)], ["one", "three"], ["one", "three"])
        assert tamias.quads() == before - about(before, "two", "Two", SECRET)
    assert "personal data" in tamias.run("get", iri).stderr
    assert tamias.run("check").returncode == 0
    assert tamias.run("forget", iri, "--lift").returncode == 0
    harvest(tamias, portal)
    assert stored(tamias)[0] == [("one", 1), ("three", 1), ("two", 2)]
    assert tamias.quads() == before


def test_a_record_whose_forgetting_is_under_way_is_not_given_out(tamias, portal):
    """The tombstone is there, the rows still are."""
    harvest(tamias, portal)
    with closing(Database(tamias.data, create=False)) as database, closing(database.session()) as session:
        root = portal.url("/")
        everyone = {each.record for each in latest_records(session, root)}
        put_tombstone(session, find_target(session, root + "#two", None, frozenset()), "asked for", "me")
        assert everyone == {"one", "three", "two"}
        assert {each.record for each in latest_records(session, root)} == {"one", "three"}
        assert {each.record for each in present_records(session, root, "")[0]} == {"one", "three"}
        assert {each.record for each in page_of_records(session, root, 0, 10, 0)} == {"one", "three"}
        assert count_of_records(session, root, 0) == 2
    assert len(rows(tamias, b"SELECT FROM source_record")) == 3


def test_a_forgotten_version_of_a_record_is_not_stored_again(tamias, portal):
    iri = portal.url("/") + "#two"
    harvest(tamias, portal)
    assert tamias.run("forget", iri, "--version", "1").returncode == 0
    assert about(tamias.quads(), SECRET) == set()
    harvest(tamias, portal)
    assert stored(tamias)[0] == [("one", 1), ("three", 1)]
    assert about(tamias.quads(), SECRET) == set()
    portal.notes["two"] = "plain"
    harvest(tamias, portal)
    assert stored(tamias)[0] == [("one", 1), ("three", 1), ("two", 2)]


def listed(tamias, portal):
    """What the portal called its datasets in each of its harvests, by what was listed then."""
    found = []
    with closing(Database(tamias.data, create=False)) as database, closing(database.session()) as session:
        times = session.fetch_all(b"SELECT DISTINCT captured_at FROM source_record ORDER BY captured_at")
        for (at,) in times:
            datasets = datasets_at(session, portal.url("/"), at, "", 10)
            found.append({each.record: each.title for each in datasets})
    return found


def test_a_dataset_that_was_renamed_has_its_title_of_each_harvest_until_that_version_is_forgotten(
    tamias, portal
):
    for title in ("Two", SECRET, "Two"):
        portal.titles["two"] = title
        harvest(tamias, portal)
    others = {"one": "One", "three": "Three"}
    assert listed(tamias, portal) == [others | {"two": title} for title in ("Two", SECRET, "Two")]
    done = tamias.run("forget", portal.url("/") + "#two", "--version", "2")
    assert done.returncode == 0, done.stderr
    assert rows(tamias, b"SELECT title FROM earlier_description") == [("Two",)]
    assert tamias.run("check").returncode == 0
    done = tamias.run("forget", portal.url("/") + "#two")
    assert done.returncode == 0, done.stderr
    assert rows(tamias, b"SELECT title FROM earlier_description") == []
    assert listed(tamias, portal) == [others]

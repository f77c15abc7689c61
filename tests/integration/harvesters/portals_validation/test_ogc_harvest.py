"""Catalogues of OGC API Records and STAC: pages, pauses, bad records and pages that come again."""

import json

import pytest

from tamias.features.portals.ogc import OgcRecordsHarvester, StacHarvester
from tamias.model.capture import Outcome
from tests.messages import unsaid


def record(number):
    return {"id": f"r{number:03d}", "type": "Feature", "properties": {"title": f"Record {number}"}}


@pytest.fixture
def catalogue(portal):
    """A catalogue of 130 records that gives 50 on a page, whatever it is asked for."""
    portal.records = [record(number) for number in range(130)]
    portal.before = lambda start: None

    def serve(path, query):
        if path == "/":
            return {"title": "Town"}
        if path == "/collections":
            return {"collections": [{"id": "town", "itemType": "record"}, {"id": "roads"}]}
        start = int(query.get("offset", 0))
        if (answer := portal.before(start)) is not None:
            return answer
        links = [{"rel": "next", "href": f"?limit=100&offset={start + 50}"}] if start < 100 else []
        found = portal.records[start : start + 50]
        return {"features": found, "links": links, "numberMatched": len(portal.records)}

    portal.serve = serve
    return portal


def test_smaller_pages_than_asked_for_are_read_to_the_last(catalogue, harvest):
    harvested = harvest(OgcRecordsHarvester())
    assert harvested.titles == ["roads", *(f"Record {number}" for number in range(130))]
    assert harvested.end.complete, harvested.end.reason


def test_a_harvest_goes_on_from_the_state_of_its_last_step(catalogue, harvest):
    begun = harvest(OgcRecordsHarvester(), most_steps=3)
    rest = harvest(OgcRecordsHarvester(), state=begun.steps[-1].state)
    assert begun.titles + rest.titles == harvest(OgcRecordsHarvester()).titles


def test_a_pause_that_the_server_asks_for_is_passed_on(catalogue, harvest):
    catalogue.before = lambda start: (429, {"Retry-After": "7"}, b"") if start == 50 else None
    end = harvest(OgcRecordsHarvester()).end
    assert (end.retry, end.retry_after_ms) == (True, 7000)


def test_one_bad_record_does_not_stop_the_rest(catalogue, harvest):
    catalogue.records[60] = {"type": "Feature", "properties": {"title": "without a name"}}
    harvested = harvest(OgcRecordsHarvester())
    assert (len(harvested.datasets), len(harvested.problems)) == (130, 1)
    assert not harvested.end.complete


def test_a_page_that_is_no_json_is_left_out_and_said(catalogue, harvest):
    catalogue.before = lambda start: (200, {}, b'{"features": [') if start == 50 else None
    harvested = harvest(OgcRecordsHarvester())
    assert "Record 49" in harvested.titles
    assert (harvested.end.outcome, harvested.end.complete) == (Outcome.OK, False)


def test_a_catalogue_that_gives_one_page_for_ever_is_left(catalogue, harvest):
    same = {"features": [record(1)], "links": [{"rel": "next", "href": "?offset=50"}]}
    catalogue.before = lambda start: (200, {}, json.dumps(same).encode())
    harvested = harvest(OgcRecordsHarvester())
    assert not unsaid(harvested.end.reason)
    assert not harvested.end.complete


def test_the_state_of_a_harvest_stays_small_whatever_the_collections_are_called(portal, harvest):
    """And however many of them cannot be read: it is stored with every page."""
    names = ["good", "x" * 500_000, *(f"away{number}" for number in range(30))]

    def serve(path, query):
        if path == "/collections":
            return {"collections": [{"id": name, "itemType": "record"} for name in names]}
        if path == "/collections/good/items":
            return {"features": [record(1)]}
        return {} if path == "/" else (404, {}, b"")

    portal.serve = serve
    harvested = harvest(OgcRecordsHarvester())
    assert max(len(step.state) for step in harvested.steps) < 20_000
    assert (harvested.titles, harvested.end.complete) == (["Record 1"], False)
    assert not unsaid(harvested.end.reason, "1000")


def test_items_of_two_collections_with_the_same_name_are_two_records(portal, harvest):
    def serve(path, query):
        if path == "/collections":
            return {"collections": [{"id": name, "title": name} for name in ("a", "b")]}
        name = path.split("/")[2] if path != "/" else ""
        item = {"id": "1", "type": "Feature", "collection": name, "properties": {}, "assets": {}}
        return {"features": [item], "links": []} if name else {}

    portal.serve = serve
    harvested = harvest(StacHarvester())
    assert sorted(each.record for each in harvested.datasets) == ["a", "a/1", "b", "b/1"]

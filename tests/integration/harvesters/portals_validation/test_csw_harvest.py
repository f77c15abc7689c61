"""Catalogues that speak CSW: pages, caps, both forms of records, and services with faults."""

import pytest
from servers.csw_answers import CSW, GMD, capabilities, exception, iso_record, page, xml

from tamias.features.portals.csw import CswHarvester
from tamias.model.capture import Outcome


@pytest.fixture
def catalogue(portal):
    """A catalogue of 130 records that gives 40 on a page, whatever it is asked for."""
    portal.schemas, portal.most, portal.following = (GMD, CSW), 40, None
    portal.records = [iso_record(f"r{n}", f"Record {n}", f"Number {n}.", "2024-01-02T03:04:05")
                      for n in range(130)]  # fmt: skip
    portal.before = lambda query: None
    portal.asked = []

    def serve(path, query):
        assert (path, query["service"], query["version"]) == ("/csw", "CSW", "2.0.2")
        portal.asked.append(query)
        if query["request"] == "GetCapabilities":
            return capabilities(*portal.schemas)
        if (answer := portal.before(query)) is not None:
            return answer
        start, size = int(query["startPosition"]), min(portal.most, int(query["maxRecords"]))
        found = portal.records[start - 1 : start - 1 + size]
        following = start + len(found) if start + len(found) <= len(portal.records) else 0
        said = following if portal.following is None else portal.following
        return page(found, len(portal.records), said)

    portal.serve = serve
    return portal


TITLES = [f"Record {number}" for number in range(130)]


def test_smaller_pages_than_asked_for_are_read_to_the_last(catalogue, harvest):
    harvested = harvest(CswHarvester(), "/csw")
    assert harvested.titles == TITLES
    assert harvested.end.complete, harvested.end.reason
    assert [query["startPosition"] for query in catalogue.asked[1:]] == ["1", "41", "81", "121"]
    assert {query["outputSchema"] for query in catalogue.asked[1:]} == {GMD}


@pytest.mark.parametrize("following", [0, 1, 9999])
def test_a_next_record_that_leads_nowhere_is_not_followed(catalogue, harvest, following):
    catalogue.following = following
    harvested = harvest(CswHarvester(), "/csw?lang=eng&request=GetCapabilities")
    assert (harvested.titles, harvested.end.complete) == (TITLES, True)
    assert {query["lang"] for query in catalogue.asked} == {"eng"}


def test_a_service_without_iso_records_is_asked_for_dublin_core(catalogue, harvest):
    catalogue.before = lambda query: (
        exception("no such schema", 400) if query["outputSchema"] == GMD else None
    )
    assert harvest(CswHarvester(), "/csw").titles == TITLES


def test_one_record_that_breaks_its_page_is_left_out_alone(catalogue, harvest):
    def broken(query):
        start, size = int(query["startPosition"]), min(catalogue.most, int(query["maxRecords"]))
        return exception("out of memory") if start <= 60 < start + size else None

    catalogue.before = broken
    harvested = harvest(CswHarvester(), "/csw")
    assert harvested.titles == [title for title in TITLES if title != "Record 59"]
    assert not harvested.end.complete
    assert any("record 60 left out" in each for each in harvested.problems)


def test_one_bad_record_does_not_stop_the_rest(catalogue, harvest):
    catalogue.records[60] = f'<gmd:MD_Metadata xmlns:gmd="{GMD}"/>'
    harvested = harvest(CswHarvester(), "/csw")
    assert (len(harvested.datasets), len(harvested.problems)) == (129, 1)
    assert not harvested.end.complete


def test_a_harvest_goes_on_from_the_state_of_its_last_step(catalogue, harvest):
    begun = harvest(CswHarvester(), "/csw", most_steps=3)
    rest = harvest(CswHarvester(), "/csw", state=begun.steps[-1].state)
    assert begun.titles + rest.titles == TITLES


def test_a_pause_that_the_server_asks_for_is_passed_on(catalogue, harvest):
    catalogue.before = lambda query: (
        (429, {"Retry-After": "7"}, b"") if query["startPosition"] == "41" else None
    )
    end = harvest(CswHarvester(), "/csw").end
    assert (end.retry, end.retry_after_ms) == (True, 7000)


def test_a_catalogue_that_gives_one_page_for_ever_is_left(catalogue, harvest):
    catalogue.before = lambda query: page(catalogue.records[:10], 10_000, 11)
    end = harvest(CswHarvester(), "/csw").end
    assert "again and again" in end.reason
    assert not end.complete


def test_a_document_type_is_not_read(catalogue, harvest):
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><x>&a;</x>'
    catalogue.before = lambda query: xml(bomb)
    end = harvest(CswHarvester(), "/csw").end
    assert (end.outcome, "no XML" in end.reason) == (Outcome.FAILED, True)


def test_what_is_no_csw_says_what_it_is(portal, harvest):
    portal.serve = lambda path, query: xml("<html/>")
    end = harvest(CswHarvester(), "/csw").end
    assert (end.outcome, "<html> is not the answer of a CSW" in end.reason) == (Outcome.FAILED, True)


def test_an_iso_record_becomes_dcat(catalogue, harvest):
    del catalogue.records[1:]
    (dataset,) = harvest(CswHarvester(), "/csw").datasets
    assert dataset.identifiers == ("r0", "urn:x:r0")
    assert (dataset.title, dataset.description, dataset.version) == ("Record 0", "Number 0.", "2.1")
    assert (dataset.issued, dataset.modified, dataset.record_modified) == (
        "2019-05-04", "2021-06-05", "2024-01-02T03:04:05",
    )  # fmt: skip
    assert (dataset.keywords, dataset.groups, dataset.language) == (
        ("trees", "parks"),
        ("environment",),
        ("de",),
    )
    assert dataset.licence == "https://creativecommons.org/licenses/by/4.0/"
    assert (dataset.frequency, dataset.provenance) == ("annually", "Counted on foot.")
    assert (dataset.publisher.name, dataset.publisher.email) == (
        "Parks Office / A. Person", "parks@example.org",
    )  # fmt: skip
    assert (dataset.contact.name, dataset.contact.email) == ("Survey / A. Person", "survey@example.org")
    assert dataset.spatial == ("POLYGON((8 47,9 47,9 48,8 48,8 47))",)
    assert [(each.start, each.end) for each in dataset.temporal] == [("2010-01-01", "2019-12-31")]
    assert [(each.url, each.access_only, each.service_kind) for each in dataset.distributions] == [
        ("https://files.example.org/r0.csv", False, None), ("https://maps.example.org/wms", True, "wms"),
    ]  # fmt: skip
    said = {(each.name, each.value, each.language) for each in dataset.more}
    assert said == {
        ("dct:title", "Arbres", "fr"), ("dct:type", "dataset", None),
        ("dcat:spatialResolutionInMeters", "25", None),
    }  # fmt: skip

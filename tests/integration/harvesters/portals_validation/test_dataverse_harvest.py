"""Dataverse: its search, the exports of its datasets, and what to do where one is missing."""

import pytest

from tamias.features.portals.dataverse import DataverseHarvester
from tamias.model.capture import Outcome
from tests.messages import unsaid


def item(number):
    return {
        "name": f"Set {number}",
        "type": "dataset",
        "url": f"https://doi.org/10.7910/DVN/{number}",
        "global_id": f"doi:10.7910/DVN/{number}",
        "description": "As the search says it.",
        "published_at": "2020-02-03T10:00:00Z",
        "publisher": "Harbour Dataverse",
        "subjects": ["Earth Sciences"],
        "authors": ["Noether, Emmy"],
    }


def field(name, value):
    return {"typeName": name, "multiple": isinstance(value, list), "value": value}


def compound(**parts):
    return {name: {"typeName": name, "value": value} for name, value in parts.items()}


def export(number):
    citation = [
        field("title", f"Set {number}"),
        field("author", [compound(authorName="Noether, Emmy")]),
        field(
            "datasetContact", [compound(datasetContactName="Desk", datasetContactEmail="desk@example.org")]
        ),
        field("dsDescription", [compound(dsDescriptionValue="As the export says it.")]),
        field("subject", ["Earth Sciences"]),
        field("keyword", [compound(keywordValue="tides")]),
        field("timePeriodCovered", [compound(timePeriodCoveredStart="2001", timePeriodCoveredEnd="2005")]),
    ]
    file = {
        "id": number,
        "filename": "tides.tab",
        "contentType": "text/tab-separated-values",
        "filesize": 123,
        "checksum": {"type": "SHA-256", "value": "a" * 64},
    }
    return {
        "persistentUrl": f"https://doi.org/10.7910/DVN/{number}",
        "publisher": "Harbour Dataverse",
        "publicationDate": "2020-02-03",
        "datasetVersion": {
            "versionNumber": 1,
            "versionMinorNumber": 2,
            "lastUpdateTime": "2020-03-01T00:00:00Z",
            "license": {"name": "CC0 1.0", "uri": "http://creativecommons.org/publicdomain/zero/1.0"},
            "metadataBlocks": {"citation": {"fields": citation}},
            "files": [
                {"label": "tides.tab", "directoryLabel": "data", "restricted": False, "dataFile": file}
            ],
        },
    }


class Dataverse:
    def __init__(self, number):
        self.items = [item(each) for each in range(1, number + 1)]
        self.exports = {f"doi:10.7910/DVN/{each}": export(each) for each in range(1, number + 1)}

    def __call__(self, path, query):
        if path == "/api/search":
            start, size = int(query["start"]), int(query["per_page"])
            return {
                "status": "OK",
                "data": {"total_count": len(self.items), "items": self.items[start : start + size]},
            }
        if path == "/api/datasets/export":
            return self.exports.get(query["persistentId"])
        return None


@pytest.fixture
def dataverse(portal):
    portal.serve = Dataverse(12)
    return portal.serve


def test_every_dataset_is_read_with_its_files(dataverse, harvest):
    harvested = harvest(DataverseHarvester())
    assert ([len(each.distributions) for each in harvested.datasets], harvested.end.complete) == (
        [1] * 12,
        True,
    )


def test_several_pages_of_the_search_are_read(portal, harvest):
    portal.serve = Dataverse(230)
    assert len({each.record for each in harvest(DataverseHarvester()).datasets}) == 230


def test_each_dataset_is_exported_once(portal, dataverse, harvest):
    harvest(DataverseHarvester())
    assert len([path for path, _ in portal.log if path.endswith("export")]) == 12


def test_files_become_links(portal, dataverse, harvest):
    assert (portal.url("/api/access/datafile/1"), None) in harvest(DataverseHarvester()).links


def test_the_collection_that_the_address_names_is_searched(portal, dataverse, harvest):
    harvest(DataverseHarvester(), "/dataverse/tides")
    assert portal.log[0][1]["subtree"] == "tides"


def test_a_harvest_goes_on_from_the_state_of_its_last_step(portal, dataverse, harvest):
    first = harvest(DataverseHarvester(), most_steps=2)
    rest = harvest(DataverseHarvester(), state=first.steps[-1].state)
    exports = [query["persistentId"] for path, query in portal.log if path.endswith("export")]
    assert (len(first.datasets), len(rest.datasets), len(exports)) == (10, 2, 12)


def test_a_dataset_without_an_export_is_told_as_the_search_does(dataverse, harvest):
    del dataverse.exports["doi:10.7910/DVN/3"]
    harvested = harvest(DataverseHarvester())
    assert (harvested.datasets[2].description, harvested.end.complete) == ("As the search says it.", True)


def test_one_bad_item_does_not_stop_the_rest(dataverse, harvest):
    dataverse.items[4] = {"name": "Nameless"}
    harvested = harvest(DataverseHarvester())
    assert (len(harvested.datasets), "Nameless" in harvested.problems[0]) == (11, True)


def test_one_export_that_fails_is_no_end(portal, dataverse, harvest):
    dataverse.exports["doi:10.7910/DVN/3"] = (500, {}, b"")
    assert len(harvest(DataverseHarvester()).datasets) == 12


def test_a_pause_in_the_middle_keeps_what_came_before(dataverse, harvest):
    kept = dataverse.exports["doi:10.7910/DVN/7"]
    dataverse.exports["doi:10.7910/DVN/7"] = (503, {"Retry-After": "30"}, b"")
    first = harvest(DataverseHarvester())
    dataverse.exports["doi:10.7910/DVN/7"] = kept
    rest = harvest(DataverseHarvester(), state=first.steps[-1].state)
    assert (first.end.retry_after_ms, len(first.datasets), len(rest.datasets)) == (30_000, 6, 6)


def test_where_robots_forbid_the_api_oai_pmh_is_left_to_try(portal, dataverse, harvest):
    portal.forbidden = ["/api/"]
    harvested = harvest(DataverseHarvester())
    assert (harvested.end.outcome, harvested.links) == (Outcome.REFUSED, [(portal.url("/oai"), "oai-pmh")])


def test_where_robots_forbid_only_the_exports_the_search_is_enough(portal, dataverse, harvest):
    portal.forbidden = ["/api/datasets"]
    harvested = harvest(DataverseHarvester())
    assert (len(harvested.datasets), not unsaid(harvested.end.reason, "robots.txt")) == (12, True)


def test_a_search_that_repeats_its_page_is_not_called_complete(portal, harvest):
    served = Dataverse(100)
    served.items *= 5
    portal.serve = served
    portal.forbidden = ["/api/datasets"]
    end = harvest(DataverseHarvester()).end
    assert ("100 datasets of 500 counted" in end.reason, end.complete) == (True, False)


def test_a_search_of_html_fails(portal, harvest):
    portal.serve = lambda path, query: b"<html></html>"
    assert harvest(DataverseHarvester()).end.outcome is Outcome.FAILED

"""Zenodo and other InvenioRDM: windows of ten thousand, slices of time, two forms of JSON."""

import re

import pytest

from tamias.features.portals import zenodo
from tamias.features.portals.zenodo import ZenodoHarvester
from tamias.model.capture import Outcome


def record(number, day, kind="dataset"):
    return {
        "id": number,
        "doi": f"10.5281/zenodo.{number}",
        "created": f"{day}T08:00:00.000000+00:00",
        "modified": f"{day}T09:00:00.000000+00:00",
        "links": {"self_html": f"https://zenodo.example.org/records/{number}"},
        "metadata": {
            "title": f"Set {number}",
            "description": "<p>Measured.</p>",
            "access_right": "open",
            "publication_date": day,
            "creators": [{"name": "Curie, Marie", "orcid": "0000-0001-2345-6789"}],
            "license": {"id": "cc-by-4.0"},
            "resource_type": {"title": "Dataset", "type": kind},
        },
        "files": [
            {
                "key": "table.csv",
                "size": 10,
                "checksum": "md5:d41d8cd98f00b204e9800998ecf8427e",
                "links": {"self": f"https://zenodo.example.org/api/records/{number}/files/table.csv/content"},
            }
        ],
    }


class Search:
    """Records by the day on which they were made; no more than a window of them for one query."""

    def __init__(self, days, window):
        self.records = [record(number, day) for number, day in enumerate(days, 1)]
        self.window = window
        self.most_a_page = 100

    def __call__(self, path, query):
        if path != "/api/records":
            return None
        found = [each for each in self.records if self.matches(each, query.get("q"))]
        found.sort(key=lambda each: each["created"], reverse=query["sort"] == "newest")
        page, size = int(query["page"]), min(int(query["size"]), self.most_a_page)
        if page * size > self.window + size - 1 or size > 25:
            return 400, {}, b'{"message": "Maximum number of results have been reached."}'
        return {"hits": {"hits": found[(page - 1) * size : page * size], "total": len(found)}}

    def matches(self, each, query):
        if not query:
            return True
        start, end = re.fullmatch(r"created:\[(\S+) TO (\S+?)[\]}]", query).groups()
        return start <= each["created"][:10] and (end == "*" or each["created"][:10] < end)


@pytest.fixture
def search(portal, monkeypatch):
    """`search(days)` serves records made on these days; a window holds a hundred."""
    monkeypatch.setattr(zenodo.LISTING, "deepest", 100)

    def serve(days):
        portal.serve = Search(days, 100)
        return portal.serve

    return serve


def days(number, per_day):
    return [
        f"20{15 + day // 336}-{day // 28 % 12 + 1:02}-{day % 28 + 1:02}"
        for day in range(number)
        for _ in range(per_day)
    ]


def test_a_small_repository_is_read_page_by_page(portal, search, harvest):
    search(days(60, 1))
    harvested = harvest(ZenodoHarvester())
    assert (len(harvested.datasets), harvested.end.complete, len(portal.log)) == (60, True, 3)


def test_a_repository_larger_than_the_window_is_read_in_slices(search, harvest):
    search(days(200, 5))
    harvested = harvest(ZenodoHarvester())
    assert (len({each.record for each in harvested.datasets}), harvested.end.complete) == (1000, True)


def test_slices_read_no_record_twice(search, harvest):
    search(days(200, 5))
    assert len(harvest(ZenodoHarvester()).datasets) == 1000


def test_slices_cost_few_requests_beyond_the_pages(portal, search, harvest):
    search(days(200, 5))
    harvest(ZenodoHarvester())
    assert len(portal.log) < 2 * 1000 / 25


def test_records_crowded_on_one_day_are_found_by_smaller_slices(search, harvest):
    search(["2015-01-01"] + ["2019-06-05"] * 90 + ["2019-06-06"] * 90 + ["2023-12-31"])
    assert len(harvest(ZenodoHarvester()).datasets) == 182


def test_a_day_that_holds_more_than_a_window_is_said_to_be_incomplete(search, harvest):
    search(["2015-01-01"] + ["2019-06-05"] * 150 + ["2023-12-31"])
    harvested = harvest(ZenodoHarvester())
    assert (len(harvested.datasets), harvested.end.complete) == (102, False)


def test_a_harvest_goes_on_from_the_state_of_its_last_step(search, harvest):
    search(days(200, 5))
    first = harvest(ZenodoHarvester(), most_steps=20)
    rest = harvest(ZenodoHarvester(), state=first.steps[-1].state)
    assert len({each.record for each in first.datasets + rest.datasets}) == 1000


def test_records_of_other_kinds_are_left_out(search, harvest):
    search(days(5, 1)).records[2] = record(3, "2015-01-03", kind="publication")
    assert harvest(ZenodoHarvester()).titles == ["Set 1", "Set 2", "Set 4", "Set 5"]


def test_one_bad_record_does_not_stop_the_rest(search, harvest):
    search(days(5, 1)).records[2]["metadata"] = None
    harvested = harvest(ZenodoHarvester())
    assert (len(harvested.datasets), harvested.problems[0].startswith("record 3 of")) == (4, True)


def test_files_carry_size_and_checksum(search, harvest):
    search(days(1, 1))
    file = harvest(ZenodoHarvester()).datasets[0].distributions[0]
    assert (file.byte_size, file.checksum) == (10, ("md5", "d41d8cd98f00b204e9800998ecf8427e"))


def test_files_become_links(search, harvest):
    search(days(1, 1))
    assert harvest(ZenodoHarvester()).links == [
        ("https://zenodo.example.org/api/records/1/files/table.csv/content", None)
    ]


def test_a_record_that_makes_each_page_no_json_is_left_out(portal, search, harvest):
    served = search(days(60, 1))

    def serve(path, query):
        page, size = int(query["page"]), int(query["size"])
        return b"{..." if (page - 1) * size <= 30 < page * size else served(path, query)

    portal.serve = serve
    harvested = harvest(ZenodoHarvester())
    assert harvested.titles == [f"Set {number}" for number in range(1, 61) if number != 31]
    assert not harvested.end.complete


def test_a_repository_of_html_fails(portal, harvest):
    portal.serve = lambda path, query: b"<html></html>"
    assert harvest(ZenodoHarvester()).end.outcome is Outcome.FAILED


def test_too_many_requests_are_a_pause(portal, harvest):
    portal.serve = lambda path, query: (429, {"Retry-After": "60"}, b"")
    assert harvest(ZenodoHarvester()).end.retry_after_ms == 60_000


def test_pages_that_are_smaller_than_asked_for_are_all_read(portal, harvest, search):
    search(days(60, 1)).most_a_page = 10
    harvested = harvest(ZenodoHarvester())
    assert len({each.record for each in harvested.datasets}) == 60
    assert harvested.end.complete

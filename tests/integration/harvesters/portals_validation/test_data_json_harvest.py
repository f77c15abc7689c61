"""`data.json`: one file with everything, whole or broken."""

import json

import pytest

from tamias.features.portals.data_json import DataJsonHarvester
from tamias.model.capture import Outcome


def record(number, **more):
    return {
        "@type": "dcat:Dataset",
        "identifier": f"set-{number}",
        "title": f"Set {number}",
        "description": "Counts.",
        "accessLevel": "public",
        "modified": "2024-03-01",
        "keyword": ["counts"],
        "publisher": {"@type": "org:Organization", "name": "Office of Counting"},
        "contactPoint": {"@type": "vcard:Contact", "fn": "Ada", "hasEmail": "mailto:ada@example.org"},
        "distribution": [
            {
                "@type": "dcat:Distribution",
                "downloadURL": f"https://example.org/{number}.csv",
                "mediaType": "text/csv",
            }
        ],
    } | more


def catalogue(records):
    return {"conformsTo": "https://project-open-data.cio.gov/v1.1/schema", "dataset": records}


@pytest.fixture
def serve(portal):
    def set_body(body):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        portal.serve = lambda path, query: (200, {"Content-Type": "application/json"}, body)

    return set_body


def test_every_record_becomes_a_dataset(serve, harvest):
    serve(catalogue([record(number) for number in range(1, 601)]))
    harvested = harvest(DataJsonHarvester(), "/data.json")
    assert (len(harvested.datasets), harvested.end.complete) == (600, True)


def test_the_list_of_older_files_is_read_too(serve, harvest):
    serve([record(1), record(2)])
    assert harvest(DataJsonHarvester(), "/data.json").titles == ["Set 1", "Set 2"]


def test_distributions_become_links(serve, harvest):
    serve(catalogue([record(1)]))
    assert harvest(DataJsonHarvester(), "/data.json").links == [("https://example.org/1.csv", None)]


def test_an_endpoint_becomes_a_link_of_its_kind(serve, harvest):
    serve(catalogue([record(1, distribution=[{"accessURL": "https://example.org/sparql", "format": "API"}])]))
    assert harvest(DataJsonHarvester(), "/data.json").links == [("https://example.org/sparql", "sparql")]


def test_a_harvest_goes_on_from_the_state_of_its_last_step(serve, harvest):
    serve(catalogue([record(number) for number in range(1, 601)]))
    first = harvest(DataJsonHarvester(), "/data.json", most_steps=2)
    rest = harvest(DataJsonHarvester(), "/data.json", state=first.steps[-1].state)
    assert first.titles + rest.titles == [f"Set {number}" for number in range(1, 601)]


def test_a_file_that_changed_is_read_from_its_beginning(serve, harvest):
    serve(catalogue([record(number) for number in range(1, 601)]))
    first = harvest(DataJsonHarvester(), "/data.json", most_steps=2)
    serve(catalogue([record(number) for number in range(1, 301)]))
    rest = harvest(DataJsonHarvester(), "/data.json", state=first.steps[-1].state)
    assert len(rest.datasets) == 300


def test_one_bad_record_does_not_stop_the_rest(serve, harvest):
    serve(catalogue([record(1), {"keyword": 5}, 7, record(2)]))
    harvested = harvest(DataJsonHarvester(), "/data.json")
    assert (harvested.titles, len(harvested.problems), harvested.end.complete) == (
        ["Set 1", "Set 2"],
        2,
        False,
    )


def test_wrong_shapes_within_a_record_are_left_out(serve, harvest):
    odd = record(
        1, publisher=[], contactPoint="Ada", keyword="one", temporal=7, spatial={}, distribution="none"
    )
    serve(catalogue([odd]))
    assert harvest(DataJsonHarvester(), "/data.json").datasets[0].keywords == ("one",)


def test_records_around_a_fault_in_the_file_are_kept(serve, harvest):
    body = json.dumps(catalogue([record(number) for number in range(1, 6)])).encode()
    serve(body.replace(b'"Set 3"', b'"Set "3""'))
    harvested = harvest(DataJsonHarvester(), "/data.json")
    assert (harvested.titles, harvested.end.complete) == (["Set 1", "Set 2", "Set 4", "Set 5"], False)


def test_records_before_an_early_end_are_kept(serve, harvest):
    body = json.dumps(catalogue([record(number) for number in range(1, 6)])).encode()
    serve(body[:-300])
    assert harvest(DataJsonHarvester(), "/data.json").titles == ["Set 1", "Set 2", "Set 3", "Set 4"]


def test_an_identifier_that_stands_twice_counts_once(serve, harvest):
    serve(catalogue([record(1), record(1, title="Again"), record(2)]))
    harvested = harvest(DataJsonHarvester(), "/data.json")
    assert (harvested.titles, harvested.end.complete) == (["Set 1", "Set 2"], True)


def test_a_page_of_html_is_no_catalogue(serve, harvest):
    serve(b"<html><body>Not found</body></html>")
    assert harvest(DataJsonHarvester(), "/data.json").end.outcome is Outcome.FAILED


def test_json_without_end_to_its_depth_is_refused(serve, harvest):
    serve(b'{"dataset":[' + b"[" * 500_000)
    assert harvest(DataJsonHarvester(), "/data.json").end.outcome is Outcome.FAILED


def test_a_file_that_is_not_there_is_gone(portal, harvest):
    assert harvest(DataJsonHarvester(), "/data.json").end.outcome is Outcome.GONE

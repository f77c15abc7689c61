"""`data.json`: one file with everything, whole or broken."""

import json
import os
from pathlib import Path

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


DCAT = "http://www.w3.org/ns/dcat#"
PUBLIC = os.environ.get("TAMIAS_DCAT_US", "")
"""The folder of the public harvester of DCAT-US 3, with its example catalogues and schemas."""


def set_of(name):
    return {"identifier": f"https://example.org/{name}", "title": name, "description": f"About {name}."}


DCAT_US_3 = {
    "@type": "Catalog",
    "title": "Town",
    "contactPoint": [{"fn": "Desk", "hasEmail": "mailto:desk@example.org"}],
    "dataset": [set_of("top")],
    "record": [
        {"@id": "https://example.org/r", "primaryTopic": "https://example.org/top", "modified": "2024-06-15"}
    ],
    "service": [
        {
            "@id": "https://example.org/s",
            "title": "API",
            "endpointURL": ["https://example.org/sparql"],
            "servesDataset": [set_of("served")],
        }
    ],
    "catalog": [
        {
            "@id": "https://example.org/c",
            "title": "Child",
            "dataset": [set_of("child")],
            "catalog": [{"@id": "https://example.org/g", "title": "Grandchild", "dataset": [set_of("deep")]}],
            "datasetSeries": [
                {
                    "@id": "https://example.org/y",
                    "title": "Years",
                    "seriesMember": [set_of("top"), set_of("member")],
                    "last": set_of("member"),
                }
            ],
        }
    ],
}


def test_all_parts_of_a_catalogue_of_dcat_us_3_are_read(serve, harvest, portal):
    serve(DCAT_US_3)
    harvested = harvest(DataJsonHarvester(), "/data.json")
    root, name = portal.url("data.json"), "https://example.org/{}".format
    terms = (DCAT, "http://purl.org/dc/terms/title", "http://xmlns.com/foaf/0.1/primaryTopic")
    said = {
        (quad.subject.value, quad.predicate.value.removeprefix(DCAT), quad.object.value)
        for quad in harvested.quads
        if quad.predicate.value.startswith(terms) and quad.subject.value in {root, *map(name, "rscgy")}
    }
    title, topic = terms[1:]
    listed = {(root, "dataset", name(each)) for each in ("top", "served", "child", "deep", "member")}
    assert said == listed | {
        (root, title, "Town"),
        (root, "contactPoint", f"{root}#catalogue/contact"),
        (root, "record", name("r")),
        (name("r"), topic, name("top")),
        (name("r"), title, name("r")),
        (root, "service", name("s")),
        (name("s"), title, "API"),
        (name("s"), "endpointURL", name("sparql")),
        (name("s"), "servesDataset", name("served")),
        (root, "catalog", name("c")),
        (name("c"), title, "Child"),
        (name("c"), "dataset", name("child")),
        (name("c"), "catalog", name("g")),
        (name("g"), title, "Grandchild"),
        (name("g"), "dataset", name("deep")),
        (name("c"), "dataset", name("y")),
        (name("y"), title, "Years"),
        (name("y"), "seriesMember", name("top")),
        (name("y"), "seriesMember", name("member")),
        (name("y"), "last", name("member")),
    }
    assert harvested.titles == ["top", "served", "child", "deep", "member"]
    assert harvested.links == [(name("sparql"), "sparql")]
    assert (harvested.problems, harvested.end.complete) == ([], True)


def identified(value):
    """The IRIs of all objects of some classes in a public example, by their @type."""
    if isinstance(value, list):
        return {each for one in value for each in identified(one)}
    if not isinstance(value, dict):
        return set()
    names = [value.get("@id"), value.get("identifier")]
    names += [each["@id"] for each in names if isinstance(each, dict) and "@id" in each]
    found = {(value.get("@type"), each) for each in names[-1:] + names if isinstance(each, str)}
    own = (
        found if value.get("@type") in ("Dataset", "DataService", "DatasetSeries", "CatalogRecord") else set()
    )
    return own | {each for one in value.values() for each in identified(one)}


@pytest.mark.skipif(not PUBLIC, reason="TAMIAS_DCAT_US names no folder with the public examples of DCAT-US 3")
@pytest.mark.parametrize(
    "file",
    sorted(Path(PUBLIC, "example_data/dcatus").glob("dcatus3_0*.json")) if PUBLIC else ["none"],
    ids=lambda file: getattr(file, "stem", file),
)
def test_all_parts_of_the_public_examples_of_dcat_us_3_are_read(serve, harvest, file):
    serve(file.read_bytes())
    harvested = harvest(DataJsonHarvester(), "/data.json")
    typed = {
        (quad.object.value.removeprefix(DCAT), quad.subject.value)
        for quad in harvested.quads
        if quad.predicate.value.endswith("#type")
    }
    assert identified(json.loads(file.read_bytes())) - typed == set()

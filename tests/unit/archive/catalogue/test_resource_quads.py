"""What the catalogue graph says of a resource and its versions."""

from collections import defaultdict

import pytest
from pyoxigraph import Store

from tamias.archive.versions.resources import Suspect
from tamias.features.catalogue.query_text import rewrite_query
from tamias.features.dcat.measures import Measure
from tamias.features.dcat.resource import ResourceDetails, resource_quads
from tamias.features.dcat.terms import ARC, PREFIXES, CatalogueBases
from tamias.model.profile import ColumnProfile, Meaning, Profile, TableProfile, Types
from tamias.model.resource import Resource, Source, Version

BASES = CatalogueBases(service="https://archive.example.org")
DAY = 86_400_000
MAY_1 = 1_588_291_200_000

# Figure 6 of the Open Dataset Archive's paper.
FIGURE_6 = """
SELECT ?versionURL WHERE {
  ?datasetURL arc:hasPortal ?Portal ;
  dc:hasVersion ?versionURL ;
  dcat:mediaType ?mediaType .
  ?versionURL dc:issued ?dateVersion .
  FILTER (?Portal = <http://data.gv.at> &&
          ?mediaType = "text/csv" &&
          strdt(?dateVersion, xsd:dateTimeStamp) >= "2020-05-10T00:00Z"^^xsd:dateTimeStamp) }
"""


def resource(name="a" * 24, **words):
    words = {"url": f"https://data.example.org/{name[:3]}.csv", "media_type": "text/csv", **words}
    portal = Source(source="https://data.gv.at/dataset/1", portal="http://data.gv.at", title="Rain")
    return Resource(**{"id": name, "added_at": 0, "sources": (portal,), **words})


def version(number, captured_at, name="a" * 24, **words):
    capture = f"0190a5b0-0000-7000-8000-{number:012}"
    words = {"media_type": "text/csv", "byte_size": 10 * number, "capture": capture, **words}
    return Version(resource=name, number=number, captured_at=captured_at, sha256=f"{number:064x}", **words)


VERSIONS = [version(1, MAY_1), version(2, MAY_1 + 9 * DAY), version(3, MAY_1 + 20 * DAY)]


def asked(quads, query):
    store = Store()
    store.extend(quads)
    found = store.query(rewrite_query(query), prefixes=PREFIXES, use_default_graph_as_union=True)
    return sorted(" ".join(term.value for term in row) for row in found)


def ask(quads, query):
    store = Store()
    store.extend(quads)
    return bool(store.query(query, prefixes=PREFIXES, use_default_graph_as_union=True))


def file(name, number):
    return f"https://archive.example.org/api/v1/get/file/id/{name}_{number}"


def test_the_open_dataset_archives_query_gives_the_versions_after_its_date():
    quads = resource_quads(resource(), VERSIONS, bases=BASES)
    assert asked(quads, FIGURE_6) == [file("a" * 24, 2), file("a" * 24, 3)]


@pytest.mark.parametrize(
    "other",
    [
        resource("b" * 24, media_type="application/json"),
        resource("b" * 24, sources=(Source(source="", portal="http://data.gov.uk"),)),
        resource("b" * 24, sources=()),
    ],
    ids=["another type", "another portal", "no portal"],
)
def test_that_query_gives_no_version_of(other):
    quads = resource_quads(other, [version(1, MAY_1 + 20 * DAY, other.id)], bases=BASES)
    assert asked(quads, FIGURE_6) == []


def test_versions_are_a_chain_from_the_first_to_the_current_one():
    quads = resource_quads(resource(), VERSIONS, bases=BASES)
    query = """SELECT ?number ?before WHERE {
        ?whole dcat:hasVersion ?it ; dcat:hasCurrentVersion/dcat:version "3" .
        ?it dcat:isVersionOf ?whole ; dcat:version ?number .
        OPTIONAL { ?it dcat:previousVersion ?previous ; prov:wasRevisionOf ?previous .
                   ?previous dcat:version ?told } BIND(COALESCE(?told, "none") AS ?before) }"""
    assert asked(quads, query) == ["1 none", "2 1", "3 2"]


def test_a_version_says_where_its_bytes_are_and_how_to_check_them():
    quads = resource_quads(resource(), VERSIONS, bases=BASES)
    query = """SELECT ?download ?original ?size ?sum WHERE {
        ?it dcat:version "2" ; dcat:distribution ?form .
        ?form dcat:downloadURL ?download ; dcat:accessURL ?original ; dcat:byteSize ?size ;
              dcat:mediaType <https://www.iana.org/assignments/media-types/text/csv> ;
              spdx:checksum [ spdx:algorithm spdx:checksumAlgorithm_sha256 ; spdx:checksumValue ?sum ] }"""
    told = f"{file('a' * 24, 2)} https://data.example.org/aaa.csv 20 {2:064x}"
    assert asked(quads, query) == [told]


def test_a_version_names_the_attempt_that_brought_it_as_the_metadata_graph_does():
    quads = resource_quads(resource(), VERSIONS[:1], bases=BASES)
    activity = asked(quads, "SELECT ?it WHERE { ?version prov:wasGeneratedBy ?it }")
    assert activity == ["urn:uuid:0190a5b0-0000-7000-8000-000000000001"]


def graphs(quads):
    """Triples by the names of their graphs, without what many graphs share."""
    found = defaultdict(set)
    for quad in quads:
        found[quad.graph_name.value.removeprefix("urn:tamias:catalogue:")].add(quad.triple)
    return {name: triples for name, triples in found.items() if not name.startswith("term:")}


def test_a_resource_and_each_of_its_versions_have_a_graph():
    name = "a" * 24
    quads = resource_quads(resource(), VERSIONS, bases=BASES)
    assert graphs(quads).keys() == {name, f"{name}:1", f"{name}:2", f"{name}:3"}


def test_a_version_more_changes_no_graph_of_another_version():
    name = "a" * 24
    before, after = (graphs(resource_quads(resource(), VERSIONS[:n], bases=BASES)) for n in (2, 3))
    changed = {graph for graph, triples in after.items() if before.get(graph) != triples}
    assert changed == {name, f"{name}:3"}


def test_no_statement_stands_in_two_graphs():
    """The default graph is the union of all: whoever counts there counts twice what is said twice."""
    one = resource_quads(resource(), VERSIONS, bases=BASES)
    another = resource("b" * 24, url="http://data.example.org/b.csv", sources=())
    other = resource_quads(another, [version(9, MAY_1, another.id)], bases=BASES)
    quads = set(one + other)
    assert len(quads) == len({quad.triple for quad in quads})


def test_what_is_measured_of_it_is_said_with_its_metric():
    quads = resource_quads(
        resource(), VERSIONS, bases=BASES, details=ResourceDetails(measures=[Measure("acfo", 0.5, MAY_1)])
    )
    query = """SELECT ?value WHERE { ?it a dcat:Dataset ; dqv:hasQualityMeasurement ?measured .
        ?measured dqv:isMeasurementOf quality:acfo ; dqv:computedOn ?it ; dqv:value ?value }"""
    assert asked(quads, query) == ["0.5"]


def test_a_body_that_was_not_believed_is_told_but_is_no_version():
    suspect = Suspect(MAY_1, "f" * 64, 5, "text/html", "a page where data was expected")
    quads = resource_quads(resource(), [], bases=BASES, details=ResourceDetails(suspects=[suspect]))
    assert not ask(quads, "ASK { ?whole dcat:hasVersion ?it }")
    assert asked(quads, "SELECT ?why WHERE { ?whole arc:hasSuspect/arc:reason ?why }") == [suspect.reason]


def test_a_table_is_told_as_in_the_open_dataset_archive():
    column = ColumnProfile(
        name="Land", number=1, meaning=Meaning(type="country", confidence=1.0, range="http://dbpedia.org/ontology/Country")
    )  # fmt: skip
    table = TableProfile(
        name="a.csv", encoding="utf-8", delimiter=",", header=True, rows=403, width=3, columns=(column,)
    )
    profile = Profile(size=9, types=Types(found="text/csv"), tables=(table,))
    quads = resource_quads(resource(), VERSIONS, bases=BASES, profiles={f"{2:064x}": profile})
    query = """SELECT ?file ?rows ?columns ?column ?name ?range WHERE {
        ?table csvw:url ?file ; arc:rows ?rows ; arc:columns ?columns ;
               csvw:dialect [ csvw:encoding "utf-8" ; csvw:delimiter "," ; csvw:header true ] ;
               csvw:tableSchema/csvw:column ?column .
        ?column csvw:name ?name ; csvw:datatype "string" ; rdfs:range ?range }"""
    place = file("a" * 24, 2)
    assert asked(quads, query) == [f"{place} 403 3 {place}#1 Land http://dbpedia.org/ontology/Country"]


def test_a_url_that_is_no_iri_is_one_afterwards():
    quads = resource_quads(resource(url="http://example.org/a?b={c}|d"), VERSIONS[:1], bases=BASES)
    assert asked(quads, "SELECT ?it WHERE { ?it dc:hasVersion ?file }") == [
        "http://example.org/a?b=%7Bc%7D%7Cd"
    ]


def test_the_prefix_arc_is_a_namespace_of_our_own():
    assert PREFIXES["arc"] == ARC

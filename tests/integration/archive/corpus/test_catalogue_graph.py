"""The catalogue graph out of the database."""

import pytest
from pyoxigraph import Store

from tamias.archive.sources.catalogues import note_datasets, note_whole
from tamias.features.dcat import stream
from tamias.features.dcat.measures import METRICS
from tamias.features.dcat.stream import catalogue_quads, quads_of_heads, quads_of_resources, quads_of_versions
from tamias.features.dcat.terms import PREFIXES, CatalogueBases
from tamias.features.quality.metrics import measure_portals, measure_resources
from tamias.model.dataset import Dataset, Distribution

BASES = CatalogueBases(service="https://archive.example.org")
PROFILE = """{"size": 9, "types": {"found": "text/csv"}, "tables": [{"name": "a.csv", "rows": 2, "width": 1,
              "delimiter": ",", "encoding": "utf-8", "header": true,
              "columns": [{"name": "a", "number": 1, "sketch": "AAEC"}]}]}"""


@pytest.fixture
def filled(corpus, source):
    """Resources with versions, without, with a suspect, with a table; a portal and what is measured of it."""
    first = corpus.watch("http://a.example/1.csv?x={y}", source("x", title="Rain"), expected="text/csv")
    sha256 = corpus.keep(first, b"a\n1\n", at=corpus.now - 1000)
    corpus.keep(first, b"a\n2\n")
    corpus.keep(first, b"<html>", "text/html", suspect="a page where data was expected")
    corpus.visit(first, rate=0.9)
    corpus.watch("http://a.example/never-seen")
    corpus.keep(corpus.watch("http://a.example/odd", source("not an address", format="?")), b"", None)
    corpus.execute("INSERT INTO profile VALUES (%s, 'content', 0, %s)", [bytes.fromhex(sha256), PROFILE])
    form = Distribution(url="http://a.example/1.csv?x={y}", format="CSV")
    corpus.describe(
        Dataset(iri="https://portal.example.org/dataset/x", record="x", title="Rain", distributions=(form,))
    )
    measure_portals(corpus.session)
    measure_resources(corpus.session)
    return corpus


def everything(corpus):
    return [quad for batch in catalogue_quads(corpus.session, BASES) for quad in batch]


def asked(quads, query):
    store = Store()
    store.extend(quads)
    found = store.query(query, prefixes=PREFIXES, use_default_graph_as_union=True)
    return sorted(" ".join(term.value for term in row) for row in found)


def test_the_catalogue_breaks_no_rule_of_dcat_ap(filled, violations):
    assert violations(everything(filled)) == []


def test_the_shapes_do_find_fault(filled, violations):
    quads = [quad for quad in everything(filled) if not quad.predicate.value.endswith("accessURL")]
    assert any("accessURL" in line for line in violations(quads))


def test_two_runs_give_the_same_quads(filled):
    assert everything(filled) == everything(filled)


def test_every_resource_is_there_however_small_the_batches(filled, monkeypatch):
    whole = everything(filled)
    monkeypatch.setattr(stream, "AT_ONCE", 1)
    assert set(everything(filled)) == set(whole)


def test_every_resource_has_a_graph_of_its_own(filled):
    names = {f"urn:tamias:catalogue:{row[0]}" for row in filled.execute("SELECT resource FROM resource")}
    rows = filled.execute("SELECT resource, number FROM version")
    names |= {f"urn:tamias:catalogue:{resource}:{number}" for resource, number in rows}
    assert names <= {quad.graph_name.value for quad in everything(filled)}


def test_the_graphs_of_some_resources_are_as_in_the_whole(filled):
    resource = filled.execute("SELECT resource FROM resource WHERE versions = 2")[0][0]
    quads = quads_of_resources(filled.session, [resource], BASES)[resource]
    name = f"urn:tamias:catalogue:{resource}"
    graphs = {name, f"{name}:1", f"{name}:2"}
    whole = [quad for quad in everything(filled) if quad.graph_name.value in graphs]
    assert whole == [quad for quad in quads if quad.graph_name.value in graphs]


def test_heads_and_versions_are_read_alone_as_with_the_whole(filled):
    """What is written when something changes is what is written when all is made anew."""
    resources = [row[0] for row in filled.execute("SELECT resource FROM resource")]
    versions = [f"{name}_{number}" for name, number in filled.execute("SELECT resource, number FROM version")]
    heads = quads_of_heads(filled.session, resources, BASES)
    alone = quads_of_versions(filled.session, versions, BASES)
    whole = quads_of_resources(filled.session, resources, BASES)
    assert {quad for found in (heads, alone) for quads in found.values() for quad in quads} == {
        quad for quads in whole.values() for quad in quads
    }


def test_a_version_that_is_not_known_has_an_empty_graph(filled):
    resource = filled.execute("SELECT resource FROM resource WHERE versions = 2")[0][0]
    assert quads_of_versions(filled.session, [f"{resource}_9"], BASES) == {f"{resource}_9": []}


def test_an_archive_that_describes_nothing_has_no_graph(corpus):
    assert everything(corpus) == []


def test_a_resource_that_is_not_known_has_an_empty_graph(filled):
    assert quads_of_resources(filled.session, ["f" * 24], BASES) == {"f" * 24: []}


def test_every_measurement_is_of_a_metric_that_is_described(filled):
    query = """SELECT DISTINCT ?metric WHERE { ?measure dqv:isMeasurementOf ?metric
        FILTER NOT EXISTS { ?metric a dqv:Metric ; skos:prefLabel ?label ;
                                    dqv:inDimension [ a dqv:Dimension ] } }"""
    assert asked(everything(filled), query) == []


def test_the_quality_of_what_a_portal_describes_is_said_of_its_dataset(filled):
    query = """SELECT DISTINCT ?metric WHERE {
        <https://portal.example.org/dataset/x> dqv:hasQualityMeasurement/dqv:isMeasurementOf ?metric }"""
    found = {iri.rpartition("#")[2] for iri in asked(everything(filled), query)}
    assert found == METRICS.keys() - {"acsi"}


def test_the_quality_of_a_portal_is_said_of_it(filled):
    query = """SELECT ?value WHERE { <https://portal.example.org/> dqv:hasQualityMeasurement
        [ dqv:isMeasurementOf quality:acfo ; dqv:value ?value ] }"""
    assert asked(everything(filled), query) == ["1"]


def test_a_table_of_a_version_is_told(filled):
    query = "SELECT ?rows ?name WHERE { ?it arc:rows ?rows ; csvw:tableSchema/csvw:column/csvw:name ?name }"
    assert asked(everything(filled), query) == ["2 a"]


LISTED_ON = """SELECT ?what WHERE {{
    ?what arc:listed ?time . ?time arc:hasPortal <http://c.example/> ; dcat:startDate ?from .
    OPTIONAL {{ ?time dcat:endDate ?until }}
    FILTER (?from <= "{0}"^^xsd:dateTime && (!BOUND(?until) || ?until > "{0}"^^xsd:dateTime)) }}"""


def test_a_query_tells_what_a_portal_listed_at_any_time(corpus):
    day = 86_400_000
    harvests = [{"x": "xy", "z": "z"}, {"x": "x"}, {"x": "xy", "z": "z"}, {"x": "y"}, {"z": "z"}]

    def dataset(name, files):
        forms = tuple(Distribution(url=f"http://f.example/{each}") for each in files)
        return Dataset(iri=f"http://c.example/{name}", record=name, title=name, distributions=forms)

    for number, seen in enumerate(harvests):

        def note(cursor, number=number, seen=seen):
            datasets = [dataset(*each) for each in seen.items()]
            note_datasets(cursor, "http://c.example/", "ckan", number * day, datasets)
            note_whole(cursor, "http://c.example/", number * day)

        corpus.session.transact(note)
    quads = everything(corpus)
    for number, seen in enumerate(harvests):
        found = asked(quads, LISTED_ON.format(f"1970-01-{number + 1:02}T12:00:00Z"))
        datasets = [f"http://c.example/{name}" for name in seen]
        files = {f"http://f.example/{each}" for name in seen for each in seen[name]}
        assert [iri for iri in found if "c.example" in iri] == datasets
        assert {iri for iri in found if "f.example" in iri} == files

"""Statements that say what stands at an address."""

import pytest
from pyoxigraph import RdfFormat, parse

from tamias.analyse.links.discovery import kinds_in

BASE = "http://a.example/doc"
PREFIXES = """
@prefix void: <http://rdfs.org/ns/void#> . @prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
@prefix dcat: <http://www.w3.org/ns/dcat#> . @prefix dct: <http://purl.org/dc/terms/> .
@prefix hydra: <http://www.w3.org/ns/hydra/core#> . @prefix tree: <https://w3id.org/tree#> .
@prefix ldes: <https://w3id.org/ldes#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def found(turtle):
    quads = list(parse(PREFIXES + turtle, format=RdfFormat.TURTLE, base_iri=BASE))
    return {links.kind: links.references for links in kinds_in(quads, BASE)}


@pytest.mark.parametrize(
    ("turtle", "kinds"),
    [
        ("<> void:sparqlEndpoint </q>", {"sparql": ["http://a.example/q"]}),
        ('<> void:sparqlEndpoint "http://a.example/q"', {"sparql": ["http://a.example/q"]}),
        ("[] sd:endpoint </q>", {"sparql": ["http://a.example/q"]}),
        ("[] dcat:endpointURL </q> ; dct:conformsTo <http://www.w3.org/TR/sparql11-protocol/>",
         {"sparql": ["http://a.example/q"]}),
        ("[] dcat:endpointURL </db/sparql/>", {"sparql": ["http://a.example/db/sparql/"]}),
        ("[] dcat:endpointURL </wfs> ; dct:conformsTo <http://www.opengis.net/def/serviceType/ogc/wfs>", {}),
        ("<> void:dataDump </d.nt.gz>", {None: ["http://a.example/d.nt.gz"]}),
        ('[] dcat:downloadURL "http://a.example/d"^^xsd:anyURI', {None: ["http://a.example/d"]}),
        ("<> void:inDataset </v#d>", {None: ["http://a.example/v#d"]}),
        ("<> void:rootResource </r>", {None: ["http://a.example/r"]}),
        ('<> void:uriSpace "http://a.example/"', {}),
        ("</s> a ldes:EventStream ; tree:view </v>", {"ldes": ["http://a.example/v"]}),
        ("<> hydra:next <?page=2> . </c> dcat:dataset </d>", {"dcat": ["http://a.example/doc?page=2"]}),
        ("<> hydra:nextPage <?page=3> ; hydra:firstPage <?page=1> . </c> dcat:dataset </d>",
         {"dcat": ["http://a.example/doc?page=1"]}),
        ("<> hydra:next <?page=2>", {}),
        ("</c> a dcat:Catalog ; dcat:dataset </d>", {}),
        ("[] void:dataDump <mailto:x@y> , [] ; sd:endpoint 'q'", {}),
        ("<> dct:title 'nothing'", {}),
    ],
)  # fmt: skip
def test_signs_are_told_from_other_statements(turtle, kinds):
    assert found(turtle + " .") == kinds


def test_each_address_comes_once():
    assert found("<1> void:dataDump </d> . <2> void:dataDump </d> .") == {None: ["http://a.example/d"]}

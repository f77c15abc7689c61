"""The description of the service, as SPARQL 1.1 Service Description has it."""

from typing import Final

from pyoxigraph import BlankNode, NamedNode, Triple, serialize

from tamias.archive.catalogue import PREFIXES
from tamias.content.formats import JSON_LD, NTRIPLES, RDF_XML, TURTLE, syntax_of
from tamias.crawl.catalogue.result_formats import preferred

_SD: Final = "http://www.w3.org/ns/sparql-service-description#"
_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_FORMATS: Final = (
    "SPARQL_Results_JSON",
    "SPARQL_Results_XML",
    "SPARQL_Results_CSV",
    "SPARQL_Results_TSV",
    "Turtle",
    "N-Triples",
    "N-Quads",
    "TriG",
    "RDF_XML",
    "JSON-LD",
)
_WRITTEN: Final = {kind: syntax_of(kind) for kind in (TURTLE, NTRIPLES, RDF_XML, JSON_LD)}


def description(endpoint: str, accept: str) -> tuple[bytes, str] | None:
    """The description and its media type; None when none of ours is accepted."""
    kind = preferred(accept, list(_WRITTEN))
    if kind is None:
        return None
    prefixes = {"sd": _SD, "rdf": PREFIXES["rdf"]}
    written = serialize(_statements(NamedNode(endpoint)), format=_WRITTEN[kind], prefixes=prefixes)
    return written or b"", kind


def _statements(endpoint: NamedNode) -> list[Triple]:
    service, dataset, graph = NamedNode(endpoint.value + "#service"), BlankNode("dataset"), BlankNode("graph")
    told = [
        Triple(service, _TYPE, _term("Service")),
        Triple(service, _term("endpoint"), endpoint),
        Triple(service, _term("supportedLanguage"), _term("SPARQL11Query")),
        Triple(service, _term("feature"), _term("UnionDefaultGraph")),
        Triple(service, _term("defaultDataset"), dataset),
        Triple(dataset, _TYPE, _term("Dataset")),
        Triple(dataset, _term("defaultGraph"), graph),
        Triple(graph, _TYPE, _term("Graph")),
    ]
    space = "http://www.w3.org/ns/formats/"
    return told + [Triple(service, _term("resultFormat"), NamedNode(space + each)) for each in _FORMATS]


def _term(name: str) -> NamedNode:
    return NamedNode(_SD + name)

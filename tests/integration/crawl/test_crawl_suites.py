"""One document of each public suite, served, crawled and exported by the command: the graphs are compared."""

from urllib.parse import quote

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, DefaultGraph, NamedNode, Quad, RdfFormat, parse

RDF, LD, MICRODATA = "w3c-rdf-tests", "w3c-json-ld-tests", "w3c-microdata-rdf-tests"
NODES = "rdf/rdf11/rdf-turtle/predicateObjectList_with_blankNodePropertyList_as_object"
CONTAINERS = "rdf/rdf11/rdf-xml/rdf-containers-syntax-vs-schema/test007"
DOCUMENTS = [
    # (suite, document, declared type, reference result or None where pyoxigraph says what is in it)
    (RDF, "rdf/rdf11/rdf-n-triples/nt-syntax-subm-01.nt", "application/n-triples", None),
    (RDF, "rdf/rdf11/rdf-n-quads/nq-syntax-uri-05.nq", "application/n-quads", None),
    (RDF, f"{NODES}.ttl", "text/turtle", f"{NODES}.nt"),
    (RDF, "rdf/rdf11/rdf-trig/trig-subm-16.trig", "application/trig", "rdf/rdf11/rdf-trig/trig-subm-16.nq"),
    (RDF, f"{CONTAINERS}.rdf", "application/rdf+xml", f"{CONTAINERS}.nt"),
    (RDF, "rdf/rdf12/rdf-n-triples/syntax/ntriples12-nested-1.nt", "application/n-triples", None),
    (RDF, "rdf/rdf12/rdf-n-quads/syntax/nquads12-nested-1.nq", "application/n-quads", None),
    (RDF, "rdf/rdf12/rdf-turtle/eval/turtle12-eval-annotation-03.ttl", "text/turtle", None),
    (RDF, "rdf/rdf12/rdf-trig/eval/trig12-eval-annotation-03.trig", "application/trig", None),
    (RDF, "rdf/rdf12/rdf-xml/eval/rdf12-xml-tt-06.rdf", "application/rdf+xml", None),
    (LD, "tests/toRdf/0035-in.jsonld", "application/ld+json", "tests/toRdf/0035-out.nq"),
    (MICRODATA, "tests/sdo_eg_md_30.html", "text/html", "tests/sdo_eg_md_30.ttl"),
]


def canonical(quads):
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return set(dataset)


def kept(graph, url):
    """The graph in which statements are kept: a name of another host is put under the document's."""
    if isinstance(graph, DefaultGraph):
        return NamedNode(url)
    return NamedNode(f"{url}#graph={quote(graph.value, safe='')}") if isinstance(graph, NamedNode) else graph


def expected(folder, document, media_type, result, url):
    path = folder / (result or document)
    syntax = RdfFormat.from_extension(path.suffix[1:]) if result else RdfFormat.from_media_type(media_type)
    quads = parse(path=str(path), format=syntax, base_iri=url)
    return [Quad(*quad.triple, kept(quad.graph_name, url)) for quad in quads]


@pytest.mark.suite(RDF)
def test_what_is_crawled_and_exported_is_the_graph_of_the_suite(tamias, site, reply, suites):
    wanted = {}
    for suite, document, media_type, result in DOCUMENTS:
        path = f"/{suite}/{document}"
        site.pages[path] = reply(200, (suites(suite) / document).read_bytes(), Content_Type=media_type)
        wanted[site.url(path)] = expected(suites(suite), document, media_type, result, site.url(path))
    done = tamias.crawl(*wanted, "--depth", 0)
    assert done.returncode == 0, done.stderr
    found = list(parse("\n".join(tamias.quads()).encode(), format=RdfFormat.N_QUADS))
    for url, quads in wanted.items():
        assert quads, url
        of_document = [quad for quad in found if quad.graph_name.value.partition("#graph=")[0] == url]
        assert canonical(of_document) == canonical(quads), url
    assert len(found) == sum(map(len, map(set, wanted.values())))

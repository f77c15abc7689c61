"""The public suite of RDFa, in all versions and host languages, and real pages beside another reader."""

import io
import json
import logging
import tomllib
import warnings
from pathlib import Path

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, NamedNode, RdfFormat, Store, parse

import tamias
from tamias.analyse.markup.page import MarkupPage
from tamias.features.markup import rdfa
from tamias.model.finding import Quads

SCORES = tomllib.loads((Path(__file__).parent / "scores.toml").read_text())
TEST_BASE = "http://rdfa.info/test-suite/test-cases/"
SUFFIXES = {
    "html4": "html",
    "html5": "html",
    "xhtml1": "xhtml",
    "xhtml5": "xhtml",
    "xml": "xml",
    "svg": "svg",
}
TYPES = {
    "html": "text/html",
    "xhtml": "application/xhtml+xml",
    "xml": "application/xml",
    "svg": "image/svg+xml",
}
KINDS = [
    *(("rdfa1.1", host) for host in SUFFIXES),
    *(("rdfa1.1", host) for host in ("html5-invalid", "xhtml5-invalid")),
    *(("rdfa1.0", host) for host in ("html4", "xhtml1", "xml", "svg")),
]


def entries(folder, version, host):
    """(number, whether the answer is yes) of every test; those of the processor's own reports left out."""
    manifest = json.loads((folder / "manifest.jsonld").read_text())["@graph"]
    for test in manifest:
        if version in test["versions"] and host in test["hostLanguages"] and "queryParam" not in test:
            yield test["num"], test["expectedResults"]


def passes(folder, version, host, number, expected):
    suffix = SUFFIXES[host.removesuffix("-invalid")]
    path = folder / "test-cases" / version / host / f"{number}.{suffix}"
    url = f"{TEST_BASE}{version}/{host}/{path.name}"
    store = Store()
    store.extend(tamias.read(path.read_bytes(), base=url, media_type=TYPES[suffix]).quads)
    return bool(store.query(path.with_suffix(".sparql").read_text(), base_iri=url)) == expected


@pytest.mark.suite("rdfa-test-suite")
@pytest.mark.parametrize(("version", "host"), KINDS)
def test_no_fewer_tests_pass_than_are_on_record(suites, version, host):
    folder = suites("rdfa-test-suite") / "test-suite"
    tests = list(entries(folder, version, host))
    failing = [number for number, expected in tests if not passes(folder, version, host, number, expected)]
    record = SCORES[f"{version.replace('.', '_')}-{host}"]
    assert len(tests) == record["of"]
    assert len(tests) - len(failing) >= record["passed"], failing


ROLE = NamedNode("http://www.w3.org/1999/xhtml/vocab#role")
UNDECLARED = ("article", "fb", "product")


def explained(quads):
    """What pyRdfa3 finds, but for what we mean to find otherwise.

    Roles tell what a part of a page does, not what it says, and we leave them out. A namespace of Open Graph
    that the page forgot to declare is that namespace to us; by the letter of RDFa it is an unknown scheme.
    """
    for quad in quads:
        scheme, _, name = quad.predicate.value.partition(":")
        if scheme in UNDECLARED:
            yield type(quad)(quad.subject, NamedNode(f"http://ogp.me/ns/{scheme}#{name}"), quad.object)
        elif quad.predicate != ROLE:
            yield quad


def by_pyrdfa(data, url):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import rdflib
        from pyRdfa import pyRdfa
        from pyRdfa.options import Options

        logging.getLogger("rdflib").setLevel(logging.CRITICAL)
        reader = pyRdfa(
            Options(output_processor_graph=False, embedded_rdf=False), base=url, media_type="text/html"
        )
        graph = rdflib.Graph()
        reader.graph_from_source(io.BytesIO(data), graph)
        found = graph.serialize(format="nt", encoding="utf-8")
    return list(parse(found, format=RdfFormat.N_TRIPLES, lenient=True))


def canonical(quads):
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


@pytest.fixture(scope="module")
def real_pages(suites):
    """(address, page, what pyRdfa3 finds on it, our ways put into it)"""
    found = []
    for path in sorted(suites("real-html-samples").rglob("*.html")):
        url, data = f"http://example.org/{path.name}", path.read_bytes()
        found.append((url, data, list(explained(by_pyrdfa(data, url)))))
    return found


@pytest.mark.suite("real-html-samples")
def test_on_real_pages_pyrdfa3_finds_the_same_but_for_what_is_explained(real_pages):
    for url, data, theirs in real_pages:
        page = MarkupPage(data, url=url, base=url, media_type="text/html")
        ours = [quad for found in rdfa.extract(page) if isinstance(found, Quads) for quad in found.quads]
        assert canonical(ours) == canonical(theirs), url


@pytest.mark.suite("real-html-samples")
def test_what_pyrdfa3_finds_on_real_pages_comes_through_the_door_of_the_user(real_pages):
    for url, data, theirs in real_pages:
        read = set(tamias.read(data, base=url, media_type="text/html").quads)
        assert {quad for quad in theirs if "_:" not in f"{quad.subject} {quad.object}"} <= read, url

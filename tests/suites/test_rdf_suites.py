"""The W3C suites of RDF 1.1, read as the crawler reads: every fault is told, and gone on after."""

import io

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, Literal, RdfFormat, Store, parse

from tamias.analyse.rdf import RdfAnalyser
from tamias.model.document import Document
from tamias.model.finding import Problem, Quads

pytestmark = pytest.mark.suite("w3c-rdf-tests")

MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
TEST_BASE = "https://w3c.github.io/rdf-tests/rdf/rdf11/"
TYPES = {
    "rdf-n-triples": "application/n-triples",
    "rdf-n-quads": "application/n-quads",
    "rdf-turtle": "text/turtle",
    "rdf-trig": "application/trig",
    "rdf-xml": "application/rdf+xml",
}


def entries(folder, syntax):
    """(name, kind, action, result) of every test in a manifest; action and result are relative."""
    base = f"{TEST_BASE}{syntax}/"
    store = Store()
    store.load(path=str(folder / syntax / "manifest.ttl"), format=RdfFormat.TURTLE, base_iri=base)
    query = f"""PREFIX mf: <{MF}>
        SELECT ?test ?kind ?action ?result
        WHERE {{ ?test a ?kind ; mf:action ?action . OPTIONAL {{ ?test mf:result ?result }} }}"""
    for test, kind, action, result in store.query(query):
        if kind.value.startswith("http://www.w3.org/ns/rdftest#Test"):
            yield (
                test.value.rpartition("#")[2],
                kind.value.rpartition("#")[2],
                action.value.removeprefix(base),
                result.value.removeprefix(base) if result and not isinstance(result, Literal) else None,
            )


def read(folder, syntax, action):
    document = Document(
        url=f"{TEST_BASE}{syntax}/{action}",
        stream=io.BytesIO((folder / syntax / action).read_bytes()),
        media_type=TYPES[syntax],
    )
    findings = list(RdfAnalyser().analyse(document))
    quads = [quad for finding in findings if isinstance(finding, Quads) for quad in finding.quads]
    return quads, [finding.what for finding in findings if isinstance(finding, Problem)]


def canonical(quads):
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def expected(folder, syntax, result):
    quads = parse(path=str(folder / syntax / result), base_iri=f"{TEST_BASE}{syntax}/{result}", lenient=True)
    return canonical(quads)


NOT_CANONICAL = {"rdf-xml": {"xml-canon-test001", "xml-canon-test002"}}
"""pyoxigraph keeps an XML literal as it stands, where the suite wants it canonicalised."""


@pytest.fixture(scope="module")
def folder(suites):
    return suites("w3c-rdf-tests") / "rdf" / "rdf11"


@pytest.mark.parametrize(
    ("syntax", "tests"),
    [("rdf-n-triples", 70), ("rdf-n-quads", 87), ("rdf-turtle", 313), ("rdf-trig", 356), ("rdf-xml", 166)],
)
def test_the_manifest_is_seen_whole(folder, syntax, tests):
    assert len(list(entries(folder, syntax))) == tests


@pytest.mark.parametrize("syntax", TYPES)
def test_valid_documents_are_read_as_the_suite_says(folder, syntax):
    wrong = set()
    for name, kind, action, result in entries(folder, syntax):
        if "Negative" not in kind:
            quads, problems = read(folder, syntax, action)
            if problems or (result and canonical(quads) != expected(folder, syntax, result)):
                wrong.add(name)
    assert wrong == NOT_CANONICAL.get(syntax, set())


@pytest.mark.parametrize("syntax", TYPES)
def test_invalid_documents_have_a_problem(folder, syntax):
    silent = {
        name
        for name, kind, action, _ in entries(folder, syntax)
        if "Negative" in kind and not read(folder, syntax, action)[1]
    }
    assert silent == set()

"""Notation3: the suites of the W3C's group, as far as they are RDF; the rest has to be told apart.

What is plain data is decided without our parser. A document of the Turtle tests is, if it is no negative one.
Any other is when outside of strings, IRIs and comments it has no brace, no variable and no quantifier, and
when rdflib, which reads all of N3, finds no literal as subject and nothing but IRIs as predicates in it.
"""

import io
import logging
import re
import tomllib
import warnings
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path

import pytest
import rdflib
from pyoxigraph import CanonicalizationAlgorithm, Dataset, Literal, NamedNode, Quad, RdfFormat, Store, parse

from tamias.analyse.rdf.analyser import RdfAnalyser
from tamias.model.document import Document
from tamias.model.finding import Problem, Quads

pytestmark = pytest.mark.suite("w3c-n3-tests")

SCORES = Path(__file__).parent / "scores.toml"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
NUMBERS = {f"http://www.w3.org/2001/XMLSchema#{name}" for name in ("decimal", "integer", "double")}
BASE = "https://w3c.github.io/N3/tests/TurtleTests/"
MANIFESTS = ("TurtleTests/manifest.ttl", "N3Tests/manifest-parser.ttl", "N3Tests/manifest-extended.ttl")

HIDING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*\'\'\''
    r'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|<[^<>"{}|^`\\\s]*>|#[^\n]*',
    re.DOTALL,
)
BEYOND_DATA = re.compile(r"[{}]|\?\w|@for(?:All|Some)\b")

ANYTHING = object()
"""What rdflib cannot read of the Turtle tests, which is data all the same."""

NOT_TOLD = {"extra_bad_prefix2.n3"}
"""Negative for a colon in a local name, which Turtle allows and pyoxigraph therefore reads."""


def entries(folder, manifest):
    """(name, kind, action, result) of the tests that are for N3; both are paths."""
    store = Store()
    path = folder / manifest
    store.load(path=str(path), format=RdfFormat.TURTLE, base_iri=path.as_uri())
    query = f"""PREFIX mf: <{MF}>
        SELECT ?test ?kind ?action ?result
        WHERE {{ ?test a ?kind ; mf:action ?action . OPTIONAL {{ ?test mf:result ?result }} }}"""
    for test, kind, action, result in store.query(query):
        file = Path(action.value.removeprefix("file://"))
        if "#TestN3" in kind.value and file.exists():
            found = Path(result.value.removeprefix("file://")) if isinstance(result, NamedNode) else None
            yield test.value.rpartition("#")[2], kind.value, file, found


def read(path):
    document = Document(url=BASE + path.name, stream=io.BytesIO(path.read_bytes()), media_type="text/n3")
    findings = list(RdfAnalyser().analyse(document))
    quads = [quad for finding in findings if isinstance(finding, Quads) for quad in finding.quads]
    return quads, [finding for finding in findings if isinstance(finding, Problem)]


def oracle(path, result, is_turtle):
    """The quads of a document that is plain data; None where it is not, or nobody can say."""
    if is_turtle and result is not None:
        return list(parse(path=str(result), format=RdfFormat.N_TRIPLES))
    text = path.read_text("utf-8", "replace")
    if BEYOND_DATA.search(HIDING.sub(" ", text)):
        return None
    graph = rdflib.ConjunctiveGraph()
    try:
        graph.parse(data=path.read_bytes(), format="n3", publicID=BASE + path.name)
    except Exception:  # noqa: BLE001 (rdflib raises whatever it meets)
        return ANYTHING if is_turtle else None
    triples = list(graph.triples((None, None, None)))
    if any(isinstance(s, rdflib.Literal) or not isinstance(p, rdflib.URIRef) for s, p, _ in triples):
        return None
    data = graph.serialize(format="nt", encoding="utf-8")
    return list(parse(data, format=RdfFormat.N_TRIPLES, lenient=True))


def canonical(quads):
    dataset = Dataset(by_value(quad) for quad in quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def is_same(quads, expected):
    return expected is ANYTHING or (expected is not None and canonical(quads) == canonical(expected))


def by_value(quad):
    """rdflib rewrites numbers, which we never do."""
    value = quad.object
    if not isinstance(value, Literal) or value.datatype.value not in NUMBERS:
        return quad
    with suppress(InvalidOperation):
        value = Literal(str(Decimal(value.value).normalize()), datatype=value.datatype)
    return Quad(quad.subject, quad.predicate, value)


@pytest.fixture(scope="module")
def results(suites):
    """For every test: whether it is plain data, read right, told to be at fault, and negative."""
    folder = suites("w3c-n3-tests") / "tests"
    logging.disable(logging.CRITICAL)
    normalize, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for manifest in MANIFESTS:
            for name, kind, path, result in entries(folder, manifest):
                is_negative = "Negative" in kind
                expected = None if is_negative else oracle(path, result, manifest.startswith("Turtle"))
                quads, problems = read(path)
                is_right = not problems and is_same(quads, expected)
                found[manifest, name] = (expected is not None, is_right, bool(problems), is_negative)
    logging.disable(logging.NOTSET)
    rdflib.NORMALIZE_LITERALS = normalize
    return found


def test_the_suites_are_seen_whole(results):
    assert len(results) > 1300


def test_all_plain_data_is_read_right(results):
    wrong = {name for (_, name), (is_plain, is_right, _, _) in results.items() if is_plain and not is_right}
    assert wrong == set()


def test_negative_tests_have_a_problem(results):
    silent = {
        name for (_, name), (_, _, is_told, is_negative) in results.items() if is_negative and not is_told
    }
    assert silent == NOT_TOLD


def test_the_recorded_score_is_the_true_one(results):
    plain = [is_right for is_plain, is_right, _, _ in results.values() if is_plain]
    recorded = tomllib.loads(SCORES.read_text())["n3-plain-data"]
    assert recorded == {"passed": sum(plain), "of": len(plain)}

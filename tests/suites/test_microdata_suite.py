"""The W3C's suite of Microdata to RDF."""

import json
import tomllib
from pathlib import Path

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, Store, parse

import tamias
from tamias.features.markup import microdata

pytestmark = pytest.mark.suite("w3c-microdata-rdf-tests")

SCORES = tomllib.loads((Path(__file__).parent / "scores.toml").read_text())
TEST_BASE = "http://w3c.github.io/microdata-rdf/tests/"
TESTS = """PREFIX mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#>
    SELECT ?kind ?action ?result
    WHERE { ?test a ?kind ; mf:action ?action . OPTIONAL { ?test mf:result ?result }
            FILTER (?kind != mf:ManifestEntry) }"""


@pytest.fixture
def folder(suites, monkeypatch):
    """The suite, with the vocabularies that it makes up on our list."""
    folder = suites("w3c-microdata-rdf-tests") / "tests"
    for vocabulary, entry in json.loads((folder / "test-registry.json").read_text()).items():
        if isinstance(entry, dict):
            implied = {name: next(iter(what.values())) for name, what in entry["properties"].items()}
            monkeypatch.setitem(microdata.REGISTRY, vocabulary, implied)
    return folder


def entries(folder):
    store = Store()
    store.load(path=str(folder / "manifest.ttl"), format=RdfFormat.TURTLE, base_iri=TEST_BASE)
    for kind, action, result in store.query(TESTS):
        yield kind.value, action.value, result.value if result else None


def canonical(quads):
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def passes(folder, kind, action, result):
    data = (folder / action.removeprefix(TEST_BASE)).read_bytes()
    reading = tamias.read(data, base=action, media_type="text/html")
    quads = canonical(reading.quads)
    if "Negative" in kind:
        return bool(reading.problems)
    expected = parse(path=str(folder / result.removeprefix(TEST_BASE)), base_iri=result)
    return quads == canonical(expected) and not reading.problems


def test_no_fewer_tests_pass_than_are_on_record(folder):
    tests = list(entries(folder))
    failing = [action for kind, action, result in tests if not passes(folder, kind, action, result)]
    assert len(tests) == SCORES["microdata"]["of"]
    assert len(tests) - len(failing) >= SCORES["microdata"]["passed"], failing

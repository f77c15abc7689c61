"""JSON-LD to RDF: the suite of the W3C, without a network and with its contexts on a real server."""

import io
import json
import tomllib
from pathlib import Path

import pytest
from loopback_web import Web, go_anywhere, ok
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

import tamias
from tamias.analyse.rdf.analyser import RdfAnalyser
from tamias.crawl.analysis.analysers import ROUNDS, ContextCache
from tamias.model.capture import Request
from tamias.model.document import Document
from tamias.model.finding import Problem, Quads

pytestmark = pytest.mark.suite("w3c-json-ld-tests")

SCORES = Path(__file__).parent / "scores.toml"
HOST = "https://w3c.github.io"

OPTIONS = {
    # Their options (processing mode 1.0, direction in RDF, generalised RDF, a context for expansion) are none
    # that a document can set.
    *("tc029", "tep02", "ter21", "ter42", "ttn01"),
    *("tdi09", "tdi10", "tdi11", "tdi12", "te075", "te077"),
}
BAD_BASE = {"tli12"}
"""Wants statements of a document whose base is not an IRI."""
REMOTE = {"tc031", "tc034", "te126", "te127", "te128", "tso05", "tso06", "tso08", "tso09", "tso11"}


class Test:
    __test__ = False

    def __init__(self, folder, base, entry):
        options = entry.get("option", {})
        self.name = entry["@id"].removeprefix("#")
        self.kind = next(kind for kind in entry["@type"] if kind != "jld:ToRDFTest")
        self.base = options.get("base") or base + entry["input"]
        self.data = (folder / entry["input"]).read_bytes()
        self.result = folder / entry["expect"] if "expect" in entry else None

    def is_passed_by(self, quads, problems):
        if "Negative" in self.kind:
            return bool(problems)
        return not problems and ("Syntax" in self.kind or canonical(quads) == self._expected())

    def _expected(self):
        try:
            return canonical(parse(self.result.read_bytes(), format=RdfFormat.N_QUADS, lenient=True))
        except SyntaxError:  # generalised RDF
            return None


def canonical(quads):
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


@pytest.fixture(scope="module")
def folder(suites):
    return suites("w3c-json-ld-tests") / "tests"


@pytest.fixture(scope="module")
def tests(folder):
    """All but those for JSON-LD 1.0 alone."""
    manifest = json.loads((folder / "toRdf-manifest.jsonld").read_text("utf-8"))
    return [
        Test(folder, manifest["baseIri"], entry)
        for entry in manifest["sequence"]
        if entry.get("option", {}).get("specVersion") != "json-ld-1.0"
    ]


@pytest.fixture(scope="module")
def failed_alone(tests):
    failed = set()
    for test in tests:
        reading = tamias.read(test.data, base=test.base, media_type="application/ld+json")
        if not test.is_passed_by(list(reading.quads), reading.problems):
            failed.add(test.name)
    return failed


class Suite(dict):
    """The suite's files as answers of a server."""

    def __init__(self, folder):
        self._folder = folder

    def __missing__(self, path):
        file = self._folder / path.removeprefix("/json-ld-api/tests/")
        if file.is_file():
            return ok(file.read_bytes(), b"Content-Type: application/ld+json")
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture(scope="module")
def failed_with_server(tests, folder, tmp_path_factory):
    web = Web(tmp_path_factory.mktemp("spool"))
    web.answers = Suite(folder)

    async def run(fetcher):
        contexts, failed = ContextCache(), set()
        for test in tests:
            for _ in range(ROUNDS):
                quads, problems = analysed(test, contexts)
                to_fetch = contexts.to_fetch(problem.wants for problem in problems if problem.wants)
                if not to_fetch:
                    break
                for address in to_fetch:
                    request = Request(url=address.replace(HOST, web.url("")))
                    capture = await fetcher.fetch(request, go_anywhere)
                    contexts.put(address, capture.body.data if capture.status == 200 else None)
            if not test.is_passed_by(quads, problems):
                failed.add(test.name)
        return failed

    return web.run(run)


def analysed(test, contexts):
    document = Document(url=test.base, stream=io.BytesIO(test.data), media_type="application/ld+json")
    findings = list(RdfAnalyser(contexts=contexts).analyse(document))
    quads = [quad for finding in findings if isinstance(finding, Quads) for quad in finding.quads]
    return quads, [finding for finding in findings if isinstance(finding, Problem)]


def test_the_suite_is_seen_whole(tests):
    assert len(tests) == 456


def test_without_a_network_only_options_and_remote_contexts_are_missed(failed_alone):
    assert failed_alone == OPTIONS | BAD_BASE | REMOTE


def test_with_its_contexts_on_a_server_only_options_are_missed(failed_with_server):
    assert failed_with_server == OPTIONS | BAD_BASE


@pytest.mark.parametrize("name", ["jsonld-tordf-alone", "jsonld-tordf-served"])
def test_the_recorded_score_is_the_true_one(name, tests, failed_alone, failed_with_server):
    failed = failed_alone if name == "jsonld-tordf-alone" else failed_with_server
    recorded = tomllib.loads(SCORES.read_text())[name]
    assert recorded == {"passed": len(tests) - len(failed), "of": len(tests)}

"""HDT files written here open in the reference implementation. `make nightly` installs it."""

import io
import random

import pytest

hdt = pytest.importorskip("hdt", reason="the package hdt, which `make nightly` builds, is not installed")

from pyoxigraph import BlankNode, Literal, NamedNode, Triple  # noqa: E402

from tamias.features.hdt.writer import hdt_string, write_hdt  # noqa: E402
from tamias.sinks.export import export  # noqa: E402

E = "http://example.org/"
INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")


def many_predicates_and_languages():
    source = random.Random(1)
    for i in range(5000):
        subject = NamedNode(f"{E}dataset/{i % 900}")
        yield subject, NamedNode(f"{E}p/{i % 211}"), Literal(f'größe 🐿 "{i}"\n\t', language="de-at")
        yield subject, NamedNode(f"{E}q/{i}"), Literal(str(source.randrange(99)), datatype=INTEGER)
        yield subject, NamedNode(f"{E}link"), NamedNode(f"{E}dataset/{source.randrange(2000)}")


def one_subject_with_many_objects():
    return ((NamedNode(E), NamedNode(E + "has"), NamedNode(f"{E}part/{i:06}")) for i in range(70_000))


def blank_nodes_and_long_strings():
    for i in range(500):
        yield BlankNode(f"b{i}"), NamedNode(E + "next"), BlankNode(f"b{i * 7 % 500}")
        yield BlankNode(f"b{i}"), NamedNode(E + "text"), Literal("same start " * 3000 + str(i % 50))
        yield BlankNode(f"b{i}"), NamedNode(E + "empty"), Literal("")


SHAPES = [many_predicates_and_languages, one_subject_with_many_objects, blank_nodes_and_long_strings]


@pytest.fixture(params=SHAPES, ids=lambda shape: shape.__name__)
def triples(request):
    return {Triple(*triple) for triple in request.param()}


@pytest.fixture
def opened(triples, tmp_path):
    path = tmp_path / "written.hdt"
    with path.open("wb") as file:
        write_hdt(triples, file, name="urn:x", most=10**6)
    return hdt.HDTDocument(str(path))


def test_the_reference_finds_every_triple(opened, triples):
    found, count = opened.search_triples_bytes("", "", "")
    assert count == len(triples)
    assert set(found) == {tuple(map(hdt_string, triple)) for triple in triples}


def test_the_reference_finds_the_triples_of_each_term(opened, triples):
    for subject, predicate, value in random.Random(2).sample(sorted(triples, key=str), 100):
        asked = [hdt_string(term).decode() for term in (subject, predicate, value)]
        assert opened.search_triples(*asked)[1] == 1
        alike = sum(1 for triple in triples if triple.object == value)
        assert opened.search_triples("", "", asked[2])[1] == alike


def test_the_reference_counts_the_same_terms(opened, triples):
    counted = opened.nb_subjects, opened.nb_predicates, opened.nb_objects
    assert counted == tuple(len({triple[place] for triple in map(tuple, triples)}) for place in range(3))


def test_an_export_opens(tmp_path):
    lines = (
        b'<http://e/s> <http://e/p> "a\\nb"@en <http://e/g> .\n<http://e/s> <http://e/p> _:b <http://e/h> .\n'
    )
    out = io.BytesIO()
    export([lines, lines], out, "hdt")
    (tmp_path / "export.hdt").write_bytes(out.getvalue())
    found, _ = hdt.HDTDocument(str(tmp_path / "export.hdt")).search_triples("", "", "")
    assert set(found) == {("http://e/s", "http://e/p", '"a\nb"@en'), ("http://e/s", "http://e/p", "_:b")}

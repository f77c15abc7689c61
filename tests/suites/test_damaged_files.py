"""Real RDF/XML that was cut off or has one bad line: what stood before the fault is kept."""

import pytest
from pyoxigraph import BlankNode, Literal, RdfFormat, parse

import tamias

BASE = "http://example.org/doc"
BAD_LINE = b"\n<http://example.org/bad> this is no statement <\n"
MANY = 100


def cut(data):
    return data[: len(data) * 2 // 3]


def with_a_bad_line(data):
    lines = data.splitlines(keepends=True)
    middle = len(lines) // 2
    return b"".join(lines[:middle]) + BAD_LINE + b"".join(lines[middle:])


def before_the_fault(data):
    """What the strict parser says until it stops.

    Without blank nodes, which have no names to compare, and XML literals, which are kept in canonical form.
    """
    quads = set()
    try:
        for quad in parse(data, format=RdfFormat.RDF_XML, base_iri=BASE):
            if not (
                isinstance(quad.subject, BlankNode) or isinstance(quad.object, BlankNode) or is_xml(quad)
            ):
                quads.add(quad)
    except SyntaxError:
        return quads
    return None


def is_xml(quad):
    return isinstance(quad.object, Literal) and quad.object.datatype.value.endswith("#XMLLiteral")


@pytest.mark.parametrize("damage", [cut, with_a_bad_line])
def test_what_stands_before_the_fault_is_kept(suites, damage):
    lost, compared = {}, 0
    for file in sorted(suites("real-rdf-files").rglob("*")):
        if file.suffix not in (".rdf", ".owl"):
            continue
        data = damage(file.read_bytes())
        expected = before_the_fault(data)
        if not expected:
            continue
        reading = tamias.read(data, base=BASE, media_type="application/rdf+xml")
        missing = expected - set(reading.quads)
        compared += len(expected)
        if missing or not reading.problems:
            lost[file.name] = len(missing)
    assert lost == {}
    assert compared > MANY

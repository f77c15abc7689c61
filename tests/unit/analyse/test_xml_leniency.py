"""RDF/XML as lenient as rapper: what was meant is read, and each leniency is a problem with its line."""

import pytest
from lxml import etree
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

import tamias
from tests.messages import unsaid

BASE = "http://base.example/doc"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
HEAD = f'<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="http://e.example/">\n'
X, P = "<http://a.example/x>", "<http://e.example/p>"
TYPED = f"{X} <{RDF}type> <http://e.example/T> .\n"

CASES = [
    # (what, node elements from line 3 on, N-Triples, lines of problems)
    (
        "an unknown parse type",
        '<e:T rdf:about="http://a.example/x"><e:p rdf:parseType="daml:collection">a &amp; b</e:p></e:T>',
        f'{TYPED}{X} {P} "a &amp; b"^^<{RDF}XMLLiteral> .',
        [3],
    ),
    (
        "about without a namespace",
        '<e:T about="http://a.example/x"><e:p>1</e:p></e:T>\n<e:T rdf:about="http://a.example/x"/>',
        f'{TYPED}{X} {P} "1" .',
        [3],
    ),
    (
        "ID and resource without a namespace",
        '<rdf:Description ID="x">\n<e:p resource="y"/></rdf:Description>',
        f"<{BASE}#x> {P} <http://base.example/y> .",
        [3, 4],
    ),
    (
        "parseType without a namespace",
        '<e:T rdf:about="http://a.example/x"><e:p parseType="Resource"><e:p>1</e:p></e:p></e:T>',
        f'{TYPED}{X} {P} _:b . _:b {P} "1" .',
        [3],
    ),
    (
        "a relative xml:base inside another",
        '<e:T xml:base="sub/" rdf:about="x"><e:p xml:base="deeper/" rdf:resource="y"/></e:T>\n'
        '<e:T rdf:about="z"/>',
        f"<http://base.example/sub/x> <{RDF}type> <http://e.example/T> ."
        f"<http://base.example/sub/x> {P} <http://base.example/sub/deeper/y> ."
        f"<http://base.example/z> <{RDF}type> <http://e.example/T> .",
        [3, 3],
    ),
    (
        "characters that no IRI may hold",
        '<e:T rdf:about="http://a.example/x y"/>\n<e:T rdf:about="http://a.example/x">\n'
        '<e:p rdf:resource="{z}|"/></e:T>',
        f"<http://a.example/x%20y> <{RDF}type> <http://e.example/T> .\n{TYPED}"
        f"{X} {P} <http://base.example/%7Bz%7D%7C> .",
        [3, 5],
    ),
    (
        "characters that no IRI may hold, in a namespace",
        '<e:T rdf:about="http://a.example/x"><n:q xmlns:n="http://a.example/x y#">1</n:q></e:T>',
        f'{TYPED}{X} <http://a.example/x%20y#q> "1" .',
        [3],
    ),
    (
        "blanks around an IRI",
        '<e:T rdf:about="http://a.example/x"><e:p rdf:resource=" http://a.example/x "/></e:T>',
        f"{TYPED}{X} {P} {X} .",
        [3],
    ),
    (
        "rdf:bagID",
        '<e:T rdf:about="http://a.example/x" rdf:bagID="b"><e:p>1</e:p></e:T>',
        f'{TYPED}{X} {P} "1" .',
        [3],
    ),
    (
        "text beside a reference",
        '<e:T rdf:about="http://a.example/x">\n<e:p rdf:resource="http://a.example/y">the y</e:p>\n'
        '<e:p rdf:parseType="Literal"><a rdf:resource="z">text</a></e:p></e:T>',
        f"{TYPED}{X} {P} <http://a.example/y> ."
        f"""{X} {P} '<a xmlns:rdf="{RDF}" rdf:resource="z">text</a>'^^<{RDF}XMLLiteral> .""",
        [4],
    ),
    (
        "a leniency beside a fault",
        '<e:T about="http://a.example/x"><e:p>1</e:p></e:T>\n<e:T rdf:about="http://a.example/y" foo="bar"/>',
        f'{TYPED}{X} {P} "1" .',
        [3, 4],
    ),
]


def canonical(quads):
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return set(dataset)


@pytest.mark.parametrize(
    ("nodes", "triples", "lines"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_was_meant_is_read_and_told(nodes, triples, lines):
    document = f"{HEAD}{nodes}\n</rdf:RDF>\n".encode()
    reading = tamias.read(document, base=BASE, media_type="application/rdf+xml")
    assert canonical(reading.quads) == canonical(parse(triples.encode(), format=RdfFormat.TURTLE))
    assert sorted(problem.line for problem in reading.problems) == lines


def test_what_stands_in_a_literal_is_left_as_it_is():
    node = '<e:T rdf:about="x y"><e:p rdf:parseType="Literal"><a resource="{}" type="t">b</a></e:p></e:T>'
    reading = tamias.read(f"{HEAD}{node}</rdf:RDF>".encode(), base=BASE, media_type="application/rdf+xml")
    [literal] = [quad.object.value for quad in reading.quads if quad.predicate.value == "http://e.example/p"]
    assert literal == '<a resource="{}" type="t">b</a>'
    assert len(reading.problems) == 1


def test_many_leniencies_are_counted_and_nothing_is_lost_by_them():
    nodes = "".join(f'<e:T about="n{number}"/>\n' for number in range(500))
    reading = tamias.read(f"{HEAD}{nodes}</rdf:RDF>".encode(), base=BASE, media_type="application/rdf+xml")
    assert len(list(reading.quads)) == 500
    assert len(reading.problems) == 101
    assert not unsaid(reading.problems[-1].what, "400", "analyse.max_errors")


def test_an_xml_literal_is_xml_also_where_its_element_changes_the_default_namespace():
    text = (
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="http://a.example/" xmlns:e="http://e.example/">'
        '<rdf:Description rdf:about="http://a.example/x"><e:p rdf:parseType="Literal">'
        '<div xmlns="http://b.example/" class="c"><b>bold</b></div></e:p>'
        '<e:q>&lt;a xmlns="x" xmlns="x"></e:q></rdf:Description></rdf:RDF>'
    )
    reading = tamias.read(text.encode(), base=BASE, media_type="application/rdf+xml")
    literal, plain = (quad.object.value for quad in reading.quads)
    assert etree.canonicalize(literal) == ('<div xmlns="http://b.example/" class="c"><b>bold</b></div>')
    assert plain == '<a xmlns="x" xmlns="x">'


def test_xml_literals_are_canonical():
    content = '<h:b xmlns:h="http://h.example/" z="1" a="2"/>&lt; <e:c><![CDATA[&]]></e:c>'
    node = f'<e:T rdf:about="x"><e:p rdf:parseType="Literal">{content}</e:p></e:T>'
    reading = tamias.read(f"{HEAD}{node}</rdf:RDF>".encode(), base=BASE, media_type="application/rdf+xml")
    [literal] = [quad.object.value for quad in reading.quads if quad.predicate.value == "http://e.example/p"]
    assert literal == (
        '<h:b xmlns:h="http://h.example/" a="2" z="1"></h:b>&lt; <e:c xmlns:e="http://e.example/">&amp;</e:c>'
    )
    assert not reading.problems


@pytest.mark.parametrize("end", ["/>", "></e:p>"])
def test_an_empty_xml_literal_is_read(end):
    node = f'<e:T rdf:about="http://a.example/x"><e:p rdf:parseType="Literal"{end}</e:T>'
    reading = tamias.read(f"{HEAD}{node}</rdf:RDF>".encode(), base=BASE, media_type="application/rdf+xml")
    expected = f'{TYPED}{X} {P} ""^^<{RDF}XMLLiteral> .'
    assert set(reading.quads) == set(parse(expected.encode(), format=RdfFormat.TURTLE))
    assert not reading.problems


@pytest.mark.parametrize("other", ['rdf:resource="y"', 'e:q="1"', "e:q = '1'", 'rdf:nodeID="n"'])
def test_an_empty_xml_literal_with_other_attributes_is_a_fault(other):
    for attributes in (f'rdf:parseType="Literal" {other}', f'{other} rdf:parseType="Literal"'):
        node = f'<e:T rdf:about="http://a.example/x"><e:p {attributes}/></e:T>'
        reading = tamias.read(f"{HEAD}{node}</rdf:RDF>".encode(), base=BASE, media_type="application/rdf+xml")
        assert set(reading.quads) <= set(parse(TYPED.encode(), format=RdfFormat.TURTLE))
        assert reading.problems


def test_rdf_xml_inside_other_xml_is_read_as_leniently():
    nodes = '<e:T rdf:about="http://a.example/x"><e:p rdf:resource="http://a.example/y">the y</e:p></e:T>'
    text = f'<records xmlns="http://r.example/">{HEAD.partition("?>")[2]}{nodes}</rdf:RDF></records>'
    reading = tamias.read(text.encode(), base=BASE, media_type="application/xml")
    expected = f"{TYPED}{X} {P} <http://a.example/y> ."
    assert set(reading.quads) == set(parse(expected.encode(), format=RdfFormat.TURTLE))
    [problem] = reading.problems
    assert not unsaid(problem.what, "RDF/XML", "rdf:resource")

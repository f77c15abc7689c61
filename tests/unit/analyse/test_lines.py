"""Statements that become lines without becoming objects: they are the same, and sound, by every way."""

import hashlib
import json
from io import BytesIO
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, NamedNode, RdfFormat, parse, serialize

from tamias.analyse.rdf.analyser import RdfAnalyser
from tamias.analyse.rdf.statements import written
from tamias.analyse.rdf.turtle import plain_lines
from tamias.content.quad_lines import QuadLines, rdf_links
from tamias.model.document import Document
from tamias.model.finding import Quads
from tamias.sinks.segments.naming import Naming, sound

DIGEST = hashlib.sha256(b"").hexdigest()
S, P, V = "<http://e/s>", "<http://e/p>", "<http://e/o>"
TRICKY = [
    f"{S} {P} {V} .",
    f'{S} {P} "a> _:b <http://in/literal> ." .',
    f'{S} {P} " _:b .\\n_:c "@en .',
    f'{S} {P} "x <http://in/literal> {V}"^^<http://www.w3.org/2001/XMLSchema#date> .',
    f'_:a {P} _:b .',
    f'_:a {P} "_:a" .',
    f'{S} <http://e/_:p> _:b .',
    f'_:e4d7a3b5c6d7e8f90a1b2c3d4e5f6071 {P} _:e4d7a3b5c6d7e8f90a1b2c3d4e5f6071 .',
    f"{S} {P} <<( _:a {P} \"_:t\" )>> .",
    f"{S} {P} {V} <http://g/1> .",
    f"{S} {P} <http://g/1> .",
    f"_:a {P} <http://g/1> <http://g/1> .",
    f'_:a {P} _:b <http://example.org/2> .',
    f'_:a {P} " <http://g/1> ." <http://g/1> .',
    f'_:a {P} _:g _:g .',
    f'_:g {P} "x"@en-GB _:g .',
]  # fmt: skip
ODD = [
    *("%", "%zz", "%41", "\\u0041", "\\", "\\t", "\\n", '"', "<", ">", " ", "  ", "\t", "\r", "\n"),
    *("é", "語", "\ue000", "\u0080", "\x00", "\x1f", "@", "@en", "@EN-gb-x-a", "^^", "_:", "_:a.", ".", " ."),
    *("#", "?", "{", "|", "^^<http://www.w3.org/2001/XMLSchema#string>"),
    "^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
]


def by_parser(text, form):
    return list(parse(text, format=form))


def by_lines(text, form=RdfFormat.N_QUADS):
    return written(parse(text, format=form), None, has_graphs=form != RdfFormat.TURTLE)


@st.composite
def broken(draw, texts):
    """A text with something odd put into it."""
    text = draw(st.sampled_from(texts))
    place = draw(st.integers(0, len(text)))
    return text[:place] + draw(st.sampled_from(ODD)) + text[place + draw(st.integers(0, 1)) :]


@given(st.lists(st.sampled_from(TRICKY), min_size=1, max_size=8))
def test_lines_are_named_as_quads_are(lines):
    text = "".join(f"{line}\n" for line in lines).encode()
    quads, url = by_parser(text, RdfFormat.N_QUADS), "http://example.org/data"
    by_lot, by_line = Naming(url, DIGEST), Naming(url, DIGEST)
    assert b"".join(map(by_line.nquads, by_lines(text))) == by_lot.nquads(quads)
    assert by_line.renamed == by_lot.renamed


@given(st.lists(st.sampled_from(TRICKY), min_size=1, max_size=8))
@pytest.mark.parametrize("follow", [{}, {"predicates": False}, {"subjects": False, "objects": False}])
def test_lines_have_the_links_of_their_quads(follow, lines):
    text = "".join(f"{line}\n" for line in lines).encode()
    found = set().union(*(rdf_links(batch, **follow) for batch in by_lines(text)))
    assert found == rdf_links(by_parser(text, RdfFormat.N_QUADS), **follow)


@given(st.lists(st.sampled_from(TRICKY), min_size=1, max_size=8))
def test_lines_give_their_quads_back(lines):
    text = "".join(f"{line}\n" for line in lines).encode()
    assert list(chain.from_iterable(by_lines(text))) == by_parser(text, RdfFormat.N_QUADS)
    assert sum(map(len, by_lines(text))) == len(lines)


@given(st.lists(broken(TRICKY[:8] + TRICKY[9:13]), min_size=1, max_size=4), st.booleans())
def test_what_is_taken_without_a_parser_is_what_the_parser_would_write(lines, has_graphs):
    text = "".join(f"{line}\n" for line in lines).encode()
    taken = plain_lines(text, has_graphs=has_graphs)
    plain = b"".join(batch.nquads for batch in taken)
    assert text.startswith(plain)
    assert plain[-1:] in (b"", b"\n")
    form = RdfFormat.N_QUADS if has_graphs else RdfFormat.N_TRIPLES
    assert serialize(by_parser(plain, form), format=form) == plain
    for batch in taken:
        assert {quad.graph_name for quad in batch} == {batch.graph}


def test_ordinary_lines_are_taken_without_a_parser():
    line = (
        f'{S} {P} "a \\"b\\" <c>"^^<http://www.w3.org/2001/XMLSchema#date> .\n_:b1 {P} <http://é/%41#x> .\n'
    )
    line = line.replace("http://é/", "http://e/é")
    (taken,) = plain_lines(line.encode() * 100 + b"half a line", has_graphs=False)
    assert (len(taken), taken.graph) == (200, DefaultGraph())


def test_lines_are_cut_where_the_graph_changes():
    text = "".join(f"{S} {P} {V} <http://g/{n}> .\n" for n in (1, 1, 2, 1)).encode()
    taken = plain_lines(text, has_graphs=True)
    assert [(len(batch), batch.graph.value[-1]) for batch in taken] == [(2, "1"), (1, "2"), (1, "1")]


def test_the_quads_with_a_predicate_are_found_among_lines():
    (batch,) = by_lines(f'{S} {P} {V} .\n{S} <http://e/q> " {P} ", "\\n" .\n'.encode(), RdfFormat.TURTLE)
    found = batch.saying({P.encode(), b"<http://e/none>"})
    assert [quad.object for quad in found if quad.predicate == NamedNode(P[1:-1])] == [NamedNode(V[1:-1])]


XML = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
    '<rdf:Description rdf:about="http://e/s"><e:p rdf:resource="http://e/o"/><e:q rdf:nodeID="b">'
    '</e:q><e:r xml:lang="en">&#10;</e:r><e:t rdf:datatype="http://e/t">x</e:t></rdf:Description></rdf:RDF>'
)
JSON_LD = json.dumps(
    {"@context": {"e": "http://e/", "@vocab": "http://v/"}, "@id": "http://e/g", "@graph": [
        {"@id": "_:b", "e:p": {"@id": "e:o"}, "q": {"@value": "x", "@language": "en"},
         "http://e/r": {"@value": "x", "@type": "http://e/t"}, "@type": "C"}]}
)  # fmt: skip
TURTLE = '@prefix e: <http://e/> . @base <http://e/> . e:s e:p <o>, "x"@en, [ e:q _:b ], "y"^^e:t ; a <C> .'
ESCAPES = ["&#62;", "&gt; &lt;", "&#10;", "\\u003e", "\\u000a", "\\u0020", "&quot;", '\\"', "\\n"]


def test_a_label_of_json_ld_that_cannot_be_read_again_is_another():
    data = b'{"@id": "_:a:b", "http://e/p": [{"@id": "_:a:b"}, {"@id": "_:ab"}]}'
    document = Document(url="http://e/", stream=BytesIO(data), media_type="application/ld+json")
    ((first, second),) = (finding.quads for finding in RdfAnalyser().analyse(document))
    assert first.subject == first.object != second.object
    text = Naming("http://e/", DIGEST).nquads([first, second])
    assert len(by_parser(text, RdfFormat.N_QUADS)) == 2


@pytest.mark.parametrize(
    ("text", "form"),
    [(XML, RdfFormat.RDF_XML), (JSON_LD, RdfFormat.JSON_LD), (TURTLE, RdfFormat.TURTLE),
     (f"<http://g> {{ {TURTLE.partition('> . ')[2].partition('> . ')[2]} }}", RdfFormat.TRIG)],
)  # fmt: skip
@given(st.data())
def test_what_a_strict_parser_lets_through_is_sound(text, form, data):
    if form == RdfFormat.TRIG:
        text = text.replace("e:", "http://e/").replace("http://e/s", "<http://e/s>")
    place = data.draw(st.integers(0, len(text)))
    odd = data.draw(st.sampled_from(ODD + ESCAPES))
    broken_text = (text[:place] + odd + text[place:]).encode("utf-8", "replace")
    document = Document(url="http://e/", stream=BytesIO(broken_text), media_type=form.media_type)
    for finding in RdfAnalyser().analyse(document):
        if isinstance(finding, Quads) and isinstance(finding.quads, QuadLines):
            quads, lines = list(finding.quads), finding.quads.nquads.splitlines(keepends=True)
            assert len(quads) == len(lines) == len(sound(quads)) == len(finding.quads)
            assert all(line.endswith(finding.quads.end) for line in lines)

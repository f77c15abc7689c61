"""The forms of export beyond N-Quads, TriG and Turtle say the same."""

import io

import pytest
from pyjelly.integrations.generic.parse import parse_jelly_flat
from pyoxigraph import Quad, RdfFormat, parse

from tamias.features.hdt.reader import Hdt
from tamias.features.hdt.writer import export_hdt
from tamias.model.errors import TamiasError
from tamias.sinks.export import export

LINES = (
    b'<http://e/s> <http://e/p> "a \\"line\\"\\n _:x ."@en <http://e/g> .\n'
    b"_:t1na <http://www.w3.org/ns/dcat#theme> <http://e/100%> <http://e/g> .\n"
    b'<http://e/\xc3\xa9/(x)?y=,z> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#int> <http://e/h> .\n'
    b"<http://e/s> <http://e/p> <dcat:theme> <http://e/g> .\n"
    b"<http://e/s> <http://e/p> <dcat:theme> <http://e/h> .\n"
)
ABOUT_A_TRIPLE = b"<http://e/s> <http://e/p> <<( <http://e/s> <http://e/p> _:t1na )>> <http://e/g> .\n"


def exported(chunks, form, **options):
    out = io.BytesIO()
    left_out = export(chunks, out, form, **options)
    return out.getvalue(), left_out


def quads(lines):
    return list(parse(lines, format=RdfFormat.N_QUADS, lenient=True))


def test_jsonld_says_the_same_quads():
    text, left_out = exported([LINES[:77], LINES[77:]], "jsonld")
    assert list(parse(text, format=RdfFormat.JSON_LD, lenient=True)) == quads(LINES)
    assert left_out == 0


@pytest.mark.parametrize("form", ["jsonld", "hdt"])
def test_what_a_form_cannot_say_is_left_out_and_counted(form):
    assert exported([LINES, ABOUT_A_TRIPLE * 3], form)[1] == 3


def test_jelly_says_the_same_quads_to_another_reader():
    data, left_out = exported([LINES, ABOUT_A_TRIPLE], "jelly")
    statements = list(parse_jelly_flat(io.BytesIO(data)))
    assert [(str(each.s), str(each.p), str(each.g)) for each in statements] == [
        (str(quad.subject), str(quad.predicate), str(quad.graph_name))
        for quad in quads(LINES + ABOUT_A_TRIPLE)
    ]
    assert left_out == 0


def test_hdt_says_the_same_triples_once_and_without_their_graphs():
    hdt = Hdt(exported([LINES, LINES], "hdt")[0], 1 << 20)
    assert hdt.count == len({Quad(*quad.triple) for quad in quads(LINES)})


def test_more_triples_than_hdt_may_hold_are_an_error_before_anything_is_written():
    out = io.BytesIO()
    with pytest.raises(TamiasError, match="more than 3 triples"):
        export_hdt([LINES], out, most=3)
    assert out.getvalue() == b""


@pytest.mark.parametrize("form", ["jsonld", "jelly", "hdt"])
def test_nothing_is_a_whole_file(form):
    data, left_out = exported([], form)
    assert data
    assert left_out == 0

"""Jelly streams of every kind become quads; what is broken or hostile becomes a problem."""

import io
import random
import subprocess
import sys

import pytest
from pyjelly import jelly as messages
from pyjelly.integrations.generic import generic_sink as generic
from pyjelly.integrations.generic.serialize import (
    GenericSinkTermEncoder,
    flat_stream_to_file,
    flat_stream_to_frames,
    graphs_stream_frames,
)
from pyjelly.options import StreamParameters
from pyjelly.serialize.ioutils import write_delimited, write_single
from pyjelly.serialize.streams import GraphStream, SerializerOptions
from pyoxigraph import RdfFormat, parse

from tamias.features.jelly.analyser import JellyAnalyser
from tamias.features.jelly.writer import write_jelly
from tamias.model.document import Document, LimitExceeded
from tamias.model.finding import Quads
from tamias.settings import AnalyseSettings
from tests.messages import unnamed, unsaid

IRI, LITERAL, BLANK = generic.IRI, generic.Literal, generic.BlankNode
S, P, G = IRI("http://e/s"), IRI("http://e/p#x"), IRI("http://e/g")
TRIPLES = [
    generic.Triple(S, P, IRI("http://e/s")),
    generic.Triple(S, P, LITERAL("a\n\0", "en")),
    generic.Triple(BLANK("b"), P, LITERAL("1", None, "http://e/t")),
    generic.Triple(BLANK("b"), P, LITERAL("größe 🐿")),
]
SAID = [
    "<http://e/s> <http://e/p#x> <http://e/s>",
    '<http://e/s> <http://e/p#x> "a\\n\\u0000"@en',
    '_:b <http://e/p#x> "1"^^<http://e/t>',
    '_:b <http://e/p#x> "größe 🐿"',
]
QUADS = [
    generic.Quad(*triple, graph) for triple in TRIPLES for graph in (G, generic.DefaultGraph, BLANK("g"))
]
SAID_IN_GRAPHS = [said + graph for said in SAID for graph in (" <http://e/g>", "", " _:g")]


def read(data, **limits):
    """The quads as text, and the texts of the problems."""
    stream = data if hasattr(data, "read") else io.BytesIO(data)
    document = Document(url="http://a/d", stream=stream, media_type="application/x-jelly-rdf")
    quads, problems = [], []
    for finding in JellyAnalyser(AnalyseSettings(**limits)).analyse(document):
        if isinstance(finding, Quads):
            quads += map(str, finding.quads)
        else:
            problems.append(finding.what)
    return quads, problems


def stream_of(statements):
    out = io.BytesIO()
    flat_stream_to_file((each for each in statements), out)
    return out.getvalue()


def stream_of_graphs(quads):
    options = SerializerOptions(logical_type=messages.LOGICAL_STREAM_TYPE_DATASETS)
    stream = GraphStream(encoder=GenericSinkTermEncoder(options.lookup_preset), options=options)
    out = io.BytesIO()
    for frame in graphs_stream_frames(stream, (quad for quad in quads)):
        write_delimited(frame, out)
    return out.getvalue()


def in_one_frame(statements):
    params = StreamParameters(delimited=False)
    options = SerializerOptions(logical_type=messages.LOGICAL_STREAM_TYPE_FLAT_TRIPLES, params=params)
    out = io.BytesIO()
    for frame in flat_stream_to_frames((each for each in statements), options):
        write_single(frame, out)
    return out.getvalue()


def frame_of(*rows, physical=messages.PHYSICAL_STREAM_TYPE_QUADS, names=100):
    """A stream of one frame from rows made by hand."""
    options = messages.RdfStreamOptions(
        physical_type=physical,
        max_name_table_size=names,
        max_prefix_table_size=10,
        max_datatype_table_size=10,
        version=1,
    )
    out = io.BytesIO()
    frame = messages.RdfStreamFrame(rows=[messages.RdfStreamRow(options=options), *rows])
    write_delimited(frame, out)
    return out.getvalue()


def name(value, number=0):
    return messages.RdfStreamRow(name=messages.RdfNameEntry(id=number, value=value))


def quad(**terms):
    return messages.RdfStreamRow(quad=messages.RdfQuad(**terms))


def test_a_stream_of_triples_is_read():
    assert read(stream_of(TRIPLES)) == (SAID, [])


def test_a_stream_of_quads_is_read_with_its_graphs():
    assert read(stream_of(QUADS)) == (SAID_IN_GRAPHS, [])


def test_a_stream_of_graphs_is_read_with_its_graphs():
    assert read(stream_of_graphs(QUADS)) == (SAID_IN_GRAPHS, [])


def test_a_stream_in_one_frame_is_read():
    assert read(in_one_frame(TRIPLES)) == (SAID, [])


def test_many_frames_are_read():
    quads, problems = read(stream_of(QUADS * 1000))
    assert (quads, problems) == (SAID_IN_GRAPHS * 1000, [])


def test_a_triple_about_a_triple_is_read():
    said, _ = read(stream_of([generic.Triple(S, P, generic.Triple(S, P, S))]))
    assert said == ["<http://e/s> <http://e/p#x> <<( <http://e/s> <http://e/p#x> <http://e/s> )>>"]


def test_what_is_written_comes_back():
    lines = (
        b'<http://e/s> <http://e/p> "x"@ar--rtl <http://e/g> .\n'
        b'_:b <http://e/p> "1"^^<http://e/t> _:g .\n'
        b"_:b <http://e/p> <<( _:b <http://e/p> <http://e/o> )>> .\n"
        b"<urn:x> <http://e#p> <http://e/> <http://e/g> .\n"
    )
    quads = list(parse(lines * 500, format=RdfFormat.N_QUADS))
    out = io.BytesIO()
    write_jelly([lines * 500], out)
    assert read(out.getvalue()) == ([str(quad) for quad in quads], [])


def test_the_stream_that_says_nothing_comes_back():
    out = io.BytesIO()
    write_jelly([], out)
    assert out.getvalue()
    assert read(out.getvalue()) == ([], [])


# What is broken


def test_bad_terms_cost_their_statements_only():
    bad = [generic.Triple(IRI("no iri"), P, S), generic.Triple(IRI("no iri"), P, LITERAL("x"))]
    quads, problems = read(stream_of([*TRIPLES, *bad, *TRIPLES]))
    assert (quads, len(problems)) == (SAID * 2, 2)
    assert [unsaid(each, "'no iri'", "IRI") for each in problems] == [[], []]


def test_what_is_no_rdf_costs_its_statement_only():
    quads, [problem] = read(stream_of([generic.Triple(LITERAL("x"), P, S), *TRIPLES]))
    assert quads == SAID
    assert problem.startswith("not RDF")


def test_problems_are_counted_beyond_the_limit():
    _, problems = read(stream_of([generic.Triple(LITERAL(str(i)), P, S) for i in range(10)]), max_errors=3)
    [problem] = problems[3:]
    assert not unsaid(problem, "7", "analyse.max_errors")


def test_whole_frames_before_the_end_are_read():
    data = stream_of(TRIPLES * 1000)
    quads, [problem] = read(data[:-10])
    assert len(quads) > 3000
    assert not unsaid(problem)


@pytest.mark.parametrize(
    "rows",
    [
        [quad(s_bnode="a")],
        [quad(s_iri=messages.RdfIri(name_id=5), p_bnode="x", o_bnode="x", g_bnode="g")],
        [quad(s_iri=messages.RdfIri(name_id=500), p_bnode="x", o_bnode="x", g_bnode="g")],
        [name("x", 4000)],
        [quad(s_literal=messages.RdfLiteral(lex="x", datatype=9), p_bnode="x", o_bnode="x", g_bnode="g")],
        [messages.RdfStreamRow(graph_start=messages.RdfGraphStart())],
        [messages.RdfStreamRow(options=messages.RdfStreamOptions(physical_type=1))],
    ],
    ids=[
        "no term to repeat",
        "unknown name",
        "name beyond the table",
        "entry beyond the table",
        "unknown datatype",
        "graph without a name",
        "other options",
    ],
)
def test_a_row_that_breaks_the_rules_ends_the_reading(rows):
    quads, [problem] = read(frame_of(*rows, quad(s_bnode="a", p_bnode="b", o_bnode="c")))
    assert quads == []
    assert problem.startswith("Jelly stream is damaged: ")


@pytest.mark.parametrize("names", [0, 1 << 31])
def test_tables_of_any_size_are_not_made(names):
    assert "Jelly stream" in read(frame_of(names=names))[1][0]


def test_a_row_without_anything_is_passed_over():
    assert read(frame_of(messages.RdfStreamRow())) == ([], [])


@pytest.mark.parametrize("data", [b"\x00", b"\n", b"\x05\n\x03abc", b"\xff" * 9, b"\n\n", b"\x80"])
def test_what_is_none_is_a_problem_or_nothing(data):
    quads, _ = read(data)
    assert quads == []


def test_changed_bytes_never_raise():
    whole = stream_of(QUADS)
    source = random.Random(4)
    for _ in range(300):
        changed = bytearray(whole)
        changed[source.randrange(len(whole))] = source.randrange(256)
        read(bytes(changed))


def test_a_limit_of_the_stream_passes_through_after_what_was_read():
    class Cut(io.BytesIO):
        def read(self, size=-1):
            data = super().read(size)
            if not data:
                raise LimitExceeded("enough")
            return data

    stream = Cut(stream_of(TRIPLES))
    findings = JellyAnalyser().analyse(Document(url="u:", stream=stream, media_type="x"))
    assert len(next(findings).quads) == 4
    with pytest.raises(LimitExceeded, match="enough"):
        next(findings)


# What is hostile


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff\x0f", b"\x81\x80\x80\x04"])
def test_a_frame_of_any_size_is_not_waited_for(size):
    _, [problem] = read(size + stream_of(TRIPLES))
    assert unnamed(problem, "Jelly frame", 8 << 20, "limit analyse.jelly_frame") == []


def test_a_stream_in_one_large_frame_is_refused():
    quads, [problem] = read(in_one_frame(TRIPLES * 100), jelly_frame=1000)
    assert (quads, unsaid(problem, "Jelly frame", 1000, "limit analyse.jelly_frame")) == ([], [])


def test_memory_does_not_grow_with_the_stream():
    program = (
        "import io, resource, sys; from tamias.features.jelly.analyser import JellyAnalyser\n"
        "from tamias.model.document import Document\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "whole = sys.stdin.buffer.read()\n"
        "class Long(io.RawIOBase):\n"
        "    def __init__(self, left): self.left = left\n"
        "    def read(self, size=-1):\n"
        "        self.left -= 1\n"
        "        return whole if self.left > 0 else b''\n"
        "def read(chunks):\n"
        "    document = Document(url='u:', stream=Long(chunks), media_type='x')\n"
        "    for _ in JellyAnalyser().analyse(document): pass\n"
        "read(20); before = peak(); read(200); print(peak() - before)"
    )
    command = [sys.executable, "-c", program]
    process = subprocess.run(command, input=stream_of(QUADS * 20), stdout=subprocess.PIPE, check=True)
    assert int(process.stdout) < 8_000

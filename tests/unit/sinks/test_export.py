import io
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Quad, RdfFormat, parse

from tamias.sinks.export import PREFIXES, export

LINES = (
    b'<http://e/s> <http://e/p> "a \\"line\\"\\n _:x ."@en <http://e/g> .\n'
    b"_:t1na <http://www.w3.org/ns/dcat#theme> <http://e/100%> <http://e/g> .\n"
    b'<http://e/\xc3\xa9/(x)?y=,z> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#int> <http://e/h> .\n'
    b"<http://e/s> <http://e/p> <<( <http://e/s> <http://e/p> _:t1na )>> <http://e/g> .\n"
)


def exported(chunks, form, **options):
    out = io.BytesIO()
    export(chunks, out, form, **options)
    return out.getvalue()


def read(text, syntax):
    return list(parse(text, format=syntax, lenient=True))


def test_nquads_pass_through_byte_for_byte():
    assert exported([LINES[:50], LINES[50:]], "nquads") == LINES


def test_trig_says_the_same_quads():
    assert read(exported([LINES], "trig"), RdfFormat.TRIG) == read(LINES, RdfFormat.N_QUADS)


def test_turtle_says_the_same_triples_without_their_graphs():
    triples = [Quad(*quad.triple) for quad in read(LINES, RdfFormat.N_QUADS)]
    assert read(exported([LINES], "turtle"), RdfFormat.TURTLE) == triples


@pytest.mark.parametrize("form", ["trig", "turtle"])
def test_known_prefixes_are_used(form):
    assert b"dcat:theme" in exported([LINES], form)


def test_other_prefixes_may_be_given():
    assert b"e:s e:p" in exported([LINES], "turtle", prefixes={"e": "http://e/"})


def test_every_prefix_is_an_iri_that_names_end_well_behind():
    assert all(iri.endswith(("#", "/")) for iri in PREFIXES.values())


@given(st.lists(st.integers(0, len(LINES)), max_size=6))
def test_chunks_may_be_cut_anywhere(cuts):
    edges = [0, *sorted(cuts), len(LINES)]
    chunks = [LINES[start:end] for start, end in pairwise(edges)]
    assert exported(chunks, "trig") == exported([LINES], "trig")


@pytest.mark.parametrize("form", ["nquads", "trig", "turtle"])
def test_nothing_gives_no_statements(form):
    assert read(exported([], form), RdfFormat.TRIG) == []


@pytest.mark.parametrize("form", ["nquads", "trig", "turtle", "jsonld", "jelly", "hdt"])
def test_a_target_that_fails_is_told(form):
    class Full(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        export([LINES] * 1000, Full(), form)


@pytest.mark.parametrize("form", ["trig", "turtle", "jsonld", "jelly"])
def test_memory_does_not_grow_with_the_quads(form):
    program = (
        "import resource, sys; from tamias.sinks.export import export\n"
        "lines = b'<http://e/s> <http://e/p> \"text\" <http://e/g> .\\n' * 10_000\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"with open('/dev/null', 'wb') as out: export([lines], out, {form!r}); before = peak()\n"
        f"with open('/dev/null', 'wb') as out: export([lines] * 40, out, {form!r})\n"
        "print(peak() - before)"
    )
    process = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert int(process.stdout) < 8_000

"""TriX, RDF/JSON, HDT and Jelly are found by their bytes, and taken for nothing else."""

import io

import pytest
from pyjelly.integrations.generic.generic_sink import IRI, DefaultGraph, Quad, Triple
from pyjelly.integrations.generic.serialize import flat_stream_to_file, flat_stream_to_frames
from pyjelly.jelly import LOGICAL_STREAM_TYPE_FLAT_TRIPLES
from pyjelly.options import StreamParameters
from pyjelly.serialize.ioutils import write_single
from pyjelly.serialize.streams import SerializerOptions

from tamias.content.sniff import found_type

TRIX, RDF_JSON, HDT = "application/trix", "application/rdf+json", "application/vnd.hdt"
JELLY, LD, JSON = "application/x-jelly-rdf", "application/ld+json", "application/json"
OCTETS, PLAIN = "application/octet-stream", "text/plain"
OBJECT = b'"http://e/p": [{"value": "x", "type": "literal"}]'


def jelly(statement, **options):
    out = io.BytesIO()
    flat_stream_to_file((each for each in [statement] * 300), out, **options)
    return out.getvalue()


def in_one_frame(name=""):
    params = StreamParameters(delimited=False, stream_name=name)
    options = SerializerOptions(logical_type=LOGICAL_STREAM_TYPE_FLAT_TRIPLES, params=params)
    out = io.BytesIO()
    [*frames] = flat_stream_to_frames((each for each in [TRIPLE]), options)
    write_single(frames[-1], out)
    return out.getvalue()


TRIPLE = Triple(IRI("http://e/s"), IRI("http://e/p"), IRI("http://e/o"))
QUAD = Quad(*TRIPLE, DefaultGraph)

ROWS = [
    ("Jelly triples", jelly(TRIPLE), None, "", JELLY),
    ("Jelly quads", jelly(QUAD), "application/octet-stream", "", JELLY),
    ("Jelly told as turtle", jelly(QUAD), "text/turtle", "d.ttl", JELLY),
    ("Jelly in one frame", in_one_frame(), None, "", JELLY),
    ("Jelly with a name", in_one_frame("my stream"), None, "", JELLY),
    ("bytes that are none", b"\n\x10\n\x05hello\0\0\0", None, "", OCTETS),
    ("text after an empty line", b"\n\nText\n", None, "", PLAIN),
    ("HDT told as bytes", b"$HDT\1", "application/octet-stream", "", HDT),
    ("TriX under its old type", b"<TriX/>", "application/x-trix", "", TRIX),
    ("TriX with a prefix", b'<t:TriX xmlns:t="http://www.w3.org/2004/03/trix/trix-1/">', None, "", TRIX),
    ("RDF/JSON", b'{"http://e/s": {%b}}' % OBJECT, JSON, "", RDF_JSON),
    ("RDF/JSON of a blank node", b'{"_:b": {%b}}' % OBJECT, None, "", RDF_JSON),
    ("RDF/JSON of a mail address", b'{\n "mailto:a@b" :{%b}}' % OBJECT, None, "", RDF_JSON),
    ("RDF/JSON told as JSON-LD", b'{"http://e/s": {%b}}' % OBJECT, LD, "", RDF_JSON),
    ("JSON-LD that looks like it", b'{"http://e/s": {%b}, "@context": {}}' % OBJECT, RDF_JSON, "", LD),
    (
        "RDF/JSON that speaks of JSON-LD",
        b'{"http://e/s": {"http://e/p": [{"value": "\\"@id\\": 1", "type": "literal"}]}}',
        None,
        "",
        RDF_JSON,
    ),
    ("JSON that looks like it", b'{"s": {"p": [{"value": "x", "type": "literal"}]}}', None, "", JSON),
    ("empty RDF/JSON by its name", b"{}", None, "d.rj", RDF_JSON),
]


@pytest.mark.parametrize(
    ("head", "told", "name", "found"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_the_bytes_decide(head, told, name, found):
    assert found_type(head[:8192], told, name) == found

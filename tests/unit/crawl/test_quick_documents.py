"""What a strict parse proves is read as the long way would read it; any other document goes that way."""

from contextlib import contextmanager
from hashlib import sha256

import pytest

from tamias.crawl.analysis import extractor as study_module
from tamias.crawl.analysis.analysers import QUICK_BYTES, quick_lines
from tamias.crawl.analysis.extractor import Extractor
from tamias.model.capture import Body, Capture, Extent, Hop, Outcome
from tamias.model.document import DocumentBudget
from tamias.settings import AnalyseSettings, Settings

URL = "http://a.example/document"
NS = b'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://a.example/"'
NODE = b'<e:T rdf:about="#a"><e:p rdf:resource="b"/><e:q rdf:parseType="Resource"/></e:T>'
NT, NQ, TTL, TRIG = "application/n-triples", "application/n-quads", "text/turtle", "application/trig"
RDF = "application/rdf+xml"

QUICK = [
    (TTL, b"@prefix e: <http://a.example/> .\n<a> e:p [ e:q 1, 'x'@en ], ( 1 2 ) ; a e:C .\n"),
    (
        TTL,
        b"<a> <b> <<( <s> <p> _:o )>> .\n<a> <http://rdfs.org/ns/void#sparqlEndpoint> <http://b.example/q> .",
    ),
    ("text/turtle; charset=utf-8", '<a> <b> "Grüße" .'.encode()),
    ("application/x-turtle", b"<a> <b> _:c . _:c <b> _:d ."),
    (NT, b'<http://a/s> <http://a/p> _:b1 .\n# x\n<http://a/s> <http://a/p> "\\u0041" .\n'),
    (NQ, b"<http://a/s> <http://a/p> _:b1 <http://b.example/g> .\n_:b1 <http://a/p> <http://a/o> .\n"),
    (TRIG, b"<g> { <a> <b> _:c } _:c <d> 'e' . <http://b.example/g> { <a> <b> [] }"),
    (RDF, b'<?xml version="1.0"?>\n<rdf:RDF ' + NS + b">" + NODE + b"</rdf:RDF>\n"),
    (TTL, b"# only a comment\n"),
]
LONG = [
    ("another type", "text/html", b"<p>x"),
    ("no type", None, b"<a> <b> <c> ."),
    ("a fault", TTL, b"<a> <b> <c> . <a> <b>"),
    ("a byte order mark", TTL, b"\xef\xbb\xbf<a> <b> <c> ."),
    ("nothing", TTL, b""),
    ("many brackets", TTL, b"<a> <b> " + b"[ <p> " * 1001 + b"]" * 1001 + b" ."),
    ("many triple terms", NT, b"<http://a/s> <http://a/p> <http://a/o> . # " + b"<<(" * 101),
    ("entities", RDF, b'<!DOCTYPE rdf:RDF [<!ENTITY a "b">]><rdf:RDF ' + NS + b">" + NODE + b"</rdf:RDF>"),
    ("many elements", RDF, b"<rdf:RDF " + NS + b">" + b"<e:T/>" * 1001 + b"</rdf:RDF>"),
    ("RDF/XML that ends early", RDF, b"<rdf:RDF " + NS + b">" + NODE),
    ("a forbidden character", RDF, b"<rdf:RDF " + NS + b">" + NODE + b"\x01</rdf:RDF>"),
    (
        "another encoding",
        RDF,
        b'<?xml version="1.0" encoding="iso-8859-1"?><rdf:RDF ' + NS + b">" + NODE + b"</rdf:RDF>",
    ),
    (
        "an XML literal",
        RDF,
        b"<rdf:RDF " + NS + b'><e:T><e:p rdf:parseType="Literal"><b/></e:p></e:T></rdf:RDF>',
    ),
    (
        "an unknown parse type",
        RDF,
        b"<rdf:RDF " + NS + b'><e:T><e:p rdf:parseType="x"><b/></e:p></e:T></rdf:RDF>',
    ),
    ("a root of another kind", RDF, b"<e:T " + NS + b' rdf:about="x"/>'),
    ("a large document", TTL, b"<a> <b> <c> .\n" + b"#" * QUICK_BYTES),
]


def captured(data, told, *headers):
    headers = ((("Content-Type", told),) if told else ()) + headers
    hop = Hop(url=URL, status=200, headers=headers, address="192.0.2.1")
    body = Body(size=len(data), sha256=sha256(data).hexdigest(), data=data)
    return Capture(url=URL, started_at=0, ended_at=1, outcome=Outcome.OK, reason="", hops=(hop,), body=body)


class Written:
    extent = Extent(segment=1, frame=0, start=0, length=0)

    def __init__(self):
        self.text = b""

    def write(self, chunk):
        self.text += chunk


def studied(capture):
    written, links = Written(), set()

    def take(references, base, kind):
        links.update((reference, base, kind) for reference in references)

    @contextmanager
    def new_document():
        yield written

    found = Extractor(Settings()).extract(capture, capture.body, new_document, take)
    found.links = len(links)  # one that stands in two batches is counted twice
    return found, written.text, links


@pytest.mark.parametrize(("told", "data"), QUICK)
def test_the_quick_way_gives_what_the_long_way_gives(told, data, monkeypatch):
    capture = captured(data, told)
    assert quick_lines(capture, data, AnalyseSettings(), DocumentBudget(len(data))) is not None
    quick = studied(capture)
    monkeypatch.setattr(study_module, "quick_lines", lambda *_: None)
    assert studied(capture) == quick


@pytest.mark.parametrize(("told", "data"), [row[1:] for row in LONG], ids=[row[0] for row in LONG])
def test_what_a_strict_parse_does_not_prove_goes_the_long_way(told, data):
    assert quick_lines(captured(data, told), data, AnalyseSettings(), DocumentBudget(len(data))) is None


@pytest.mark.parametrize("header", [("Link", "</x>; rel=describedby"), ("X-Robots-Tag", "nofollow")])
def test_headers_that_say_more_go_the_long_way(header):
    data = b"<a> <b> <c> ."
    assert (
        quick_lines(captured(data, TTL, header), data, AnalyseSettings(), DocumentBudget(len(data))) is None
    )
    harmless = captured(data, TTL, ("Server", "x"))
    assert quick_lines(harmless, data, AnalyseSettings(), DocumentBudget(len(data))) is not None


def test_the_limits_of_the_user_hold():
    data = b"<a> <b> [ <c> [] ] ."
    assert (
        quick_lines(captured(data, TTL), data, AnalyseSettings(turtle_depth=1), DocumentBudget(len(data)))
        is None
    )


def test_the_ending_of_the_address_counts_where_the_server_is_unsure():
    data = b"<a> <b> <c> ."
    capture = captured(data, "text/plain")
    hop = capture.hops[0]
    named = Capture(
        url=URL + ".ttl", started_at=0, ended_at=1, outcome=Outcome.OK, reason="", body=capture.body,
        hops=(Hop(url=URL + ".ttl", status=200, headers=hop.headers, address=hop.address),),
    )  # fmt: skip
    assert quick_lines(capture, data, AnalyseSettings(), DocumentBudget(len(data))) is None
    assert quick_lines(named, data, AnalyseSettings(), DocumentBudget(len(data)))[0] == TTL

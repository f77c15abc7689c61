"""What the paper on Squirrel (Röder et al.) lists: its normaliser (3.3.1), and its Table 1 row by row."""

import bz2
import gzip
import io
import tarfile
import zipfile

import py7zr
import pytest
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, serialize

import tamias
from tamias.model.url import url_key
from tamias.sinks.export import export

S, P, O = "http://e/s", "http://e/p", "http://e/o"  # noqa: E741
BASE = "http://page.example/doc"
QUAD = Quad(NamedNode(S), NamedNode(P), NamedNode(O))
RDF_JSON = f'{{"{S}": {{"{P}": [{{"type": "uri", "value": "{O}"}}]}}}}'.encode()
TRIX = (
    '<TriX xmlns="http://www.w3.org/2004/03/trix/trix-1/"><graph><triple>'
    f"<uri>{S}</uri><uri>{P}</uri><uri>{O}</uri></triple></graph></TriX>"
).encode()


def written(form):
    return serialize([QUAD], format=form)


def hdt():
    out = io.BytesIO()
    export([f"<{S}> <{P}> <{O}> <{BASE}> .\n".encode()], out, "hdt")
    return out.getvalue()


SERIALISATIONS = {
    "RDF/XML": (lambda: written(RdfFormat.RDF_XML), "application/rdf+xml"),
    "RDF/JSON": (lambda: RDF_JSON, "application/rdf+json"),
    "Turtle": (lambda: written(RdfFormat.TURTLE), "text/turtle"),
    "N-Triples": (lambda: written(RdfFormat.N_TRIPLES), "application/n-triples"),
    "N-Quads": (lambda: written(RdfFormat.N_QUADS), "application/n-quads"),
    "Notation 3": (lambda: written(RdfFormat.N3), "text/n3"),
    "JSON-LD": (lambda: written(RdfFormat.JSON_LD), "application/ld+json"),
    "TriG": (lambda: written(RdfFormat.TRIG), "application/trig"),
    "TriX": (lambda: TRIX, "application/trix"),
    "HDT": (hdt, "application/vnd.hdt"),
}


def zipped(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("data.nt", data)
    return out.getvalue()


def tarred(data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        entry = tarfile.TarInfo("data.nt")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def seven_zipped(data):
    out = io.BytesIO()
    with py7zr.SevenZipFile(out, "w") as archive:
        archive.writestr(data, "data.nt")
    return out.getvalue()


COMPRESSIONS = {
    "ZIP": zipped, "Gzip": gzip.compress, "bzip2": bz2.compress, "7zip": seven_zipped, "tar": tarred,
}  # fmt: skip
HTML = {
    "RDFa": f'<p about="{S}"><a rel="{P}" href="{O}">o</a></p>',
    "Microdata": f'<p itemscope itemid="{S}" itemtype="http://e/T"><a itemprop="{P}" href="{O}">o</a></p>',
    "Microformat": '<p class="h-card"><a class="p-name u-url" href="http://e/o">o</a></p>',
}
NORMAL = {
    "default ports": ("http://a.example:80/x", "http://a.example/x"),
    "percent-encoding of unreserved characters": ("http://a.example/%7Eb", "http://a.example/~b"),
    "dots in paths": ("http://a.example/b/../c/./d", "http://a.example/c/d"),
    "fragments": ("http://a.example/x#y", "http://a.example/x"),
    "the order of parameters": ("http://a.example/?b=2&a=1", "http://a.example/?a=1&b=2"),
}


def triples(data, media_type):
    reading = tamias.read(data, base=BASE, media_type=media_type)
    found = {(quad.subject, quad.predicate, quad.object) for quad in reading.quads}
    assert not reading.problems
    return found


@pytest.mark.parametrize("name", SERIALISATIONS)
def test_a_serialisation_of_table_1_is_read(name):
    make, media_type = SERIALISATIONS[name]
    assert triples(make(), media_type) == {(QUAD.subject, QUAD.predicate, QUAD.object)}


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_a_compression_of_table_1_is_opened(name):
    packed = COMPRESSIONS[name](written(RdfFormat.N_TRIPLES))
    assert triples(packed, None) == {(QUAD.subject, QUAD.predicate, QUAD.object)}


@pytest.mark.parametrize("name", HTML)
def test_data_in_html_of_table_1_is_extracted(name):
    page = f"<!doctype html><html><head><title>t</title></head><body>{HTML[name]}</body></html>".encode()
    objects = {object_ for _, _, object_ in triples(page, "text/html")}
    assert objects & {QUAD.object, Literal("o")}


@pytest.mark.parametrize("what", NORMAL)
def test_the_normaliser_makes_two_spellings_one(what):
    one, other = NORMAL[what]
    assert url_key(one) == url_key(other)

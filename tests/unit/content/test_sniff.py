"""The type of a body by its bytes, with what the server and the name claim as evidence."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest
import zstandard

from tamias.content.sniff import SHEET, found_charset, found_type

RDF_NS = b'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
RDF_XML = b"<rdf:RDF " + RDF_NS + b"></rdf:RDF>"
TRIPLE = b"<http://a/s> <http://a/p> <http://a/o> .\n"
QUAD = b'<http://a/s> <http://a/p> "x \\" <> { }"@en <http://a/g> .\n'
NT, NQ = "application/n-triples", "application/n-quads"
TTL, TRIG, N3 = "text/turtle", "application/trig", "text/n3"
XML, RDF, HTML, XHTML = "application/xml", "application/rdf+xml", "text/html", "application/xhtml+xml"
JSON, LD, RDFJSON = "application/json", "application/ld+json", "application/rdf+json"
BROTLI = "application/x-brotli"
CSV, TSV, PLAIN, OCTETS = "text/csv", "text/tab-separated-values", "text/plain", "application/octet-stream"


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"application/epub+zip" if name == "mimetype" else b"x")
    return file.getvalue()


def tarred(dialect):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=dialect) as archive:
        archive.addfile(tarfile.TarInfo("a.nt"), io.BytesIO())
    return file.getvalue()


OLD_TAR = tarred(tarfile.USTAR_FORMAT)
OLD_TAR = OLD_TAR[:148] + b" " * 8 + OLD_TAR[156:257] + b"\0" * 8 + OLD_TAR[265:]
OLD_TAR = OLD_TAR[:148] + b"%06o\0 " % sum(OLD_TAR[:512]) + OLD_TAR[156:]

ROWS = [
    # (what the case is, head, told, name, found)
    ("gzip told as turtle", gzip.compress(b"x"), TTL, "d.ttl", "application/gzip"),
    ("bzip2", bz2.compress(b"x"), None, "", "application/x-bzip2"),
    ("text that starts like bzip2", b"BZh9 is a word\n", None, "", PLAIN),
    ("xz", lzma.compress(b"x"), None, "", "application/x-xz"),
    ("zstd", zstandard.compress(b"x"), OCTETS, "", "application/zstd"),
    ("zstd with a skippable frame first", b"\x50\x2a\x4d\x18\4\0\0\0abcd", None, "", "application/zstd"),
    ("zip", zipped("a.ttl"), None, "", "application/zip"),
    ("empty zip", zipped(), None, "", "application/zip"),
    ("xlsx without a claim", zipped("[Content_Types].xml", "xl/workbook.xml"), None, "", SHEET),
    ("xlsx told as zip", zipped("[Content_Types].xml", "xl/w.xml"), "application/zip", "", SHEET),
    ("epub", zipped("mimetype", "a"), None, "", "application/epub+zip"),
    ("tar", tarred(tarfile.PAX_FORMAT), None, "", "application/x-tar"),
    ("tar of 1979 with a name", OLD_TAR, None, "a.tar", "application/x-tar"),
    ("pdf told as html", b"%PDF-1.4\n", HTML, "", "application/pdf"),
    ("png", b"\x89PNG\r\n\x1a\n\0", None, "", "image/png"),
    ("jpeg", b"\xff\xd8\xff\xe0", None, "", "image/jpeg"),
    ("gif", b"GIF89a\1\0", None, "", "image/gif"),
    ("webp", b"RIFF\0\0\0\0WEBPVP8 ", None, "", "image/webp"),
    ("old excel", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", None, "a.xls", "application/vnd.ms-excel"),
    ("hdt", b"$HDT\1", None, "", "application/vnd.hdt"),
    ("parquet", b"PAR1\x15\4", None, "", "application/vnd.apache.parquet"),
    ("unknown binary", bytes(range(256)), None, "", OCTETS),
    ("unknown binary told as turtle", b"\0\1\2\3" * 40, TTL, "a.ttl", OCTETS),
    ("binary with its own type", b"\0\1\2\3" * 40, "application/x-thing", "", "application/x-thing"),
    ("nothing at all", b"", None, "", PLAIN),
    ("nothing, told as turtle", b"", TTL, "", TTL),
    ("nothing, told as gzip", b"", "application/gzip", "", PLAIN),
    ("only blanks, named nt", b" \n\n", None, "a.nt", NT),
    # RDF/XML and other markup
    ("RDF/XML", RDF_XML, RDF, "", RDF),
    ("RDF/XML told as XML", b'<?xml version="1.0"?>\n' + RDF_XML, "application/xml", "", RDF),
    ("RDF/XML told as text", RDF_XML, PLAIN, "", RDF),
    ("RDF/XML told as HTML", RDF_XML, HTML, "", RDF),
    ("RDF/XML after a comment", b"<!-- <html> -->\n" + RDF_XML, None, "", RDF),
    ("RDF/XML with entities", b'<!DOCTYPE rdf:RDF [<!ENTITY a "b>">]>' + RDF_XML, None, "", RDF),
    ("RDF/XML with another prefix", b'<R:RDF xmlns:R="http://x">', None, "", RDF),
    ("RDF/XML without rdf:RDF", b"<e:Thing " + RDF_NS + b' xmlns:e="http://e/">', XML, "", RDF),
    ("a node element, told", b'<e:Thing xmlns:e="http://e/"/>', RDF, "", RDF),
    ("any XML, named owl", b'<e:Thing xmlns:e="http://e/"/>', XML, "a.owl", RDF),
    (
        "OWL/XML named owl",
        b'<Ontology xmlns="http://www.w3.org/2002/07/owl#">',
        None,
        "a.owl",
        "application/owl+xml",
    ),
    ("TriX", b'<TriX xmlns="http://www.w3.org/2004/03/trix/trix-1/">', XML, "", "application/trix"),
    ("some XML", b'<?xml version="1.0"?><catalogue/>', "text/xml; charset=utf-8", "", XML),
    ("some XML told as turtle", b'<?xml version="1.0"?><catalogue/>', TTL, "", XML),
    ("Atom", b'<feed xmlns="http://www.w3.org/2005/Atom">', XML, "", "application/atom+xml"),
    ("XML cut in its first comment", b'<?xml version="1.0"?><!-- ' + b"x" * 100, RDF, "", RDF),
    ("UTF-16 RDF/XML", RDF_XML.decode().encode("utf-16"), None, "", RDF),
    ("UTF-16 XML without a mark", '<?xml version="1.0"?><a/>'.encode("utf-16-le"), None, "", XML),
    ("HTML", b"<!DOCTYPE html><html>", "text/html; charset=utf-8", "", HTML),
    ("HTML told as turtle", b"\n<!doctype HTML>\n<p>Not found", TTL, "data.ttl", HTML),
    ("HTML told as RDF/XML", b"<html><head>", RDF, "", HTML),
    ("HTML told as JSON-LD", b"<HTML lang=en>", LD, "", HTML),
    ("HTML without html", b"<script>var a = '<http://a>'</script>", None, "", HTML),
    ("HTML after a comment", b"<!-- hi -->\n<title>x</title>", None, "", HTML),
    ("HTML from any tag", b"<my-app><dl>", HTML, "", HTML),
    ("HTML from a tag without a claim", b"<aside>x", None, "", HTML),
    ("XHTML from any tag", b"<dl>", XHTML, "", XHTML),
    ("a sitemap told as HTML", b'<?xml version="1.0"?><urlset>', HTML, "", "application/x-sitemap+xml"),
    ("brotli told by a name of its own", b"\x8b\x00\x80\x01" * 20, "application/br", "", BROTLI),
    ("brotli with an unknown type", b"\x8b\x00\x80\x01" * 20, "application/x-thing", "a.nt.br", BROTLI),
    ("HTML that is only text", b"It works!", HTML, "", HTML),
    (
        "XHTML",
        b'<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">',
        None,
        "",
        XHTML,
    ),
    ("XHTML told as HTML", b'<html xmlns="http://www.w3.org/1999/xhtml">', HTML, "", HTML),
    ("XHTML by its type", b'<html xmlns="http://www.w3.org/1999/xhtml">', XHTML, "", XHTML),
    # JSON
    ("JSON-LD", b'{"@context": {}}', LD, "", LD),
    ("JSON-LD told as JSON", b'{ "a": 1,\n "@id" : "http://a"}', JSON, "", LD),
    ("JSON-LD array", b'[ {"@id": "http://a"} ]', None, "", LD),
    ("JSON-LD told as turtle", b'[{"@id": "http://a"}]', TTL, "", LD),
    ("JSON-LD by its type", b'{"name": "x"}', LD, "", LD),
    ("JSON-LD by its name", b'{"name": "x"}', JSON, "a.jsonld", LD),
    ("RDF/JSON", b'{"http://a": {"http://p": [{"value": "x", "type": "literal"}]}}', JSON, "", RDFJSON),
    ("RDF/JSON by its type", b"{}", RDFJSON, "", RDFJSON),
    ("JSON", b'{"a": "@prefix"}', None, "", JSON),
    ("JSON told as HTML", b"[1, 2]", HTML, "", JSON),
    ("JSON with a mark", b'\xef\xbb\xbf{"a": 1}', None, "", JSON),
    ("GeoJSON", b'{"type": "FeatureCollection", "features": []}', JSON, "", "application/geo+json"),
    ("empty JSON array", b"[]", None, "", JSON),
    # lines of RDF
    ("N-Triples", TRIPLE, None, "", NT),
    ("N-Triples told as text", TRIPLE * 3, PLAIN, "", NT),
    ("N-Triples after comments", b"# a\n\n# b <c> {\n" + TRIPLE, None, "", NT),
    ("N-Triples cut in a line", TRIPLE * 3 + TRIPLE[:20], None, "", NT),
    ("N-Triples with blank nodes", b'_:a <http://p> "x"^^<http://t> . # c\r\n', None, "", NT),
    ("N-Triples told as turtle", TRIPLE, TTL, "", TTL),
    ("N-Triples told as N-Quads", TRIPLE, "text/x-nquads", "", NQ),
    ("N-Triples told as RDF/XML", TRIPLE, RDF, "", NT),
    ("N-Triples told as HTML", TRIPLE, HTML, "", NT),
    ("N-Quads", QUAD, None, "", NQ),
    ("N-Quads told as N-Triples", TRIPLE + QUAD, NT, "a.nt", NQ),
    ("N-Quads told as turtle", QUAD, TTL, "", NQ),
    # Turtle and its family
    ("Turtle", b"@prefix a: <http://a/> .\na:b a a:C .", None, "", TTL),
    ("Turtle told as RDF/XML", b"@prefix a: <http://a/> .", RDF, "a.rdf", TTL),
    ("Turtle told as text", b"@base <http://a/> .", PLAIN, "", TTL),
    ("Turtle after a licence", b"# Licence\n#\n\nPREFIX a: <http://a/>\na:b a:c 1 .", None, "", TTL),
    ("Turtle without prefixes", b"<http://a/s> a <http://a/T> ;\n  <http://p> 1 .", None, "", TTL),
    ("Turtle of relative IRIs", b"<#me> <p> <x>, <y> .", None, "", TTL),
    ("Turtle from an empty IRI", b'<> <http://p> "x" .', None, "", TTL),
    ("Turtle from a blank node", b"[] a <http://a/T> .", None, "", TTL),
    ("Turtle from a property list", b"[ a <http://a/T> ] .", None, "", TTL),
    (
        "Turtle with braces in a literal",
        b'@prefix a: <http://a/> .\na:b a:c "a:d { x } => y" .',
        None,
        "",
        TTL,
    ),
    ("Turtle, old name", b"@prefix a: <http://a/> .", "application/x-turtle", "", TTL),
    ("Turtle told as N3", b"@prefix a: <http://a/> .", "text/rdf+n3", "", N3),
    ("Turtle in UTF-16", "@prefix a: <http://a/> .".encode("utf-16"), None, "", TTL),
    ("Turtle with a mark", b"\xef\xbb\xbf@prefix a: <http://a/> .", None, "", TTL),
    ("only comments, told", b"# one\n# two\n", TTL, "", TTL),
    ("TriG", b"@prefix a: <http://a/> .\na:g { a:b a:c a:d }", None, "", TRIG),
    ("TriG told as turtle", b"@prefix a: <http://a/> .\nGRAPH a:g { a:b a:c a:d }", TTL, "", TRIG),
    ("TriG without prefixes", b"<http://g> { <http://a> <http://b> <http://c> }", None, "", TRIG),
    ("TriG default graph", b"{ <http://a> <http://b> <http://c> }", None, "", TRIG),
    ("Turtle told as TriG", b"@prefix a: <http://a/> .", TRIG, "", TRIG),
    ("N3 rule", b"@prefix a: <http://a/> .\n{ ?x a:p ?y } => { ?y a:q ?x } .", TTL, "", N3),
    ("SPARQL", b"PREFIX a: <http://a/>\nSELECT * WHERE { ?s a:p ?o }", None, "", "application/sparql-query"),
    # tables and text
    ("CSV told", b"a,b\n1,2\n", "text/csv; header=present", "", CSV),
    ("CSV by name", b"a;b\n1;2\n", OCTETS, "a.csv", CSV),
    ("CSV by shape", b"a,b,c\n1,2,3\n4,5,6\n", None, "", CSV),
    ("TSV by shape", b"a\tb\n1\t2\n4\t5\n", PLAIN, "", TSV),
    ("JSON told as CSV", b'{"error": true}', CSV, "a.csv", JSON),
    ("HTML told as CSV", b"<!DOCTYPE html><title>404", CSV, "a.csv", HTML),
    ("prose", b"Dear reader,\nthis is text.\nGood bye.\n", None, "", PLAIN),
    ("prose told as RDF/XML", b"Internal error", RDF, "", PLAIN),
    ("prose told as JSON", b"Internal error", JSON, "", PLAIN),
    ("prose told as PDF", b"Internal error", "application/pdf", "", PLAIN),
    ("style sheet", b"a:hover { color: red }", "text/css", "", "text/css"),
    ("latin-1 text", b"caf\xe9\n", None, "", PLAIN),
]


@pytest.mark.parametrize(
    ("head", "told", "name", "found"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_the_bytes_decide_what_a_body_is(head, told, name, found):
    assert found_type(head, told, name) == found


@pytest.mark.parametrize(
    ("head", "told", "media_type", "charset"),
    [
        (b"\xef\xbb\xbfx", "text/html; charset=latin-1", HTML, "utf-8"),
        ("x".encode("utf-16"), None, TTL, "utf-16"),
        ("<a/>".encode("utf-16-be"), None, XML, "utf-16-be"),
        (b"<p>", "text/html; charset=ISO-8859-1", HTML, "iso8859-1"),
        (b"<meta charset=windows-1251>", None, HTML, "cp1251"),
        (b"<meta charset=windows-1251>", "text/html;charset='utf-8'", HTML, "utf-8"),
        (b'<?xml version="1.0" encoding="ISO-8859-1"?>', None, RDF, "iso8859-1"),
        (b'<?xml version="1.0" encoding="UTF-8"?>', "text/xml; charset=iso-8859-1", RDF, "utf-8"),
        (b"<a/>", "text/xml; charset=iso-8859-1", XML, "iso8859-1"),
        (b"@prefix", "text/turtle; charset=iso-8859-1", TTL, None),
        (b"{}", "application/json; charset=iso-8859-1", JSON, None),
        (b"a,b", "text/csv; charset=windows-1252", CSV, "cp1252"),
        (b"<p>", "text/html; charset=rot13", HTML, None),
        (b"<p>", "text/html; charset=no-such-thing", HTML, None),
        (b"<p>", None, HTML, None),
    ],
)
def test_the_charset_is_that_of_the_strongest_witness(head, told, media_type, charset):
    assert found_charset(head, told, media_type) == charset

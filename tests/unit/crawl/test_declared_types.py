"""A declared RDF syntax is believed when its parser agrees, whoever declares it and however large it is."""

import io
import zipfile

import pytest

import tamias

NT, NQ, TTL, TRIG, N3 = (
    "application/n-triples",
    "application/n-quads",
    "text/turtle",
    "application/trig",
    "text/n3",
)
RDF, HTML, XML, LD = "application/rdf+xml", "text/html", "application/xml", "application/ld+json"
ENDINGS = {NT: "nt", NQ: "nq", TTL: "ttl", TRIG: "trig", N3: "n3", RDF: "rdf"}
LINE = b"<http://a.example/s%d> <http://a.example/p> <http://a.example/o> .\n"
QUAD = b'<http://a.example/s%d> <http://a.example/p> "x" <http://a.example/g> .\n'


def lines(count, line=LINE, start=0):
    return b"".join(line % number for number in range(start, start + count))


PADDING = lines(3000)
TURTLE_PADDING = b"@prefix e: <http://a.example/> .\n" + b"e:s e:p e:o ;\n  e:q 1, 2 .\n" * 3000

CASES = [
    # (what, text, declared, found, quads, lines with a problem)
    ("Turtle that begins with a relative IRI", b"<alice> <http://x/knows> <bob> .", TTL, TTL, 1, []),
    ("TriG that begins with a relative IRI", b"<g> { <alice> <http://x/knows> <bob> }", TRIG, TRIG, 1, []),
    ("N3 that begins with a relative IRI", b"<alice> <http://x/knows> <bob> .", N3, N3, 1, []),
    ("a URN", b"<urn:a> <urn:b> <urn:c> .\n", NT, NT, 1, []),
    (
        "one relative IRI in N-Triples",
        lines(4) + b"<alice> <http://x/knows> <http://x/bob> .\n" + lines(4),
        NT,
        NT,
        8,
        [5],
    ),
    (
        "one odd line of N-Quads",
        lines(3, QUAD) + b'<http://a.example/s> "\n' + lines(9, QUAD),
        NQ,
        NQ,
        12,
        [4],
    ),
    ("the first line of N-Quads is odd", b'<rel> <p> "x" .\n' + lines(9, QUAD), NQ, NQ, 9, [1]),
    ("a comma in N-Triples", lines(3) + b"<x:s> <x:p> <x:o>, <x:o2> .\n", NT, NT, 3, [4]),
    ("a bare number in N-Triples", lines(3) + b"<x:s> <x:p> 5 .\n", NT, NT, 3, [4]),
    ("a triple term", b"<x:s> <x:p> <<( <x:s> <x:p> <x:o> )>> .\n", NT, NT, 1, []),
    ("a triple term in N-Quads", b"<x:s> <x:p> <<( <x:s> <x:p> <x:o> )>> <x:g> .\n", NQ, NQ, 1, []),
    ("a language tag after a space", b'<x:s> <x:p> "Alice" @en .\n', NT, NT, 1, []),
    ("control characters", b'<x:s> <x:p> "\x01\x02\x03\x08\x7f" .\n', NT, NT, 1, []),
    ("control characters in Turtle", b'<x:s> <x:p> """\x01\x02\x03\x00""" .\n', TTL, TTL, 1, []),
    ("an annotation", b"<x:s> <x:p> <x:o> {| <x:q> <x:r> |} .\n", TTL, TTL, 3, []),
    ("Turtle with an odd statement", b"<s> <p> <o> .\n<s> <p> .\n<s> <p> <o2> .\n", TTL, TTL, 2, [2]),
    ("Turtle in a file of N-Triples", b"@prefix a: <http://a/> .\na:b a a:c ; a:d 1 .\n", NT, TTL, 2, [None]),
    ("N-Quads declared as N-Triples", lines(3, QUAD), NT, NQ, 3, [None]),
    ("N-Quads declared as Turtle", lines(3, QUAD), TTL, NQ, 3, [None]),
    (
        "TriG declared as Turtle",
        b"@prefix a: <http://a/> .\na:g { " + b"a:b a:c a:d .\n" * 9 + b"}",
        TTL,
        TRIG,
        9,
        [None],
    ),
    ("Turtle declared as RDF/XML", b"<alice> <http://x/knows> <bob> .", RDF, TTL, 1, []),
    ("Turtle declared as a page", b"<alice> <http://x/knows> <bob> .", HTML, TTL, 1, []),
    ("a page declared as N-Triples", b"<!DOCTYPE html><html><title>x</title><p>Gone.", NT, HTML, 0, [None]),
    ("a page declared as Turtle", b"<html>\n<head>\n<title>Not. Found.</title>", TTL, HTML, 0, [None]),
    ("XML declared as Turtle", b"<catalogue>\n<item>\n<name>a</name>", TTL, XML, 0, [None]),
    ("JSON-LD declared as Turtle", b'[{"@id": "http://a/s", "http://a/p": 1}]', TTL, LD, 1, [None]),
]


def each(cases):
    columns = ("text", "declared", "found", "quads", "problems")
    return pytest.mark.parametrize(columns, [case[1:] for case in cases], ids=[case[0] for case in cases])


def told(reading):
    quads = list(reading.quads)
    return reading.media_type, len(quads), [problem.line for problem in reading.problems]


@each(CASES)
def test_a_declared_media_type(text, declared, found, quads, problems):
    reading = tamias.read(text, base="http://a.example/document", media_type=declared)
    assert told(reading) == (found, quads, problems)


@each([case for case in CASES if case[2] in ENDINGS])
def test_the_ending_of_a_file(text, declared, found, quads, problems, tmp_path):
    path = tmp_path / f"document.{ENDINGS[declared]}"
    path.write_bytes(text)
    assert told(tamias.read(path, base="http://a.example/document")) == (found, quads, problems)


@each([case for case in CASES if case[2] in ENDINGS])
def test_the_ending_of_a_member(text, declared, found, quads, problems):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"document.{ENDINGS[declared]}", text)
    assert told(tamias.read(file.getvalue())) == (found, quads, problems)


MORE = {NT: (PADDING, 3000), NQ: (PADDING, 3000), **dict.fromkeys((TTL, TRIG, N3), (TURTLE_PADDING, 9000))}


@each([case for case in CASES if case[3] in MORE and not case[0].startswith("N-Quads declared")])
def test_a_document_larger_than_its_head(text, declared, found, quads, problems):
    padding, more = MORE[found]
    reading = tamias.read(text + b"\n" + padding, base="http://a.example/document", media_type=declared)
    assert told(reading) == (found, quads + more, problems)


@pytest.mark.parametrize("declared", [NT, NQ, TTL, TRIG, N3])
def test_a_first_statement_longer_than_the_head(declared):
    text = b'<http://a.example/s> <http://a.example/p> "%b" .\n' % (b"x" * 9000)
    assert told(tamias.read(text + lines(2), media_type=declared)) == (declared, 3, [])


@pytest.mark.parametrize(
    ("text", "found", "quads"),
    [
        (b"<alice> <http://x/knows> <bob> .", TTL, 1),
        (b"<urn:a> <urn:b> <urn:c> .\n", NT, 1),
        (lines(3, QUAD) + b'<http://a.example/s> "\n' + lines(9, QUAD), NQ, 12),
        (b'<x:s> <x:p> "\x01\x02\x03\x08\x7f" .\n', NT, 1),
    ],
)
def test_without_a_declaration_the_type_is_what_parses(text, found, quads):
    assert told(tamias.read(text, base="http://a.example/"))[:2] == (found, quads)

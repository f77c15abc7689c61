"""RDF documents become quads; what is broken, hostile or out of reach becomes a problem."""

import io
import random
import subprocess
import sys
import textwrap

import pytest
from pyoxigraph import Literal, RdfFormat, parse

from tamias.analyse.rdf.analyser import RdfAnalyser
from tamias.model.document import Document, LimitExceeded
from tamias.model.finding import Problem, Quads
from tamias.settings import AnalyseSettings
from tests.messages import unsaid

NT, NQ, TTL, TRIG, N3 = (
    "application/n-triples",
    "application/n-quads",
    "text/turtle",
    "application/trig",
    "text/n3",
)
RDF, LD = "application/rdf+xml", "application/ld+json"
URL = "http://a.example/d/doc"
TRIPLE_TERM = "<<( <http://s> <http://p> "
OPEN = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'


def read(data, media_type, *, charset=None, url=URL, **limits):
    """The quads as text, and the problems."""
    data = data.encode() if isinstance(data, str) else data
    document = Document(url=url, stream=io.BytesIO(data), media_type=media_type, charset=charset)
    quads, problems = [], []
    for finding in RdfAnalyser(AnalyseSettings(**limits)).analyse(document):
        if isinstance(finding, Quads):
            quads += finding.quads
        else:
            problems.append(finding)
    return quads, problems


def objects(data, media_type, **options):
    quads, problems = read(data, media_type, **options)
    assert problems == []
    return [quad.object.value for quad in quads]


def only_problem(data, media_type, **options):
    quads, problems = read(data, media_type, **options)
    assert quads == []
    [problem] = problems
    return problem.what


@pytest.mark.parametrize(
    ("media_type", "text"),
    [
        (NT, '<http://s> <http://p> "x" .'),
        (NQ, '<http://s> <http://p> "x" <http://g> .'),
        (TTL, '<http://s> <http://p> "x" .'),
        (TRIG, '<http://g> { <http://s> <http://p> "x" }'),
        (N3, '<http://s> <http://p> "x" .'),
        (RDF, f'{OPEN}<rdf:Description rdf:about="http://s"><e:p>x</e:p></rdf:Description></rdf:RDF>'),
        (LD, '{"@id": "http://s", "http://p": "x"}'),
    ],
)
def test_every_syntax_is_read(media_type, text):
    assert objects(text, media_type) == ["x"]


def test_every_type_of_the_analyser_is_one_that_it_reads():
    assert RdfAnalyser.media_types == {NT, NQ, TTL, TRIG, N3, RDF, LD}


def test_relative_references_are_resolved_against_the_url():
    [quad], _ = read("<x> <#p> </y> .", TTL)
    assert str(quad) == "<http://a.example/d/x> <http://a.example/d/doc#p> <http://a.example/y>"


def test_a_url_that_is_no_iri_does_not_hinder_the_reading():
    assert objects("<http://s> <http://p> 1 .", TTL, url="http://a/ b|c") == ["1"]


def test_literals_and_iris_stay_as_they_are():
    text = '<HTTP://A/%7e/../b> <http://p> "01"^^<http://www.w3.org/2001/XMLSchema#integer>, "X"@EN-gb .'
    quads, _ = read(text, TTL)
    assert [quad.subject.value for quad in quads] == ["HTTP://A/%7e/../b"] * 2
    assert [quad.object.value for quad in quads] == ["01", "X"]


def test_graph_names_stay_as_they_are():
    quads, _ = read("<http://g> { <http://s> <http://p> 1 } { <http://s> <http://p> 2 }", TRIG)
    assert [str(quad.graph_name) for quad in quads] == ["<http://g>", "DEFAULT"]


def test_quads_come_in_batches():
    document = Document(
        url=URL, stream=io.BytesIO(b"<http://s> <http://p> <http://o> .\n" * 2500), media_type=NT
    )
    batches = [len(finding.quads) for finding in RdfAnalyser().analyse(document)]
    assert sum(batches) == 2500
    assert max(batches) <= 1000


def test_an_empty_document_has_no_findings():
    assert read(b"", TTL) == ([], [])


# What is broken


def test_good_statements_before_and_after_a_fault_are_kept():
    text = '<http://s> <http://p> "1" .\nnonsense here .\n<http://s> <http://p> "2" .\n'
    quads, [problem] = read(text, NT)
    assert ([quad.object.value for quad in quads], problem.line) == (["1", "2"], 2)


def test_a_truncated_turtle_keeps_what_stands_before():
    quads, problems = read('<http://s> <http://p> "1" .\n<http://s> <http://p> "2', TTL)
    assert ([quad.object.value for quad in quads], len(problems)) == (["1"], 1)


def test_a_truncated_rdf_xml_keeps_what_stands_before():
    text = f'{OPEN}<e:T rdf:about="http://s"><e:p>1</e:p></e:T><e:T rdf:about="http://s"><e:p>2'
    quads, problems = read(text, RDF)
    assert "1" in [quad.object.value for quad in quads]
    assert problems


def test_one_fault_in_a_hundred_is_read_through_and_summed_up():
    lines = [
        "broken .\n" if number % 100 == 99 else f"<http://s> <http://p> <http://o/{number}> .\n"
        for number in range(20_000)
    ]
    quads, problems = read("".join(lines), NT)
    assert len(quads) == 19_800
    assert len(problems) == 101
    assert not unsaid(problems[-1].what, "100", "analyse.max_errors")


def test_garbage_is_given_up_after_the_error_limit():
    _, problems = read("this is not RDF at all\n" * 100_000, NT, max_errors=5)
    assert len(problems) == 6
    assert not unsaid(problems[-1].what, "5", "analyse.max_errors")


@pytest.mark.parametrize("media_type", [NT, NQ, TTL, TRIG, N3, RDF, LD])
def test_random_damage_never_raises(media_type):
    source = random.Random(3)
    good = {
        RDF: (
            OPEN + '<e:T rdf:about="http://s"><e:p xml:lang="en">1</e:p></e:T>' * 20 + "</rdf:RDF>"
        ).encode(),
        LD: b"[" + b'{"@id": "http://s", "http://p": [{"@value": "x", "@language": "en"}]},' * 20 + b"{}]",
    }.get(media_type, b'<http://s> <http://p> "x"@en .\n' * 40)
    for _ in range(200):
        bad = bytearray(good)
        for _ in range(source.randrange(1, 6)):
            bad[source.randrange(len(bad))] = source.randrange(256)
        read(bytes(bad), media_type)


def test_a_limit_of_the_stream_passes_through_after_what_was_read():
    class Limited(io.BytesIO):
        def read(self, size=-1):
            data = super().read(size)
            if not data:
                raise LimitExceeded("enough")
            return data

    document = Document(url=URL, stream=Limited(b"<http://s> <http://p> <http://o> .\n" * 3), media_type=NT)
    findings = RdfAnalyser().analyse(document)
    assert len(next(findings).quads) == 3
    with pytest.raises(LimitExceeded, match="enough"):
        next(findings)


# Characters


@pytest.mark.parametrize("media_type", [NT, TTL])
@pytest.mark.parametrize("charset", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_part_of_the_text(media_type, charset):
    data = '<http://s> <http://p> "é€" .'.encode(charset)
    assert objects(data, media_type, charset="utf-16" if charset == "utf-16" else "utf-8") == ["é€"]


@pytest.mark.parametrize(
    ("charset", "declared"), [("iso8859-1", "ISO-8859-1"), ("utf-16", "UTF-16"), ("utf-8-sig", "utf-8")]
)
def test_xml_in_other_encodings_is_brought_to_utf_8(charset, declared):
    text = f'<?xml version="1.0" encoding="{declared}"?>{OPEN}<e:T e:p="é"/></rdf:RDF>'
    assert "é" in objects(text.encode(charset), RDF, charset=charset.removesuffix("-sig"))


def test_xml_in_an_encoding_that_only_the_server_told_is_read():
    text = f'{OPEN}<e:T e:p="é"/></rdf:RDF>'
    assert "é" in objects(text.encode("latin-1"), RDF, charset="iso8859-1")


# Entities


def with_entities(declarations, content):
    return f'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [{declarations}]>\n{OPEN}{content}</rdf:RDF>'


@pytest.mark.parametrize(
    ("declarations", "expected"),
    [
        ('<!ENTITY n "http://n/">', "http://n/x"),
        ("<!ENTITY n 'http://n/'>", "http://n/x"),
        ('<!-- <!ENTITY n "no"> it\'s -->\n<!ENTITY n "http://n/" >', "http://n/x"),
        ('<!ENTITY m "http://m/"><!ENTITY n "&m;n/">', "http://m/n/x"),
        ('<!ENTITY n "&m;n/"><!ENTITY m "http://m/">', "http://m/n/x"),
        ('<!ENTITY n "a&amp;b&#233;">', "a&béx"),
        ('<!ENTITY n "[>]\'%">', "[>]'%x"),
        ('<!ENTITY n "a & b">', "a & bx"),
        ('<!ENTITY n "first"><!ENTITY n "second">', "firstx"),
        ('<!ENTITY e SYSTEM "file:///etc/passwd"><!ENTITY n "http://n/">', "http://n/x"),
        ('<!ENTITY % p "q"><!ENTITY n "http://n/">', "http://n/x"),
        ('<!ENTITY n "&nowhere;">', "&nowhere;x"),
    ],
)
def test_entities_of_namespaces_are_expanded(declarations, expected):
    text = with_entities(declarations, '<rdf:Description rdf:about="http://s" e:p="&n;x"/>')
    assert objects(text, RDF) == [expected]


def test_a_doctype_with_a_system_id_is_read_without_it():
    text = f'<!DOCTYPE rdf:RDF PUBLIC "-//X" "http://x/[a]>.dtd">{OPEN}<e:T e:p="x"/></rdf:RDF>'
    assert "x" in objects(text, RDF)


def bomb(levels, width):
    lines = ['<!ENTITY a0 "aaaaaaaaaa">']
    lines += [f'<!ENTITY a{n} "{f"&a{n - 1};" * width}">' for n in range(1, levels)]
    return with_entities("".join(lines), f"<rdf:Description><e:p>&a{levels - 1};</e:p></rdf:Description>")


def test_a_billion_laughs_in_600_bytes_are_refused():
    text = bomb(8, 10)
    assert len(text) < 600
    assert "analyse.entity_bytes" in only_problem(text, RDF)


def test_entities_nested_too_deep_are_refused():
    lines = [f'<!ENTITY a{n} "&a{n + 1};">' for n in range(30)]
    text = with_entities("".join([*lines, '<!ENTITY a30 "x">']), "<e:T/>")
    assert not unsaid(only_problem(text, RDF), "8")


def test_entities_that_contain_themselves_are_refused():
    text = with_entities('<!ENTITY a "&b;"><!ENTITY b "&a;">', "<e:T/>")
    assert not unsaid(only_problem(text, RDF), "8")


def test_one_large_entity_used_very_often_is_refused():
    text = with_entities(
        f'<!ENTITY a "{"x" * 60_000}">', f"<rdf:Description><e:p>{'&a;' * 100_000}</e:p></rdf:Description>"
    )
    assert "grow the document" in only_problem(text, RDF)


def test_small_entities_may_be_used_as_often_as_one_likes():
    node = '<rdf:Description rdf:about="&n;s"><e:p rdf:resource="&n;o"/></rdf:Description>'
    text = with_entities('<!ENTITY n "http://a.long.namespace.example/ontology/2024/terms#">', node * 20_000)
    assert len(objects(text, RDF)) == 20_000


def test_a_prolog_without_end_is_refused():
    assert "XML prolog" in only_problem("<!DOCTYPE rdf:RDF [" + '<!ENTITY a "b">' * 40_000, RDF)


# Nesting


@pytest.mark.parametrize(
    ("media_type", "text", "setting"),
    [
        (RDF, OPEN + "<e:T>" + "<e:p><e:T>" * 20_000, "xml_depth"),
        (RDF, OPEN + "<e:T>" + '<e:p e:x="/>"><e:T>' * 20_000, "xml_depth"),
        (TTL, "<http://s> <http://p> " + "[<http://p> " * 20_000, "turtle_depth"),
        (TTL, "<http://s> <http://p> " + "(" * 20_000, "turtle_depth"),
        (TTL, "<http://s> <http://p> " + '("""] ) \n.""" ' * 20_000, "turtle_depth"),
        (TRIG, "<http://g> { <http://s> <http://p> " + "[<http://p> " * 20_000, "turtle_depth"),
        (N3, "{" * 20_000, "turtle_depth"),
        (TTL, "<http://s> <http://p> " + TRIPLE_TERM * 20_000 + "1" + ")>>" * 20_000 + " .", "turtle_depth"),
        (TTL, TRIPLE_TERM.replace(" <http://p> ", "<http://p>") * 20_000, "turtle_depth"),
        (TRIG, "<http://g> { " + TRIPLE_TERM * 20_000, "turtle_depth"),
        (LD, "[" * 20_000, "json_depth"),
        (LD, '{"http://p":' * 20_000 + "1" + "}" * 20_000, "json_depth"),
        (LD, '{"]]}}":' * 20_000, "json_depth"),
    ],
)
def test_deep_nesting_is_refused_with_its_limit_named(media_type, text, setting):
    _, problems = read(text, media_type)
    assert f"limit analyse.{setting}" in problems[-1].what


@pytest.mark.parametrize(
    ("media_type", "text"),
    [
        (
            RDF,
            OPEN
            + '<e:T e:q="<"><!-- <a> --><e:p><![CDATA[<br><p>]]></e:p><e:p rdf:resource="x"/></e:T>'.replace(
                'e:q="<"', 'e:q=">"'
            )
            * 3000
            + "</rdf:RDF>",
        ),
        (
            TTL,
            '<http://s> <http://p> "((([[[ \\" (", \'{{ "\', """ ( " \n [ """, <http://o(((> . # it\'s ((( \n'
            * 3000,
        ),
        (TTL, '<http://s> <http://p> "", \'\', ( 1 ), [ <http://p> "(" ] .' * 3000),
        (LD, "[" + '{"@id": "http://s", "http://p": "[[[{{{ \\" [["},' * 3000 + "{}]"),
    ],
)
def test_brackets_in_literals_and_comments_are_no_nesting(media_type, text):
    _, problems = read(text, media_type)
    assert problems == []


@pytest.mark.parametrize(
    ("media_type", "text"),
    [
        (RDF, OPEN + "<e:T>" + "<e:p><e:T>" * 400 + "</e:T></e:p>" * 400 + "</e:T></rdf:RDF>"),
        (TTL, "<http://s> <http://p> " + "[ <http://p> " * 900 + "1" + "]" * 900 + " ."),
        (LD, '{"http://p":' * 400 + "1" + "}" * 400),
    ],
)
def test_nesting_within_the_limits_is_read(media_type, text):
    quads, problems = read(text, media_type)
    assert (len(quads) >= 400, problems) == (True, [])


@pytest.mark.parametrize("media_type", [NT, NQ])
def test_a_line_of_triple_terms_nested_too_deep_is_left_out_and_the_others_are_read(media_type):
    good = '<http://s> <http://p> <<(<http://s> <http://p> <<( <http://s> <http://p> "1" )>>)>> .\n'
    deep = "<http://s> <http://p> " + TRIPLE_TERM * 20_000 + '"1"' + ")>>" * 20_000 + " .\n"
    quads, problems = read(good + deep + good.replace("1", "2"), media_type)
    assert quads == list(parse(good + good.replace("1", "2"), format=RdfFormat.N_QUADS))
    assert [(each.line, "triple terms" in each.what) for each in problems] == [(2, True)]


# JSON-LD


def test_json_ld_that_is_too_large_to_hold_is_streamed():
    node = '{"@id": "http://s", "p": "x"}'
    text = f'{{"@context": {{"p": "http://p"}}, "@graph": [{",".join([node] * 5000)}]}}'
    assert len(objects(text, LD, jsonld_bytes=10_000)) == 5000


def test_streamed_json_ld_may_begin_with_a_known_context():
    node = '{"@id": "http://s", "name": "x"}'
    text = f'{{"@context": "https://schema.org", "@graph": [{",".join([node] * 5000)}]}}'
    assert len(objects(text, LD, jsonld_bytes=10_000)) == 5000


def test_streamed_json_ld_ends_with_a_fault():
    good, bad = '{"@id": "http://s", "http://p": "x"}', '{"@id": "http://s", "@context": "http://c/"}'
    quads, [problem] = read(f"[{','.join([good] * 500 + [bad] + [good] * 500)}]", LD, jsonld_bytes=10_000)
    assert len(quads) == 500
    assert not unsaid(problem.what)


# Memory


def test_memory_does_not_grow_with_the_document():
    script = textwrap.dedent(
        """
        import io, resource
        from tamias.analyse.rdf.analyser import RdfAnalyser
        from tamias.model.document import Document
        from tamias.model.finding import Quads

        class Endless(io.RawIOBase):
            left = 50_000_000
            def readable(self):
                return True
            def readinto(self, buffer):
                line = b'<http://example.org/subject> <http://example.org/p> "some text of a literal" .\\n'
                size = min(len(buffer), self.left) // len(line) * len(line)
                buffer[:size] = line * (size // len(line))
                self.left -= size
                return size

        stream = io.BufferedReader(Endless(), 1 << 16)
        document = Document(url="http://x/", stream=stream, media_type="application/n-triples")
        findings = RdfAnalyser().analyse(document)
        next(findings)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        count = 1000 + sum(len(finding.quads) for finding in findings if isinstance(finding, Quads))
        print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    count, grown_kib = map(int, done.stdout.split())
    assert count > 600_000
    assert grown_kib < 8 * 1024


def test_a_problem_says_what_is_wrong():
    _, problems = read("<http://s> <http://p> .", NT)
    assert isinstance(problems[0], Problem)
    assert "object" in problems[0].what


def test_no_literal_is_normalised():
    quads, _ = read("<http://s> <http://p> 1.0, 01 .", TTL)
    assert [quad.object for quad in quads] == [
        Literal("1.0", datatype=quads[0].object.datatype),
        Literal("01", datatype=quads[1].object.datatype),
    ]

"""Of a bad document the good statements are kept, faults are told with their places, nothing is made up."""

import io
import random
import re

import pytest
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, serialize

from tamias.analyse.rdf.analyser import RdfAnalyser
from tamias.model.document import Document, TextPosition
from tamias.model.finding import Problem, Quads

NT, NQ, TTL, TRIG, RDF, N3 = (
    "application/n-triples",
    "application/n-quads",
    "text/turtle",
    "application/trig",
    "application/rdf+xml",
    "text/n3",
)
PREFIXES = {"d": "http://data.example/d/", "t": "http://data.example/terms/"}
OPEN = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'


def read(data, media_type):
    data = data.encode() if isinstance(data, str) else data
    document = Document(url="http://a.example/doc", stream=io.BytesIO(data), media_type=media_type)
    quads, problems = [], []
    for finding in RdfAnalyser().analyse(document):
        if isinstance(finding, Quads):
            quads += finding.quads
        elif not isinstance(finding, TextPosition):
            problems.append(finding)
    return quads, problems


def values(data, media_type):
    return [quad.object.value for quad in read(data, media_type)[0]]


# Damage by the hundred


def catalogue(graphs=False):
    """8,000 statements about 1,000 subjects."""
    source = random.Random(1)
    words = ["open", "data", "portal", "city", "water", "energy", "report", "annual", "table", "budget"]
    quads = []
    for number in range(1000):
        subject = NamedNode(f"http://data.example/d/{number:04}")
        graph = [NamedNode(f"http://data.example/g/{number // 100}")] if graphs else []
        for turn in range(4):
            title = Literal(" ".join(source.choices(words, k=5)), language="en")
            theme = NamedNode(f"http://data.example/theme/{source.randrange(1000, 9999)}")
            quads.append(Quad(subject, NamedNode(f"http://data.example/terms/title{turn}"), title, *graph))
            quads.append(Quad(subject, NamedNode(f"http://data.example/terms/theme{turn}"), theme, *graph))
    return quads


DAMAGE = {
    "a quote is lost": lambda line, _: line.replace('"', "", 1),
    "an angle bracket is lost": lambda line, _: line.replace(">", "", 1),
    "the end of the line is lost": lambda line, _: re.sub(r"(?:[.;]|</[^>]*>|/>)$", "", line),
    "a space stands in an IRI": lambda line, _: line.replace("example/", "exam ple/", 1),
    "words follow": lambda line, _: line + " words follow",
    "a control character stands in it": lambda line, at: (
        line[: at % len(line)] + "\x01" + line[at % len(line) :]
    ),
}
SYNTAXES = {
    NT: (RdfFormat.N_TRIPLES, 0.985),
    NQ: (RdfFormat.N_QUADS, 0.985),
    TTL: (RdfFormat.TURTLE, 0.97),
    TRIG: (RdfFormat.TRIG, 0.92),
    RDF: (RdfFormat.RDF_XML, 0.95),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("media_type", SYNTAXES)
def test_of_a_document_damaged_in_one_line_of_a_hundred(media_type, damage):
    syntax, least = SYNTAXES[media_type]
    good = catalogue(graphs=media_type in (NQ, TRIG))
    options = {} if media_type in (NT, NQ) else {"prefixes": PREFIXES}
    lines = serialize(good, format=syntax, **options).decode().splitlines()
    source = random.Random(7)
    for number in source.sample(range(5, len(lines) - 5), len(lines) // 100):
        if len(lines[number]) > 12:
            lines[number] = DAMAGE[damage](lines[number], source.randrange(1000))
    quads, problems = read("\n".join(lines), media_type)
    made_up = set(quads) - set(good)
    if damage == "a control character stands in it":  # of a literal it is a part
        made_up = {quad for quad in made_up if "\x01" not in getattr(quad.object, "value", "")}
    if damage == "a space stands in an IRI" and media_type == RDF:  # it is percent-encoded, and told
        made_up = {quad for quad in made_up if "exam%20ple" not in str(quad)}
    assert made_up == set()
    assert len(set(quads) & set(good)) >= least * len(good)
    assert problems


# Lines


def test_a_fault_has_its_line_and_column():
    _, [problem] = read('<http://s> <http://p> "1" .\n<http://s> <http://p> é .\n', NT)
    assert (problem.line, problem.column) == (2, 23)


def test_places_are_right_in_later_blocks():
    lines = [f'<http://s> <http://p> "{number}" .' for number in range(20_000)]
    lines[15_000] = "nonsense"
    _, [problem] = read("\n".join(lines), NT)
    assert problem.line == 15_001


def test_a_statement_with_an_iri_that_cannot_be_said_is_left_out():
    quads, [problem] = read('<http://s> <http://p> "1" .\n<http://s d> <http://p> "2" .\n', NT)
    assert ([quad.object.value for quad in quads], problem.line) == (["1"], 2)


def test_a_statement_with_an_iri_that_is_only_odd_is_kept_and_told():
    quads, [problem] = read('<http://s/%zz> <http://p> "1" .\n', NT)
    assert quads[0].subject.value == "http://s/%zz"
    assert problem.what.endswith("kept as it stands")


def test_a_line_without_end_is_left_out_and_the_next_is_read():
    data = b'<http://s> <http://p> "' + b"x" * (5 << 20) + b'" .\n<http://s> <http://p> "2" .\n'
    quads, [problem] = read(data, NT)
    assert [quad.object.value for quad in quads] == ["2"]
    assert "4194304 bytes" in problem.what


# Turtle

HEAD = "@prefix : <http://e/> .\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (':s :p "1" ; :q oops ; :r "3" .\n:t :p "4" .', ["1", "3", "4"]),
        (':s :p "1" ; :q "2 ; :r "3" .\n:t :p "4" .', ["1", "4"]),
        (':s :p "1" ; :q "2 ;\n  :r "3" .\n:t :p "4" .', ["1", "4"]),
        (':s :p "1" ; :q "2"\n:t :p "3" ; :r "4" .\n:u :p "5" .', ["1", "3", "4", "5"]),
        (':s :p "1" ; :q "2" :t :p "3" ; :r "4" .\n:u :p "5" .', ["1", "5"]),
        ('oops :p "1" ; :q "2" .\n:t :p "4" .', ["4"]),
        (':p "1" ; :q "2" .\n:t :p "4" .', ["4"]),
        ('[] :p "1" ; :q oops .\n:t :p "4" .', ["4"]),
        (':s :p [ :q "1" ; :r "2" .\n:t :p "4" .', ["4"]),
        (':s :p "1" ; :q [ :r oops ] ; :u "3" .\n:t :p "4" .', ["1", "4"]),
        (':s :p "1" .\n<http://s :p "2" .\n:t :p "4" .', ["1", "4"]),
        (':s :p """a .\n:x :y "no" .""" ; :q oops .\n:t :p "4" .', ['a .\n:x :y "no" .', "4"]),
        (':s :p "1" ; :q "2', ["1"]),
        (':s :p "1" ; :q <http://o/1', ["1"]),
        (':s :p "1" ; :q :o', ["1"]),
        (':s :p "a\nb" .\n:t :p "4" .', ["a\nb", "4"]),
    ],
)
def test_turtle_keeps_what_is_beyond_doubt(text, expected):
    quads, problems = read(HEAD + text, TTL)
    assert [quad.object.value for quad in quads] == expected
    assert problems


def test_what_follows_a_lost_dot_never_gets_the_subject_before_it():
    quads, _ = read(HEAD + ':a :p "1" ; :q "2" :b :p "3" ; :q "4" .', TTL)
    assert [str(quad) for quad in quads] == ['<http://e/a> <http://e/p> "1"']


def test_prefixes_after_a_statement_without_end_are_read():
    text = HEAD + ':s :p "1"\n@prefix : <http://f/> .\n:s :p "2" .'
    assert [str(quad) for quad in read(text, TTL)[0]] == ['<http://f/s> <http://f/p> "2"']


@pytest.mark.parametrize(
    "directive", ["@prefix n: <http://n/> .", "PREFIX n: <http://n/>", "prefix n: <http://n/>"]
)
def test_prefixes_hold_for_later_blocks(directive):
    text = directive + "\n" + 'n:s n:p "some text of some length" .\n' * 10_000
    assert len(read(text, TTL)[0]) == 10_000


def test_the_base_holds_for_later_blocks():
    text = "@base <http://b/> .\n" + '<s> <p> "some text of some length" .\n' * 10_000
    assert {quad.subject.value for quad in read(text, TTL)[0]} == {"http://b/s"}


def test_a_statement_larger_than_any_block_is_read():
    text = (
        HEAD + ":s :p\n" + " ,\n".join(f"<http://o/{number}>" for number in range(300_000)) + " .\n:t :p 1 ."
    )
    quads, problems = read(text, TTL)
    assert (len(quads), problems) == (300_001, [])


def test_a_literal_with_what_looks_like_the_end_of_a_statement_is_read():
    text = HEAD + ':s :p """' + "line .\n" * 20_000 + '""" .\n:t :p "4" .'
    assert (len(values(text, TTL)), read(text, TTL)[1]) == (2, [])


def test_blank_nodes_with_a_label_are_the_same_in_all_blocks():
    text = HEAD + '_:b :p "some text of some length" .\n' * 10_000
    assert {quad.subject.value for quad in read(text, TTL)[0]} == {"b"}


# TriG


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (':g { :s :p "1" . :s :p oops . :s :p "3" }\n:h { :s :p "4" }', ["g1", "g3", "h4"]),
        (':g { :s :p "1" .\n:h { :s :p "4" }', ["g1", "h4"]),
        (':g { :s :p "1" .\n:s :p "2"\n:h { :s :p "4" }', ["g1"]),
        (':f { :s :p "0" }\n:g :s :p "1" .\n:s :p "2" . }\n:h { :s :p "4" }', ["f0", "h4"]),
        (':g { :s :p "1" . } :s :p "2" . }\n:h { :s :p "4" }', ["g1", "h4"]),
        ('GRAPH :g { :s :p "1" ; :q oops ; :r "3" }\n:s :p "4" .', ["g1", "g3", "4"]),
        ('{ :s :p "1" . oops }', ["1"]),
        (':g { :s :p "1" . :s :p "2', ["g1"]),
        ('<http://g { :s :p "1" }\n:h { :s :p "4" }', ["h4"]),
        ('[] { :s :p "1" . oops }\n:h { :s :p "4" }', ["h4"]),
    ],
)
def test_trig_never_moves_a_statement_to_another_graph(text, expected):
    quads, problems = read(HEAD + text, TRIG)
    names = [getattr(quad.graph_name, "value", "").removeprefix("http://e/") for quad in quads]
    assert [name + quad.object.value for name, quad in zip(names, quads, strict=True)] == expected
    assert problems


# RDF/XML


def node(about, *properties):
    return f'<e:T rdf:about="http://{about}">\n' + "\n".join(properties) + "\n</e:T>\n"


TYPE = "http://e/T"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (node("s", "<e:p>1</e:p>", "<e:q>a & b</e:q>", "<e:r>3</e:r>") + node("t", "<e:p>4</e:p>"), "1 3 4"),
        (node("s", "<e:p>1</e:p>", "<e:q>2", "<e:r>3</e:r>") + node("t", "<e:p>4</e:p>"), "1 3 4"),
        (node("s", "<e:p>1</e:p>", '<e:q e:x="2/>', "<e:r>3</e:r>") + node("t", "<e:p>4</e:p>"), "1 3 4"),
        (node("s", "<e:p>1</e:p>").replace("</e:T>", "") + node("t", "<e:p>4</e:p>"), "1 4"),
        ("<e:p>1</e:p><e:q rdf:nodeID='b'/></e:T>" + node("t", "<e:p>4</e:p>"), "4"),
        ("<e:T><e:p>1</e:p><e:q>a & b</e:q></e:T>" + node("t", "<e:p>4</e:p>"), "4"),
        ('<rdf:Seq rdf:about="http://s"><rdf:li>1</rdf:li><rdf:li>a & b</rdf:li></rdf:Seq>', ""),
        (node("s", "<x:p>1</x:p>", "<e:q>2</e:q>"), "2"),
    ],
)
def test_rdf_xml_keeps_whole_nodes_and_whole_properties(text, expected):
    quads, problems = read(f"{OPEN}\n{text}</rdf:RDF>", RDF)
    assert [quad.object.value for quad in quads if quad.object.value != TYPE] == expected.split()
    assert problems


def test_a_property_never_gets_another_subject_because_an_end_is_lost():
    text = node("s", "<e:p>1</e:p>").replace("</e:T>", "") + node("t", "<e:p>4</e:p>")
    quads, _ = read(f"{OPEN}{text}</rdf:RDF>", RDF)
    assert {(quad.subject.value, quad.object.value) for quad in quads if quad.object.value != TYPE} == {
        ("http://s", "1"),
        ("http://t", "4"),
    }


def test_a_bad_node_is_told_with_its_place():
    text = f"{OPEN}\n{node('s', '<e:p>1</e:p>')}  {node('t', '<e:p>a & b</e:p>')}</rdf:RDF>"
    _, problems = read(text, RDF)
    assert [(problem.line, problem.column) for problem in problems] == [(5, 3)]


def test_a_fault_between_the_nodes_is_told():
    quads, problems = read(f"{OPEN}{node('s', '<e:p>1</e:p>')}text{node('t', '<e:p>4</e:p>')}</rdf:RDF>", RDF)
    assert (len(quads), len(problems)) == (4, 1)


def test_entities_hold_for_the_nodes_of_a_bad_document():
    nodes = node("s", "<e:p>&n;1</e:p>") + node("t", "<e:p>a & b</e:p>")
    text = f'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [<!ENTITY n "http://n/">]>\n{OPEN}{nodes}</rdf:RDF>'
    assert "http://n/1" in values(text, RDF)


# N3


def test_of_n3_with_rules_the_data_is_read_and_each_rule_told():
    text = HEAD + ':s :p "1" .\n{ ?x :p ?y . } => { ?x :q ?y } .\n:s :p "2" .\n@forAll :x .\n:s :p "3" .'
    quads, problems = read(text, N3)
    assert [quad.object.value for quad in quads] == ["1", "2", "3"]
    assert [problem.line for problem in problems] == [3, 5]


def test_what_a_formula_says_is_not_said_by_the_document():
    quads, problems = read(HEAD + ':me :says { :s :p "1" } .', N3)
    assert (quads, len(problems)) == ([], 1)


def test_the_empty_prefix_of_n3_is_the_document_itself():
    [quad], problems = read(':s :p "1" .', N3)
    assert (quad.subject.value, problems) == ("http://a.example/doc#s", [])


# What would take long


@pytest.mark.parametrize("media_type", [TTL, TRIG, N3])
@pytest.mark.parametrize(
    "text",
    [
        '"' * 300_000,
        '"""' * 100_000,
        "<" * 300_000,
        "{ " * 900,
        "# \n" * 100_000 + "x {",
        "\\" * 300_001,
        "a:b " * 90_000,
    ],
)
def test_faults_are_found_in_linear_time(media_type, text):
    read(f"oops {text}", media_type)


@pytest.mark.parametrize(
    "text", ["<a " * 100_000, '<a b="' * 100_000, "<!--" * 100_000, "</a>" * 100_000, "<a>" * 900]
)
def test_faults_of_xml_are_found_in_linear_time(text):
    read(f"{OPEN}{text}", RDF)


def test_statements_after_a_base_that_is_no_iri_are_still_read():
    text = b'@base <http://e/%z> .\n<http://e/s> <http://e/p> "x" .\n<http://e/s> <http://e/p> <relative> .\n'
    document = Document(url="http://e/", stream=io.BytesIO(text), media_type="text/turtle")
    findings = list(RdfAnalyser().analyse(document))
    quads = [quad for finding in findings if isinstance(finding, Quads) for quad in finding.quads]
    assert [str(quad.object) for quad in quads] == ['"x"']
    assert len([finding for finding in findings if isinstance(finding, Problem)]) == 2

import hashlib
import subprocess
import sys
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    RdfFormat,
    Triple,
    parse,
)

from tamias.sinks.segments import naming
from tamias.sinks.segments.naming import Graphs, Naming

DOCUMENT = "http://example.org/data"
DIGEST = hashlib.sha256(b"").hexdigest()
TURTLE = b"@prefix : <http://example.org/> . "


def named(text, syntax=RdfFormat.TURTLE, url=DOCUMENT, digest=DIGEST, lenient=False, **options):
    return Naming(url, digest, **options).nquads(list(parse(text, format=syntax, lenient=lenient)))


def quads(text):
    return list(parse(text, format=RdfFormat.N_QUADS))


def graphs(*names, url=DOCUMENT, **options):
    text = b"".join(f"<http://e/s> <http://e/p> <http://e/o> {name} .\n".encode() for name in names)
    return [quad.graph_name.value for quad in quads(named(text, RdfFormat.N_QUADS, url=url, **options))]


class TestGraphs:
    def test_a_plain_triple_goes_to_the_graph_of_its_document(self):
        assert named(TURTLE + b":s :p :o .") == (
            b"<http://example.org/s> <http://example.org/p> <http://example.org/o> "
            b"<http://example.org/data> .\n"
        )

    @pytest.mark.parametrize(
        "name",
        [
            "http://example.org/other",
            "https://example.org/other",
            "https://EXAMPLE.org:443/other",
            "http://example.org:80/",
            "http://me@example.org/x",
        ],
    )
    def test_a_name_of_the_documents_own_site_is_kept(self, name):
        assert graphs(f"<{name}>") == [name]

    @pytest.mark.parametrize(
        ("name", "encoded"),
        [
            ("http://stranger.org/", "http%3A%2F%2Fstranger.org%2F"),
            ("http://www.example.org/", "http%3A%2F%2Fwww.example.org%2F"),
            ("http://example.org:8080/", "http%3A%2F%2Fexample.org%3A8080%2F"),
            ("http://example.org@stranger.org/", "http%3A%2F%2Fexample.org%40stranger.org%2F"),
            ("http://example.org.stranger.org/#é", "http%3A%2F%2Fexample.org.stranger.org%2F%23%C3%A9"),
            ("urn:x:y", "urn%3Ax%3Ay"),
            ("urn:tamias:metadata", "urn%3Atamias%3Ametadata"),
        ],
    )
    def test_a_strangers_name_becomes_part_of_the_documents(self, name, encoded):
        assert graphs(f"<{name}>") == [f"{DOCUMENT}#graph={encoded}"]

    def test_a_renamed_graph_is_on_record(self):
        names = Naming(DOCUMENT, DIGEST)
        names.nquads(quads(b"<http://e/s> <http://e/p> <http://e/o> <urn:x:y> .\n"))
        assert names.renamed == {"urn:x:y": f"{DOCUMENT}#graph=urn%3Ax%3Ay"}

    def test_the_record_of_renamed_graphs_is_bounded(self, monkeypatch):
        monkeypatch.setattr(naming, "MAX_RENAMED", 3)
        names = Naming(DOCUMENT, DIGEST)
        names.nquads([Quad(*[NamedNode("urn:x")] * 3, NamedNode(f"urn:x:{n}")) for n in range(9)])
        assert list(names.renamed) == ["urn:x:0", "urn:x:1", "urn:x:2"]

    def test_more_graphs_than_are_kept_at_hand_are_named_rightly(self, monkeypatch):
        monkeypatch.setattr(naming, "_MAX_GRAPHS_AT_HAND", 3)
        names = [f"http://example.org/{n % 7}" for n in range(50)]
        assert graphs(*(f"<{name}>" for name in names)) == names

    def test_with_all_a_strangers_name_is_kept(self):
        assert graphs("<http://stranger.org/>", graphs=Graphs.ALL) == ["http://stranger.org/"]

    @pytest.mark.parametrize("name", ["urn:tamias:metadata", "URN:Tamias:other"])
    def test_even_with_all_nobody_writes_into_tamias_own_space(self, name):
        assert graphs(f"<{name}>", graphs=Graphs.ALL)[0].startswith(DOCUMENT + "#graph=")

    def test_without_a_host_only_the_documents_own_name_is_kept(self):
        url = "file:///data/a.nq"
        assert graphs(f"<{url}#g>", "<file:///data/b.nq>", url=url) == [
            f"{url}#g",
            f"{url}#graph=file%3A%2F%2F%2Fdata%2Fb.nq",
        ]

    def test_a_blank_graph_name_becomes_an_iri_with_the_label_of_its_node(self):
        (quad,) = quads(named(b"_:g <http://e/p> <http://e/o> _:g .\n", RdfFormat.N_QUADS))
        assert quad.graph_name == NamedNode(f"{DOCUMENT}#graph=_:{quad.subject.value}")

    def test_a_url_that_is_no_iri_is_escaped_in_the_name(self):
        assert graphs("", url="http://example.org/?a[]={b}|%") == [
            "http://example.org/?a%5B%5D=%7Bb%7D%7C%25"
        ]


class TestBlankNodes:
    def test_labels_are_kept_behind_a_prefix_of_the_document(self):
        (quad,) = quads(named(b"_:a <http://e/p> _:b.c .", RdfFormat.N_TRIPLES))
        prefix = quad.subject.value.removesuffix("na")
        assert (len(prefix), quad.object.value) == (33, prefix + "nb.c")

    @pytest.mark.parametrize(
        ("url", "digest", "member"),
        [(DOCUMENT + "2", DIGEST, None), (DOCUMENT, "0" * 64, None), (DOCUMENT, DIGEST, "a.ttl")],
    )
    def test_two_documents_share_no_blank_node(self, url, digest, member):
        text = b"_:a <http://e/p> [] ."
        nodes = [
            {term for quad in quads(lines) for term in (quad.subject, quad.object)}
            for lines in (named(text), named(text, url=url, digest=digest, member=member))
        ]
        assert nodes[0].isdisjoint(nodes[1])

    @pytest.mark.parametrize(
        ("syntax", "text"),
        [
            (RdfFormat.TURTLE, TURTLE + b"_:a :p [ :q _:b, [ :r (1 2 [] ) ] ] . [] :p _:a ."),
            (RdfFormat.TURTLE, TURTLE + b":s :p :o {| :q [] |} . :s :p <<( _:a :p _:b )>> ."),
            (RdfFormat.TRIG, TURTLE + b"_:g { _:a :p [ :q _:b ] } [] { :s :p _:a, [] }"),
            (RdfFormat.N3, TURTLE + b"_:a :p [ :q _:b ] . [] :p (1 2) ."),
            (RdfFormat.N_QUADS, b"_:a <http://e/p> _:b _:g .\n"),
            (
                RdfFormat.JSON_LD,
                b'[{"@id":"_:a","http://e/p":[{"http://e/q":{"@id":"_:b"}},{"@list":[1,{}]}]},'
                b'{"@graph":[{"@id":"_:a","http://e/z":{"http://e/y":1}}]}]',
            ),
            (
                RdfFormat.RDF_XML,
                b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
                b'<rdf:Description rdf:nodeID="a"><e:p rdf:parseType="Resource"><e:q rdf:nodeID="b"/></e:p>'
                b'<e:l rdf:parseType="Collection"><e:T/><e:T/></e:l></rdf:Description></rdf:RDF>',
            ),
        ],
    )
    def test_two_runs_give_the_same_quads(self, syntax, text):
        assert named(text, syntax) == named(text, syntax)

    def test_another_process_gives_the_same_quads(self):
        program = (
            "import sys; from pyoxigraph import *; from tamias.sinks.segments.naming import Naming\n"
            "text = sys.stdin.buffer.read(); quads = list(parse(text, format=RdfFormat.TURTLE))\n"
            f"sys.stdout.buffer.write(Naming({DOCUMENT!r}, {DIGEST!r}).nquads(quads))"
        )
        text = TURTLE + b"_:a :p [ :q [] ], [ :q _:a ] ."
        process = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, check=True)
        assert process.stdout == named(text)

    def test_the_batches_of_a_document_make_no_difference(self):
        whole = list(parse(TURTLE + b"_:a :p [ :q [ :r [] ] ], ([] []) .", format=RdfFormat.TURTLE))
        names = Naming(DOCUMENT, DIGEST)
        assert b"".join(names.nquads([quad]) for quad in whole) == Naming(DOCUMENT, DIGEST).nquads(whole)

    def test_the_graph_stays_the_same_but_for_the_labels(self):
        text = TURTLE + b"_:a :p [ :q _:b, [ :r (1 2 []) ] ] . _:b :p _:a, '_:a', <urn:_:x> ."
        before = list(parse(text, format=RdfFormat.TURTLE, base_iri="http://example.org/"))
        after = [quad.triple for quad in quads(Naming(DOCUMENT, DIGEST).nquads(before))]
        assert canonical(after) == canonical([quad.triple for quad in before])

    def test_beyond_the_limit_a_node_without_label_still_is_one_node(self, monkeypatch):
        monkeypatch.setattr(naming, "MAX_NUMBERED", 2)
        before = list(
            parse(TURTLE + b":s :p [ :q 1, 2 ], [ :q 3, 4 ], [ :q 5, 6 ] .", format=RdfFormat.TURTLE)
        )
        after = [quad.triple for quad in quads(Naming(DOCUMENT, DIGEST).nquads(before))]
        assert canonical(after) == canonical([quad.triple for quad in before])

    def test_blank_nodes_inside_triple_terms_are_the_same_as_outside(self):
        text = TURTLE + b"_:a :p <<( _:a :p <<( _:b :p '<<( _:c :p' )>> )>> ."
        quad = quads(named(text))[-1]
        assert quad.object.subject == quad.subject
        assert quad.object.object.object == Literal("<<( _:c :p")


class TestHostileTerms:
    @pytest.mark.parametrize(
        "iri",
        [
            "http://e/a> <http://e/p> <http://e/o> <urn:tamias:metadata> . #",
            "http://e/a> <http://e/p> <http://e/o> <urn:tamias:metadata> .\n<http://e/b",
            "http://e/a> <http://e/p> <http://e/o> .\n<http://e/b",
            "http://e/a> <urn:tamias:metadata",
            "http://e/a .\nb",
            "http://e/a b",
            "http://e/a\n",
            "http://e/\\",
            "relative",
        ],
    )
    @pytest.mark.parametrize(
        "statement", ["<%s> <http://e/p> 1 .", "<http://e/s> <http://e/p> '1'^^<%s> .", "<urn:s> <%s> 1 ."]
    )
    def test_a_statement_that_cannot_be_said_is_left_out_and_counted(self, iri, statement):
        (bad,) = parse((statement % escaped(iri)).encode(), format=RdfFormat.TURTLE, lenient=True)
        names = Naming(DOCUMENT, DIGEST)
        good = Quad(NamedNode("http://e/good"), NamedNode("http://e/p"), Literal("good"))
        (kept,) = quads(names.nquads([good, bad]))
        assert (kept.subject, names.left_out) == (good.subject, 1)

    @pytest.mark.parametrize("tag", ["en &lt;urn:tamias:metadata&gt;", "en-", "en .&#10;x", "e n", "en--up"])
    def test_a_statement_with_a_broken_language_tag_is_left_out(self, tag):
        text = (
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
            f'<rdf:Description rdf:about="http://e/a"><e:p xml:lang="{tag}">x</e:p>'
            "</rdf:Description></rdf:RDF>"
        )
        assert named(text, RdfFormat.RDF_XML, lenient=True) == b""

    def test_a_datatype_cannot_smuggle_a_graph_name_into_quads(self):
        smuggling = rb"<urn:s> <urn:p> '1'^^<urn:d\u003E\u0020\u003Curn:tamias:metadata> . "
        lines = named(smuggling + b"<urn:g> { <urn:s> <urn:p> 1 }", RdfFormat.TRIG, lenient=True)
        assert {quad.graph_name.value.partition("#")[0] for quad in quads(lines)} == {DOCUMENT}


def canonical(triples):
    dataset = Dataset(Quad(*triple, DefaultGraph()) for triple in triples)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
IRIS = st.sampled_from(["http://e/a", "http://e/_:a", "urn:x:é", "http://e/'%20?q=._:b#_:c"]).map(NamedNode)
LITERALS = st.one_of(
    TEXT.map(Literal),
    st.builds(Literal, TEXT, language=st.sampled_from(["en", "de-at"])),
    st.builds(Literal, TEXT, datatype=IRIS),
    st.sampled_from(["_:a", ' _:a .\n_:b <x> "', "<<( _:a", "\\", '\\"', " .\n"]).map(Literal),
)
TRIPLES = st.recursive(
    st.builds(Triple, IRIS, IRIS, st.one_of(IRIS, LITERALS)),
    lambda inner: st.builds(Triple, IRIS, IRIS, inner),
    max_leaves=4,
)
STATEMENTS = st.lists(TRIPLES, max_size=5)


@given(STATEMENTS)
def test_without_blank_nodes_every_term_comes_back_as_it_was(triples):
    before = [Quad(*triple, DefaultGraph()) for triple in triples]
    after = quads(Naming(DOCUMENT, DIGEST).nquads(before))
    assert [quad.triple for quad in after] == triples
    assert {quad.graph_name.value for quad in after} <= {DOCUMENT}


@given(STATEMENTS, st.sampled_from(["http://example.org/g", "urn:tamias:x"]))
def test_named_graphs_leave_every_term_as_it_was(triples, graph):
    before = [Quad(*triple, NamedNode(graph)) for triple in triples]
    assert [quad.triple for quad in quads(Naming(DOCUMENT, DIGEST).nquads(before))] == triples


def escaped(text):
    return "".join(f"\\u{ord(char):04X}" for char in text)


PIECES = [
    "urn:a",
    "<",
    ">",
    "> <",
    '"',
    '"^^<',
    " ",
    " .",
    " .\n",
    "\n",
    "_:a",
    "@en",
    "#",
    "\\",
    "<<( ",
    " )>>",
    "é",
]
WILD_IRIS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join)


@given(st.lists(st.tuples(WILD_IRIS, WILD_IRIS, WILD_IRIS, st.none() | WILD_IRIS), max_size=4))
def test_whatever_a_lenient_parser_lets_through_no_line_says_anything_else(wild):
    statements = [
        f"<{escaped(s)}> <{escaped(p)}> 'x'^^<{escaped(o)}> {f'<{escaped(g)}>' if g else ''} ."
        for s, p, o, g in wild
    ]
    before = list(parse("\n".join(statements).replace("'", '"'), format=RdfFormat.N_QUADS, lenient=True))
    names = Naming(DOCUMENT, DIGEST)
    after = list(parse(names.nquads(before), format=RdfFormat.N_QUADS, lenient=True))
    assert len(after) == len(before) - names.left_out
    assert {quad.triple for quad in after} <= {quad.triple for quad in before}
    assert {quad.graph_name.value.partition("#")[0] for quad in after} <= {DOCUMENT}


@given(LITERALS, st.sampled_from(["a", "a.b", "é", "0", "f" * 32, "_"]))
def test_only_blank_nodes_are_relabelled(literal, label):
    node = BlankNode(label)
    before = [Quad(node, NamedNode("urn:p"), literal), Quad(NamedNode("urn:s"), NamedNode("urn:p"), node)]
    first, second = quads(Naming(DOCUMENT, DIGEST).nquads(before))
    assert (first.object, second.subject) == (literal, NamedNode("urn:s"))
    assert first.subject == second.object != node


def test_the_w3c_turtle_suite_comes_through_unchanged_but_for_labels(suites):
    checked = 0
    for path in sorted(suites("w3c-rdf-tests").rglob("*.nt")):
        try:
            before = list(parse(BytesIO(path.read_bytes()), format=RdfFormat.N_TRIPLES))
        except SyntaxError:
            continue
        after = [quad.triple for quad in quads(Naming(DOCUMENT, DIGEST).nquads(before))]
        assert canonical(after) == canonical([quad.triple for quad in before]), path
        checked += 1
    assert checked

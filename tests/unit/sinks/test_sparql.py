import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Store, serialize

from tamias.features.graph_stores.sparql_sink import CREDENTIALS, SparqlStore, batches, drop, insert
from tamias.model.errors import ConfigError
from tamias.plugins import load
from tamias.service_client import Credentials, credentials
from tamias.sinks.delivery import Surroundings, split_sink
from tests.examples import examples

GRAPH = "http://e/g"


def ground(number):
    return b"<http://e/s%d> <http://e/p> <http://e/o> .\n" % number


def link(one, other):
    return b"_:%b <http://e/p> _:%b .\n" % (one, other)


class TestText:
    @settings(max_examples=examples(300))
    @given(
        st.text(st.characters(blacklist_categories=["Cs"])) | st.text("\\uU0041\"'\n\r{}<>_:", max_size=20)
    )
    def test_every_literal_arrives_as_it_was(self, text):
        quad = Quad(NamedNode("http://e/s"), NamedNode("http://e/p"), Literal(text), NamedNode(GRAPH))
        triples = serialize([quad.triple], format=RdfFormat.N_TRIPLES)
        store = Store()
        store.update(insert(GRAPH, [triples]).decode())
        assert list(store) == [quad]

    def test_an_escaped_quotation_mark_does_not_end_the_literal(self):
        evil = rb'<http://e/s> <http://e/p> "\u0022 } } ; DROP ALL ; INSERT DATA { GRAPH <http://e/g> { #" .'
        store = Store()
        store.update(insert(GRAPH, [evil + b"\n"]).decode())
        assert len(store) == 1

    @pytest.mark.parametrize(
        "name", ["http://e/> { } } ; DROP ALL #", "no-iri", "http://e/ x", "http://e/\\u003e"]
    )
    def test_a_name_that_is_no_iri_never_gets_into_an_update(self, name):
        with pytest.raises(ValueError, match="not an IRI"):
            drop(name)


class TestBatches:
    def test_lines_are_cut_into_portions_of_the_size(self):
        lines = [ground(number) for number in range(100)]
        portions = list(batches([b"".join(lines)], 10 * len(lines[0])))
        assert [line for portion in portions for line in portion] == lines
        assert max(sum(map(len, portion)) for portion in portions) <= 10 * len(lines[-1])

    def test_triples_that_share_a_blank_node_are_never_parted(self):
        knots = [[link(b"k%da%d" % (k, n), b"k%da%d" % (k, n + 1)) for n in range(5)] for k in range(20)]
        mixed = [knots[k][n] for n in range(5) for k in range(20)]
        portions = list(batches([b"".join(mixed)], 300))
        homes = {}
        for place, portion in enumerate(portions):
            for label in re.findall(rb"_:(\w+)", b"".join(portion)):
                assert homes.setdefault(label, place) == place
        assert sorted(line for portion in portions for line in portion) == sorted(mixed)

    def test_a_literal_or_iri_that_looks_like_a_blank_node_is_none(self):
        lines = [
            b'<http://e/s> <http://e/p> "_:a \\" _:b" .\n',
            b"<http://e/_:a> <http://e/p> <x:_:a> .\n",
        ]
        assert len(list(batches(lines, 1))) == 2

    def test_a_long_chain_of_blank_nodes_is_one_portion(self):
        chain = [link(b"n%d" % n, b"n%d" % (n + 1)) for n in range(20_000)]
        assert [len(portion) for portion in batches(chain, 1000)] == [20_000]

    def test_an_empty_graph_has_no_portions(self):
        assert list(batches([], 10)) == []


class TestCredentials:
    def test_a_user_and_a_password_come_from_the_environment(self):
        assert credentials(CREDENTIALS, {CREDENTIALS: "me:a:b"}) == Credentials(user="me", password="a:b")

    def test_a_token_has_no_colon(self):
        assert credentials(CREDENTIALS, {CREDENTIALS: "secret"}) == Credentials(token="secret")

    def test_they_come_from_a_file_as_well(self, tmp_path):
        (tmp_path / "secret").write_text("me:pass\n")
        assert credentials(CREDENTIALS, {CREDENTIALS + "_FILE": str(tmp_path / "secret")}) == Credentials(
            user="me", password="pass"
        )

    def test_a_file_that_is_not_there_is_told(self, tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            credentials(CREDENTIALS, {CREDENTIALS + "_FILE": str(tmp_path / "none")})

    def test_there_may_be_none(self):
        assert credentials(CREDENTIALS, {}) is None

    def test_they_are_never_shown(self):
        assert "secret" not in repr(Credentials(user="u", password="secret", token="secret"))

    def test_a_line_break_cannot_forge_a_header(self):
        with pytest.raises(ConfigError):
            credentials(CREDENTIALS, {CREDENTIALS: "token\r\nHost: evil"})


@pytest.mark.parametrize("url", ["ftp://e/", "nonsense", "http://", "file:///etc/passwd"])
def test_an_address_that_is_no_server_is_refused(url):
    with pytest.raises(ConfigError, match="sparql:"):
        SparqlStore(url)


def test_a_password_in_the_address_is_refused_and_not_repeated():
    with pytest.raises(ConfigError) as error:
        SparqlStore("http://me:hush@e/")
    assert "hush" not in str(error.value)


@pytest.mark.parametrize("text", ["sparql", "sparql:", "sparql:http://me:hush@e/"])
def test_a_sink_that_cannot_be_kept_by_its_name_is_refused_before_it_is_kept(text):
    with pytest.raises(ConfigError) as error:
        split_sink(text)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "folder"), [("turtle-files", "turtle"), ("hdt-files", "hdt"), ("turtle-files:OUT", "out")]
)
def test_a_sink_of_files_is_made_from_its_name(tmp_path, name, folder):
    around = Surroundings(data=tmp_path, session=None, sink=1, read=None)
    word, target = split_sink(name.replace("OUT", str(tmp_path / "out")))
    sink = load("graph_sinks", word)(target, around)
    sink.close()
    assert [each.name for each in tmp_path.iterdir()] == [folder]

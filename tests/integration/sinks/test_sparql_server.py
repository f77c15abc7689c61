"""The sparql: sink against a real server, and against one that answers badly."""

import base64

import pytest
from pyoxigraph import RdfFormat, Store, parse

from tamias.features.graph_stores.sparql_sink import SparqlStore
from tamias.model.errors import ConfigError
from tamias.service_client import Credentials
from tamias.sinks.delivery import DocumentRefused, SinkAway, SinkStumbled

GRAPH, OTHER = "http://example.org/doc", "http://example.org/é#graph=http%3A%2F%2Fx"
TRIPLES = (
    b'<http://e/s> <http://e/p> "a \\"quoted\\" C:\\\\u0041 \\n line" .\n'
    b"<http://e/s> <http://e/p> _:x .\n"
    b"_:x <http://e/p> <http://e/o> .\n"
)
MANY = b"".join(
    b'<http://e/s%d> <http://e/p> "%d" .\n_:b%d <http://e/n> "%d" .\n_:b%d <http://e/p> _:b%d .\n'
    % (n, n, n, n, n, n // 2)
    for n in range(2000)
)


def beat():
    pass


def triples(text=TRIPLES):
    return lambda: iter([text])


def in_graph(text, graph):
    return text.replace(b" .\n", f" <{graph}> .\n".encode())


@pytest.fixture(params=["store", "update"])
def store(request, sparql_server):
    """By the Graph Store Protocol, and by SPARQL Update in many small requests."""
    store = SparqlStore(f"{sparql_server.url}/{request.param}", batch_bytes=2000)
    yield store
    store.close()


class TestRealServer:
    def test_a_graph_arrives_as_it_was(self, store, sparql_server, comparable):
        store.replace(GRAPH, triples(), beat)
        assert sparql_server.content() == comparable(in_graph(TRIPLES, GRAPH))

    def test_a_large_graph_with_blank_nodes_arrives_as_it_was(self, store, sparql_server, comparable):
        store.replace(GRAPH, triples(MANY), beat)
        assert sparql_server.content() == comparable(in_graph(MANY, GRAPH))

    def test_a_graph_delivered_twice_is_there_once(self, store, sparql_server, comparable):
        store.replace(GRAPH, triples(), beat)
        store.replace(GRAPH, triples(), beat)
        assert sparql_server.content() == comparable(in_graph(TRIPLES, GRAPH))

    def test_a_graph_is_replaced_and_no_other(self, store, sparql_server, comparable):
        new = b"<http://e/new> <http://e/p> <http://e/o> .\n"
        store.replace(OTHER, triples(), beat)
        store.replace(GRAPH, triples(), beat)
        store.replace(GRAPH, triples(new), beat)
        assert sparql_server.content() == comparable(in_graph(TRIPLES, OTHER) + in_graph(new, GRAPH))

    def test_a_graph_is_removed_and_no_other(self, store, sparql_server, comparable):
        store.replace(OTHER, triples(), beat)
        store.replace(GRAPH, triples(), beat)
        store.remove(GRAPH, beat)
        assert sparql_server.content() == comparable(in_graph(TRIPLES, OTHER))

    def test_a_graph_that_is_not_there_can_be_removed(self, store, sparql_server):
        store.remove(GRAPH, beat)
        assert sparql_server.content() == set()

    def test_finding_out_how_to_write_leaves_nothing_behind(self, store, sparql_server):
        store.connect()
        assert sparql_server.content() == set()

    def test_what_the_server_cannot_read_is_refused(self, store):
        with pytest.raises(DocumentRefused, match="400"):
            store.replace(GRAPH, triples(b"<http://e/s> <http://e/p> <http://e/o o> .\n"), beat)

    def test_a_server_that_is_away_is_told(self, store, sparql_server):
        store.replace(GRAPH, triples(), beat)
        sparql_server.kill()
        with pytest.raises(SinkAway, match="does not answer"):
            store.replace(GRAPH, triples(), beat)

    def test_a_server_that_came_back_is_used_again(self, store, sparql_server):
        store.replace(GRAPH, triples(), beat)
        sparql_server.kill()
        sparql_server.start()
        store.replace(OTHER, triples(), beat)
        assert len(sparql_server.content()) == 6


def test_an_address_that_takes_nothing_is_a_mistake_of_configuration(sparql_server):
    with pytest.raises(ConfigError, match="takes neither"):
        SparqlStore(f"{sparql_server.url}/nowhere").connect()


class TestBadAnswers:
    def store(self, server, *answers, who=None):
        server.answers = list(answers)
        return SparqlStore(server.url, who)

    @pytest.mark.parametrize("status", [429, 502, 503, 504])
    def test_a_server_that_wants_a_pause_is_away(self, telling_server, status):
        store = self.store(telling_server, (status, {"Retry-After": "17"}))
        with pytest.raises(SinkAway) as away:
            store.replace(GRAPH, triples(), beat)
        assert away.value.seconds == 17

    @pytest.mark.parametrize("value", ["soon", "-1", "99999999999", "Wed, 21 Oct 2015 07:28:00 GMT"])
    def test_a_pause_that_is_no_number_of_seconds_is_ours_to_choose(self, telling_server, value):
        store = self.store(telling_server, (503, {"Retry-After": value}))
        with pytest.raises(SinkAway) as away:
            store.replace(GRAPH, triples(), beat)
        assert away.value.seconds is None

    def test_a_server_that_failed_may_do_better(self, telling_server):
        store = self.store(telling_server, (201, {}), (204, {}), (500, {}))
        with pytest.raises(SinkStumbled, match="500"):
            store.replace(GRAPH, triples(), beat)

    @pytest.mark.parametrize("status", [401, 403])
    def test_a_server_that_does_not_let_us_names_the_variable_and_no_password(self, telling_server, status):
        store = self.store(telling_server, (status, {}), who=Credentials(user="me", password="hush"))
        with pytest.raises(ConfigError, match="TAMIAS_SPARQL_CREDENTIALS") as error:
            store.replace(GRAPH, triples(), beat)
        assert "hush" not in str(error.value)

    def test_a_redirect_is_not_followed(self, telling_server):
        store = self.store(telling_server, (307, {"Location": "http://elsewhere.example/"}))
        with pytest.raises(ConfigError, match=r"redirects to http://elsewhere\.example/"):
            store.replace(GRAPH, triples(), beat)
        assert len(telling_server.asked) == 1

    def test_a_server_without_graph_store_is_updated(self, telling_server):
        store = self.store(telling_server, (405, {}), (204, {}))
        store.replace(GRAPH, triples(), beat)
        assert [asked[0] for asked in telling_server.asked] == ["PUT", "POST", "POST"]

    def test_a_user_and_a_password_are_sent(self, telling_server):
        store = self.store(telling_server, (204, {}), who=Credentials(user="me", password="hush"))
        store.replace(GRAPH, triples(), beat)
        wanted = "Basic " + base64.b64encode(b"me:hush").decode()
        assert {asked[2].get("Authorization") for asked in telling_server.asked} == {wanted}

    def test_a_token_is_sent(self, telling_server):
        store = self.store(telling_server, (204, {}), who=Credentials(token="hush"))
        store.replace(GRAPH, triples(), beat)
        assert {asked[2].get("Authorization") for asked in telling_server.asked} == {"Bearer hush"}

    def test_a_server_that_wants_a_digest_gets_one(self, telling_server):
        challenge = {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'}

        def judge(asked):
            return (204, {}) if "Digest" in asked[2].get("Authorization", "") else (401, challenge)

        store = self.store(telling_server, judge, who=Credentials(user="me", password="hush"))
        store.replace(GRAPH, triples(), beat)
        bodies = [body for method, path, headers, body in telling_server.asked if "example.org" in path]
        assert bodies[-1] == TRIPLES

    def test_the_graph_is_told_in_the_address(self, telling_server):
        store = self.store(telling_server, (204, {}))
        store.replace("http://e/a b&c=d#é".replace(" ", "%20"), triples(), beat)
        assert telling_server.asked[-1][1] == "/data?graph=http%3A%2F%2Fe%2Fa%2520b%26c%3Dd%23%C3%A9"

    def test_what_the_beat_raises_ends_the_request(self, telling_server):
        store = self.store(telling_server, (204, {}))

        def stop():
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.replace(GRAPH, triples(), stop)


def test_the_update_of_a_small_graph_is_one_request_that_a_store_understands(telling_server):
    telling_server.answers = [(405, {}), (204, {})]
    SparqlStore(telling_server.url).replace(GRAPH, triples(), beat)
    store = Store()
    store.update(telling_server.asked[-1][3].decode())
    assert len(store) == len(list(parse(TRIPLES, format=RdfFormat.N_TRIPLES)))

"""Queries to the past at `/sparql`, compared with what rdflib answers over the state of that time."""

import json
import os
import random
from contextlib import closing, suppress

import pytest
from rdflib import Graph

from tamias.archive.moments import digits, rfc3339
from tamias.archive.reader.library import ArchiveReader
from tamias.features.catalogue.catalogue import Catalogue
from tamias.features.catalogue.past import PastStates
from tamias.features.service.files.delivery import http_date
from tamias.settings import Settings

from .conftest import DAY, START

DOCUMENTS = ["http://a.example/1.nt", "http://b.example/2.nt"]
STATES = 12
STEP = 3_600_000
CLASSES = ("?s ?p ?o", "<{s}> ?p ?o", "?s <{p}> ?o", "?s ?p {o}", "<{s}> <{p}> ?o")
TITLES = "SELECT ?s ?title { ?s <http://purl.org/dc/terms/issued> ?title }"


def random_states(chance):
    """The triples of a document, state by state, of which some change each time; None while it is gone."""
    triples = {_triple(chance) for _ in range(60)}
    for number in range(STATES):
        yield None if number == 7 else sorted(triples)
        triples -= set(chance.sample(sorted(triples), 8))
        triples |= {_triple(chance) for _ in range(8)}


def _triple(chance):
    return (
        f"http://t.example/s{chance.randrange(20)}",
        f"http://t.example/p{chance.randrange(5)}",
        f'"é {chance.randrange(40)}"@en',
    )


@pytest.fixture
def past(corpus, client_of):
    """Documents in many states, and a client of a service that answers queries to the past."""
    chance, now, states = random.Random(7), corpus.session.now(), []
    for document in DOCUMENTS:
        for number, triples in enumerate(random_states(chance)):
            ago = (STATES - number) * STEP - (document == DOCUMENTS[1]) * STEP // 2
            states.append((now - ago, document, triples or []))
            lines = "".join(f"<{s}> <{p}> {o} <{document}> .\n" for s, p, o in triples or [])
            corpus.crawl(document, lines.encode(), ago=ago)
    with (
        closing(ArchiveReader(corpus.data, database=corpus.database)) as archive,
        Catalogue(corpus.data, database=corpus.database) as catalogue,
        client_of(corpus, catalogue) as client,
    ):
        catalogue.past = PastStates(lambda: archive, Settings())
        yield client, sorted(states)


def rows(client, query, **words):
    done = client.get("/sparql", params={"query": query, **words})
    assert done.status_code == 200, done.text
    return sorted(tuple(sorted(row.items())) for row in _plain(done.json()))


def _plain(answer):
    return [{name: each["value"] for name, each in row.items()} for row in answer["results"]["bindings"]]


def expected(states, at, query, documents):
    held = {name: triples for moment, name, triples in states if moment <= at and name in documents}
    lines = (f"<{s}> <{p}> {o} .\n" for triples in held.values() for s, p, o in triples)
    found = json.loads(Graph().parse(data="".join(lines), format="nt").query(query).serialize(format="json"))
    return sorted(tuple(sorted(row.items())) for row in _plain(found))


def test_random_queries_at_random_times_are_answered_as_rdflib_does(past):
    client, states = past
    chance, some = random.Random(11), 0
    for _ in range(60):
        at = chance.randrange(states[0][0] - STEP, states[-1][0] + STEP)
        s, p, o = _triple(chance)
        pattern = chance.choice(CLASSES).format(s=s, p=p, o=o)
        documents = chance.choice([*([each] for each in DOCUMENTS), DOCUMENTS])
        group = pattern if len(documents) > 1 else f"GRAPH <{documents[0]}> {{ {pattern} }}"
        wanted = expected(states, at, f"SELECT DISTINCT * {{ {pattern} }}", documents)
        assert rows(client, f"SELECT DISTINCT * {{ {group} }}", at=rfc3339(at)) == wanted, rfc3339(at)
        some += len(wanted)
    assert some > 500


def test_accept_datetime_names_the_time_and_the_answer_says_which_it_is_of(past):
    client, states = past
    at = states[5][0] // 1000 * 1000 + 5_000
    query = f"SELECT * {{ GRAPH <{DOCUMENTS[0]}> {{ ?s ?p ?o }} }}"
    done = client.get("/sparql", params={"query": query}, headers={"Accept-Datetime": http_date(at)})
    assert done.headers["memento-datetime"] == http_date(at)
    assert "accept-datetime" in done.headers["vary"].lower()
    found = sorted(tuple(sorted(row.items())) for row in _plain(done.json()))
    assert found == expected(states, at, "SELECT * { ?s ?p ?o }", DOCUMENTS[:1])
    wrong = client.get("/sparql", params={"query": query}, headers={"Accept-Datetime": "yesterday"})
    assert wrong.status_code == 400
    assert client.get("/sparql", params={"query": query, "at": "yesterday"}).status_code == 400


def test_a_query_is_from_mementos_of_crawled_documents(past):
    client, states = past
    chosen = [each for each in states if each[1] == DOCUMENTS[0]][2:4]
    names = [f"http://127.0.0.1:8080/memento/{digits(at + 1000)}/{DOCUMENTS[0]}" for at, _, _ in chosen]
    old, new = ({tuple(each) for each in triples} for _, _, triples in chosen)
    query = (
        f"SELECT ?s ?p ?o FROM NAMED <{names[0]}> FROM NAMED <{names[1]}>"
        f" {{ GRAPH <{names[1]}> {{ ?s ?p ?o }} FILTER NOT EXISTS {{ GRAPH <{names[0]}> {{ ?s ?p ?o }} }} }}"
    )
    added = {(s, p, f'"{o}"@en') for (_, o), (_, p), (_, s) in rows(client, query)}
    assert added == new - old
    by_parameter = rows(client, "SELECT ?s { ?s ?p ?o }", **{"default-graph-uri": names[0]})
    assert len(by_parameter) == len(old)
    before = f"http://127.0.0.1:8080/memento/20000101000000/{DOCUMENTS[0]}"
    assert client.get("/sparql", params={"query": f"ASK FROM <{before}> {{}}"}).status_code == 404


def test_what_becomes_known_of_the_past_later_is_in_the_next_answer(past, corpus):
    client, _ = past
    with Catalogue(corpus.data, database=corpus.database) as catalogue:
        with closing(catalogue.refresher(corpus.session)) as refresher:
            refresher.round()
        name = corpus.put("http://c.example/data.csv", b"a\n1\n")
        at = rfc3339(START + 5 * DAY)
        before = rows(client, TITLES, at=at)
        assert any(f"/dataset/{name}/1" in str(row) for row in before)
        assert rows(client, TITLES, at=rfc3339(START + 5 * DAY + 1)) == before
        corpus.put("http://c.example/data.csv", b"a\n2\n", start=START + 2 * DAY)
        found = rows(client, TITLES, at=at)
    assert any(f"/dataset/{name}/2" in str(row) for row in found)


def test_fetches_are_not_asked_of_a_time(past):
    client, _ = past
    query = "ASK { GRAPH <urn:tamias:metadata> { ?s ?p ?o } }"
    done = client.get("/sparql", params={"query": query, "at": "2026-01-01"})
    assert done.status_code == 400
    assert "prov:startedAtTime" in done.json()["detail"]


def test_no_file_with_what_was_forgotten_stays_open(past, corpus):
    client, states = past
    query = f"SELECT * {{ GRAPH <{DOCUMENTS[0]}> {{ ?s ?p ?o }} }}"
    assert rows(client, query, at=rfc3339(states[3][0]))
    assert any(DOCUMENTS[0].encode() in content for content in unlinked_files())
    corpus.session.execute(b"UPDATE capture SET segment = NULL, frame = NULL, start = NULL, length = NULL")
    corpus.session.execute(
        b"INSERT INTO forgotten (resource, url, reason, by_whom, at, blocked)"
        b" VALUES ('x', 'http://a.example/1.nt', 'asked', 'test', 1, true)"
    )
    assert rows(client, query, at=rfc3339(states[3][0])) == []
    assert not any(DOCUMENTS[0].encode() in content for content in unlinked_files())


def unlinked_files():
    """What is in temporary files of this process that have no name any more."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").endswith("(deleted)"):
                yield os.pread(int(name), 1 << 24, 0)

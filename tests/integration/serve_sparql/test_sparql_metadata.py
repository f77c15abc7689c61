"""The graph of fetches: what is asked of it is answered from the database as from the whole graph."""

import json
from contextlib import closing, suppress
from threading import Event, Thread

import pytest
from pyoxigraph import Store

from tamias.archive.captures import all_captures, insert_captures
from tamias.features.catalogue import fetch_queries
from tamias.features.catalogue.catalogue import Catalogue
from tamias.features.catalogue.errors import QueryRefused, QueryTooLong, StoreAway
from tamias.features.catalogue.fetch_queries import find_needed_fetches
from tamias.features.catalogue.store.local_store import LocalStore
from tamias.features.dcat.activity import activity_quads
from tamias.features.dcat.terms import PREFIXES
from tamias.frontier.keys import host_hash
from tamias.model.capture import CaptureRecord, Extent, Hop, Outcome, new_capture_id
from tamias.model.lease import Lease, Task
from tamias.model.url import host
from tamias.settings import ServeSettings
from tests.messages import saying

START = 1_767_225_600_000
HOUR = 3_600_000
PAGE = "http://a.example/page"
ODD = "http://a.example/a?b[]={c}"
DEEP = "http://www.data.example.co.uk/x"
OTHER = {DEEP: "example.co.uk", "http://c.example/x": "192.0.2.1"}
"""Queues that are not named by the host."""
G = "GRAPH <urn:tamias:metadata>"
LATE = '"2026-01-01T02:00:00Z"^^xsd:dateTime'


@pytest.fixture
def fetched(corpus):
    """Visits to three hosts at different times, with every outcome, redirects and documents."""
    hop = Hop(url=PAGE, status=301, address="192.0.2.1", location="http://a.example/new")
    last = Hop(url="http://a.example/new", status=200, address="192.0.2.2")
    urls = [PAGE, ODD, "http://b.example/", "http://c.example/x"]
    for number in range(30):
        url, outcome = urls[number % 4] if number < 24 else DEEP, list(Outcome)[1 + number % 6]
        started = START + number * HOUR // 4
        record = CaptureRecord(
            id=str(new_capture_id(started)), crawl=1, url=url, started_at=started, ended_at=started + 7,
            outcome=outcome, reason="because", depth=number % 3, status=200 + number % 2,
            hops=(hop, last) if url == PAGE else (last,), final_url=last.url if url == PAGE else url,
            sha256="ab" * 32 if outcome is Outcome.OK else None, worker=f"w{number % 2}", agent="Tamias",
            extent=Extent(1, 0, 0, 9) if outcome is Outcome.OK else None, quads=number,
        )  # fmt: skip
        queue = OTHER.get(url, host(url))
        lease = Lease(host=queue, qid=host_hash(queue), bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())
        task = Task(uid=number, url=url, crawl=1, depth=0, score=0.0)
        corpus.session.transact(lambda cursor, it=(lease, task, record): insert_captures(cursor, [it]))
    return corpus


@pytest.fixture
def asked(fetched):
    """The rows of a query, and those of the same query to the whole graph."""
    store = Store()
    for record in all_captures(fetched.session):
        store.extend(activity_quads(record))
    options = ServeSettings(sparql_seconds=60)

    with Catalogue(fetched.data, options, fetched.database) as catalogue:

        def rows(query, graphs=None):
            with catalogue.ask(query, "application/sparql-results+json", graphs).content as content:
                found = json.load(content)["results"]["bindings"]
            ours = sorted(sorted((name, term["value"]) for name, term in row.items()) for row in found)
            solutions = store.query(query, prefixes=PREFIXES)
            names = [variable.value for variable in solutions.variables]
            whole = [[(name, row[name].value) for name in sorted(names) if row[name]] for row in solutions]
            return ours, sorted(whole)

        yield rows


QUERIES = {
    "everything": f"SELECT * {{ {G} {{ ?s ?p ?o }} }}",
    "count": f"SELECT ?o (COUNT(*) AS ?n) {{ {G} {{ ?a tamias:outcome ?o }} }} GROUP BY ?o",
    "outcome": f'SELECT ?a ?u {{ {G} {{ ?a tamias:outcome "failed" ; tamias:requestedUrl ?u }} }}',
    "url": f"SELECT ?a ?o {{ {G} {{ ?a tamias:requestedUrl <{PAGE}> ; tamias:outcome ?o }} }}",
    "odd url": f"SELECT ?a {{ {G} {{ ?a tamias:requestedUrl <http://a.example/a?b%5B%5D=%7Bc%7D> }} }}",
    "url of a queue by domain": f"SELECT ?a {{ {G} {{ ?a tamias:requestedUrl <{DEEP}> }} }}",
    "url of a queue by IP": f"SELECT ?a {{ {G} {{ ?a tamias:requestedUrl <http://c.example/x> }} }}",
    "crawl": f'SELECT ?a {{ {G} {{ ?a tamias:crawl "default" ; tamias:outcome ?o }} }}',
    "no such crawl": f'SELECT ?a {{ {G} {{ ?a tamias:crawl "other" }} }}',
    "time inside": f"SELECT ?a {{ {G} {{ ?a prov:startedAtTime ?t FILTER(?t >= {LATE}) }} }}",
    "time outside": f"SELECT ?a {{ {G} {{ ?a prov:startedAtTime ?t }} FILTER(?t < {LATE} && ?t > "
    '"2026-01-01T01:00:00+00:00"^^xsd:dateTime) }',
    "time turned round": f"SELECT ?a {{ {G} {{ ?a prov:startedAtTime ?t FILTER({LATE} <= ?t) }} }}",
    "time or not": f"SELECT ?a {{ {G} {{ ?a prov:startedAtTime ?t FILTER(?t < {LATE} || true) }} }}",
    "time of a sum": f"SELECT ?a {{ {G} {{ ?a prov:startedAtTime ?t FILTER(?t >= "
    '"2026-01-02T02:00:00Z"^^xsd:dateTime - "P1D"^^xsd:dayTimeDuration) } }',
    "time in a function": f"SELECT ?a {{ {G} {{ ?a prov:startedAtTime ?t FILTER STR(?t >= {LATE}) "
    f"FILTER IF(?t >= {LATE}, true, true) }} }}",
    "time in a negation": f"SELECT ?a {{ {G} {{ ?a prov:startedAtTime ?t FILTER(!(?t >= {LATE})) }} }}",
    "time before all": f"SELECT ?a {{ {G} {{ ?a prov:startedAtTime ?t FILTER(?t < "
    '"1900-01-01T00:00:00Z"^^xsd:dateTime) } }',
    "no such fetch": f"SELECT ?p {{ {G} {{ <urn:uuid:not-a-uuid> ?p ?o }} }}",
    "time of an optional": f"SELECT ?a ?t {{ {G} {{ ?a tamias:outcome ?o OPTIONAL "
    f"{{ ?a prov:startedAtTime ?t FILTER(?t < {LATE}) }} }} }}",
    "hops": f'SELECT ?l {{ {G} {{ ?a tamias:outcome "ok" ; tamias:hop ?h . ?h tamias:location ?l }} }}',
    "hop by a path": f'SELECT ?l {{ {G} {{ ?a tamias:outcome "ok" ; tamias:hop/tamias:location ?l }} }}',
    "a document's other fetches": f'SELECT ?b {{ {G} {{ ?a tamias:depth 0 ; tamias:outcome "ok" ; '
    "prov:generated ?d . ?d prov:wasGeneratedBy ?b } }",
    "the same by a path": f'SELECT ?b {{ {G} {{ ?a tamias:outcome "ok" ; '
    "prov:generated/prov:wasGeneratedBy ?b } }",
    "two fetches": f'SELECT ?a ?b {{ {G} {{ ?a tamias:outcome "ok" ; tamias:requestedUrl ?u . '
    '?b tamias:outcome "gone" ; tamias:requestedUrl ?u } }',
    "two blocks": f'SELECT ?a ?b {{ {G} {{ ?a tamias:outcome "ok" ; tamias:depth ?d }} '
    f'{G} {{ ?b tamias:outcome "gone" ; tamias:depth ?d }} }}',
    "union": f'SELECT ?a {{ {G} {{ {{ ?a tamias:outcome "ok" }} UNION {{ ?a tamias:outcome "gone" }} }} }}',
    "minus": f'SELECT ?a {{ {G} {{ ?a tamias:outcome "ok" MINUS {{ ?a tamias:depth 0 }} }} }}',
    "not exists": f'SELECT ?a {{ {G} {{ ?a tamias:outcome "ok" ; tamias:requestedUrl ?u FILTER NOT EXISTS '
    '{ ?b tamias:requestedUrl ?u ; tamias:outcome "gone" } } }',
    "a query inside": f'SELECT ?a ?n {{ {G} {{ ?a tamias:outcome "ok" '
    "{ SELECT (COUNT(?a) AS ?n) { ?a tamias:outcome ?o } } } }",
    "prefixed": 'PREFIX m: <urn:tamias:meta> SELECT ?a { GRAPH m:data { ?a tamias:outcome "ok" } }',
    "prefixed early": 'PREFIX m: <urn:tamias:m> SELECT ?a { GRAPH m:etadata { ?a tamias:outcome "ok" } }',
    "escaped": "SELECT ?a { GRAPH <\\u0075rn:tamias:metadata> { ?a tamias:depth 1 } }",
    "from": 'SELECT ?a FROM <urn:tamias:metadata> { ?a tamias:outcome "refused" }',
    "agents": f"SELECT ?l {{ {G} {{ ?a tamias:depth 1 ; prov:wasAssociatedWith ?w . ?w rdfs:label ?l }} }}",
    "brackets": f'SELECT ?u {{ {G} {{ [] tamias:outcome "ok" ; tamias:requestedUrl ?u . }} }}',
    "collection": f"SELECT ?a {{ {G} {{ ?a tamias:depth (1 2) }} }}",
    "escape": f"SELECT ?a {{ {G} {{ ?a tamias:reason 'bec\\u0061use' ; tamias:outcome 'ok' }} }}",
    "escape and prefix": "PREFIX m: <urn:tamias:> SELECT ?a { GRAPH m:metadata { ?a tamias:reason 'a\\n' } }",
    "exists in the head": f"SELECT (EXISTS {{ {G} {{ ?a tamias:outcome 'gone' }} }} AS ?e) "
    f"{{ {G} {{ ?b tamias:depth 2 }} }}",
    "query around": f"SELECT ?a {{ {{ SELECT ?a {{ {G} {{ ?a tamias:depth 1 }} }} ORDER BY ?a LIMIT 3 }} }}",
    "values": f"SELECT * {{ VALUES (?d ?n) {{ (1 2) }} {G} {{ ?a tamias:depth ?d }} BIND(?d + 1 AS ?e) }}",
    "text with braces": f'SELECT ?a {{ {G} {{ ?a tamias:reason "}} {{" ; tamias:outcome "ok" }} }} # }} {{',
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_query_is_answered_as_from_the_whole_graph(asked, query):
    ours, whole = asked(query)
    assert ours == whole


def test_a_fetch_by_its_iri_is_found(asked, fetched):
    record = next(iter(all_captures(fetched.session)))
    ours, whole = asked(f"SELECT ?p ?o {{ {G} {{ <urn:uuid:{record.id}> ?p ?o }} }}")
    assert ours == whole
    assert len(ours) > 10


def test_what_is_restricted_is_not_read_whole(asked, monkeypatch):
    """Of a large crawl only that is read which the query can be about."""
    monkeypatch.setattr(fetch_queries, "MOST_FETCHES", 12)
    for name in ("outcome", "url", "odd url", "time inside"):
        ours, whole = asked(QUERIES[name].replace(LATE, '"2026-01-01T05:00:00Z"^^xsd:dateTime'))
        assert ours == whole
    with pytest.raises(QueryRefused, match="more than 12 fetches"):
        asked(QUERIES["count"])


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT * {{ {G} {{ ?a tamias:requestedUrl ?u }} ?u dct:title ?t }}",
        f"SELECT * {{ {G} {{ ?a tamias:depth 0 OPTIONAL {{ ?a tamias:reason ?r }} }} ?a dct:title ?t }}",
        f"SELECT * {{ {G} {{ ?a tamias:requestedUrl ?u }} GRAPH ?g {{ ?u dct:title ?t }} }}",
        "SELECT * FROM <urn:tamias:metadata> FROM <http://a.example/> { ?s ?p ?o }",
        "SELECT * { VALUES ?g { <urn:tamias:metadata> } GRAPH ?g { ?s ?p ?o } }",
        "DESCRIBE ?a { GRAPH <urn:tamias:metadata> { ?a tamias:depth 0 } }",
        "PREFIX m: <urn:tamias:> DESCRIBE ?a { GRAPH m:metadata { ?a tamias:depth 0 } }",
        "PREFIX m: <urn:> SELECT * { VALUES ?g { m:tamias:metadata } GRAPH ?g { ?s ?p ?o } }",
        "BASE <urn:x> SELECT * { GRAPH <./tamias:metadata> { ?s ?p ?o } }",
        "BASE <urn:tamias:metadata> SELECT * { GRAPH <> { ?s ?p ?o } }",
    ],
)
def test_what_cannot_be_answered_is_an_error(asked, query):
    with pytest.raises(QueryRefused, match="urn:tamias:metadata cannot be answered"):
        asked(query)


@pytest.mark.parametrize(
    "query",
    [
        "DESCRIBE <http://a.example/metadata>",
        "PREFIX m: <urn:tamias:> SELECT * { GRAPH m:metadata2 { ?s ?p 'a\\n' } }",
        "SELECT * { GRAPH ?g { ?s ?p 'metadata\\n' } FILTER(?g != <urn:tamias:metadata>) }",
    ],
)
def test_what_is_about_other_graphs_is_not_refused(fetched, catalogue, query):
    with catalogue.ask(query, "*/*").content as content:
        assert b"urn:uuid" not in content.read()


def test_what_is_no_query_is_told_as_ever(asked):
    with pytest.raises(QueryRefused, check=saying("SPARQL", "1")):
        asked(f"SELECT * {{ {G} {{ ?a }}")


NUMBERS = "{ " + " ".join(map(str, range(1500))) + " }"


@pytest.mark.parametrize(("form", "error"), [("ASK", QueryTooLong), ("DESCRIBE ?x", QueryRefused)])
def test_a_query_is_evaluated_within_its_limits_only(fetched, catalogue, form, error):
    """One that tries 3,375,000,000 combinations, which nobody's service is to do."""
    values = " ".join(f"VALUES ?{name} {NUMBERS}" for name in "abc")
    query = f"{form} {{ {{ {G} {{ ?x tamias:depth 7 }} }} UNION {{ {values} FILTER(?a + ?b + ?c < 0) }} }}"
    with pytest.raises(error):
        catalogue.ask(query, "*/*")


def test_reading_the_fetches_counts_as_time_of_the_query(fetched, catalogue):
    """Somebody alters the table meanwhile."""
    with closing(fetched.database.session()) as other:

        def alter(cursor):
            cursor.execute("LOCK TABLE capture IN ACCESS EXCLUSIVE MODE")
            locked.set()
            released.wait(30)

        locked, released = Event(), Event()
        altering = Thread(target=other.transact, args=(alter,))
        altering.start()
        assert locked.wait(30)
        try:
            with pytest.raises(QueryTooLong):
                catalogue.ask(QUERIES["count"], "*/*")
            assert altering.is_alive()
        finally:
            released.set()
            altering.join()
    with catalogue.ask(QUERIES["outcome"], "text/csv").content as content:
        assert content.read().count(b"urn:uuid") == 5


def test_a_query_whose_process_is_lost_has_the_same_fetches_when_it_is_asked_again(asked, monkeypatch):
    ask, lost = LocalStore._ask, []

    def lose_the_first(*words):
        answer = ask(*words)
        if not lost:
            lost.append(answer)
            answer.content.close()
            raise StoreAway("the process that answers the query was lost")
        return answer

    monkeypatch.setattr(LocalStore, "_ask", lose_the_first)
    ours, whole = asked(QUERIES["count"])
    assert lost
    assert ours == whole


def test_fetches_are_not_among_other_statements(fetched, refresher, client):
    refresher.round()
    answer = client.get("/sparql", params={"query": "SELECT * { ?s ?p ?o }"})
    assert answer.json()["results"]["bindings"] == []


def test_the_graph_is_answered_over_http(fetched, client):
    query = f'SELECT ?u {{ {G} {{ ?a tamias:outcome "gone" ; tamias:requestedUrl ?u }} }}'
    rows = client.get("/sparql", params={"query": query}).json()["results"]["bindings"]
    assert {row["u"]["value"] for row in rows} == {"http://b.example/", PAGE, DEEP}


def test_a_refusal_is_a_problem_document(fetched, client):
    answer = client.get("/sparql", params={"query": f"SELECT * {{ {G} {{ ?a ?p ?o }} ?s ?p ?o }}"})
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_what_was_cut_off_is_read_or_refused(query):
    for end in range(len(query)):
        with suppress(QueryRefused):
            find_needed_fetches(query[:end], {})


def test_what_is_nested_without_end_is_read():
    needed = find_needed_fetches(f"SELECT * {G} " + "{" * 100_000, {})
    assert needed is None or needed.predicates is not None

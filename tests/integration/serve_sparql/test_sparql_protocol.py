"""`/sparql` over a real server: the protocol, the formats, the limits, and what survives."""

import asyncio
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tamias.features.catalogue.errors import StoreAway
from tamias.features.catalogue.store.local_store import RunningQuery
from tamias.features.catalogue.store.messages import MOST_QUERIES
from tamias.sinks.delivery import SinkAway

QUERY = "SELECT ?o { <http://a.example/s> <http://a.example/p> ?o }"
CONSTRUCT = "CONSTRUCT WHERE { <http://a.example/s> ?p ?o }"
DOCUMENT = b'<http://a.example/s> <http://a.example/p> "\xc3\xbc" <http://a.example/doc> .\n'
SELECT_TYPES = {
    "application/sparql-results+json": b'"value":"\xc3\xbc"',
    "application/sparql-results+xml": b"<literal>\xc3\xbc</literal>",
    "text/csv": b"o\r\n\xc3\xbc\r\n",
    "text/tab-separated-values": b'?o\n"\xc3\xbc"\n',
}
GRAPH_TYPES = {
    "text/turtle": b'<http://a.example/s> <http://a.example/p> "\xc3\xbc"',
    "application/n-triples": b'<http://a.example/s> <http://a.example/p> "\xc3\xbc"',
    "application/n-quads": b'<http://a.example/s> <http://a.example/p> "\xc3\xbc"',
    "application/trig": b'<http://a.example/s> <http://a.example/p> "\xc3\xbc"',
    "application/rdf+xml": b"<rdf:RDF",
    "application/ld+json": b'"@id":"http://a.example/s"',
}
CROSS = "{ ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
SORTED = f"SELECT DISTINCT ?c ?f {CROSS} ORDER BY ?l"


@pytest.fixture
def asked(client, corpus, refresher):
    corpus.crawl("http://a.example/doc", DOCUMENT)
    refresher.round()
    return client


@pytest.fixture
def heavy(client, corpus, refresher):
    """Enough statements that four of them joined are more than a day's work."""
    lines = [
        f'<http://h.example/{n}> <http://h.example/p> "{n}" <http://h.example/doc> .\n' for n in range(2000)
    ]
    corpus.crawl("http://h.example/doc", "".join(lines).encode())
    refresher.round()
    return client


def test_a_query_is_taken_by_get(asked):
    answer = asked.get("/sparql", params={"query": QUERY})
    assert answer.json()["results"]["bindings"] == [{"o": {"type": "literal", "value": "ü"}}]


def test_a_query_is_taken_as_a_posted_form(asked):
    answer = asked.post("/sparql", data={"query": QUERY})
    assert len(answer.json()["results"]["bindings"]) == 1


def test_a_query_is_taken_as_a_posted_body(asked):
    headers = {"Content-Type": "application/sparql-query"}
    answer = asked.post("/sparql", content=QUERY, headers=headers)
    assert len(answer.json()["results"]["bindings"]) == 1


@pytest.mark.parametrize("kind", SELECT_TYPES)
def test_solutions_come_in_every_format(asked, kind):
    answer = asked.get("/sparql", params={"query": QUERY}, headers={"Accept": kind})
    assert answer.headers["content-type"].startswith(kind)
    assert SELECT_TYPES[kind] in answer.content


@pytest.mark.parametrize("kind", GRAPH_TYPES)
def test_statements_come_in_every_format(asked, kind):
    answer = asked.get("/sparql", params={"query": CONSTRUCT}, headers={"Accept": kind})
    assert answer.headers["content-type"].startswith(kind)
    assert GRAPH_TYPES[kind] in answer.content


def test_a_format_that_there_is_not_is_refused(asked):
    answer = asked.get("/sparql", params={"query": QUERY}, headers={"Accept": "image/png"})
    assert answer.status_code == 406


def test_graphs_are_chosen_by_the_protocol(asked):
    words = {"query": QUERY, "default-graph-uri": "http://elsewhere.example/"}
    assert asked.get("/sparql", params=words).json()["results"]["bindings"] == []


def test_the_usual_prefixes_need_not_be_declared(asked):
    answer = asked.get("/sparql", params={"query": "SELECT * { ?s dcat:x ?o ; arc:y ?o }"})
    assert answer.status_code == 200


def test_a_query_may_declare_a_usual_prefix_otherwise(asked):
    query = "PREFIX dcat: <http://a.example/> SELECT * { ?s dcat:p ?o }"
    assert len(asked.get("/sparql", params={"query": query}).json()["results"]["bindings"]) == 1


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ({"query": "SELECT * {"}, 400),
        ({"query": ""}, 400),
        ({"query": [QUERY, QUERY]}, 400),
        ({"query": "INSERT DATA { <a:a> <a:a> <a:a> }"}, 400),
        ({"query": "SELECT * { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }"}, 400),
        ({"query": "SELECT * { \\u0053ervice <http://127.0.0.1/> { ?s ?p ?o } }"}, 400),
        ({"query": "SELECT * {} #" + "x" * 200_000}, 413),
        ({"update": "DROP ALL"}, 403),
    ],
)
def test_what_is_no_query_is_refused_with_a_problem_document(asked, words, status):
    answer = asked.post("/sparql", data=words)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


def test_an_update_as_a_body_is_refused(asked):
    headers = {"Content-Type": "application/sparql-update"}
    assert asked.post("/sparql", content="DROP ALL", headers=headers).status_code == 403


def test_nothing_is_changed_by_what_is_refused(asked):
    asked.post("/sparql", data={"update": "DROP ALL"})
    asked.post("/sparql", data={"query": "DROP ALL"})
    assert len(asked.get("/sparql", params={"query": QUERY}).json()["results"]["bindings"]) == 1


def test_without_a_query_the_service_is_described(asked):
    answer = asked.get("/sparql", headers={"Accept": "application/n-triples"})
    assert "<http://www.w3.org/ns/sparql-service-description#SPARQL11Query>" in answer.text


def test_a_query_that_would_run_for_days_is_stopped_with_an_error(heavy):
    answer = heavy.get("/sparql", params={"query": f"SELECT (COUNT(*) AS ?n) {CROSS}"})
    assert (answer.status_code, answer.headers["content-type"]) == (504, "application/problem+json")


def processes(catalogue):
    """Those that the keeper has started."""
    keeper = catalogue.local.running().keeper_pid
    return set(map(int, Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()))


STOPPED = {504, 422}
"""For its time, or for its memory: a quick machine comes to that limit first."""


def is_answered(client):
    return client.get("/sparql", params={"query": "ASK {}"}).json()["boolean"] is True


@pytest.mark.parametrize("query", [f"SELECT (COUNT(*) AS ?n) {CROSS}", SORTED], ids=["counted", "sorted"])
def test_a_query_that_takes_too_long_is_stopped_alone(heavy, catalogue, query):
    """Not even one that is sorting, which no library looks up from, costs others anything."""
    assert is_answered(heavy)
    before, answered = catalogue.local.running(), []
    with ThreadPoolExecutor() as threads:
        late = threads.submit(heavy.get, "/sparql", params={"query": query})
        while not late.done():
            answered.append(is_answered(heavy))
    assert late.result().status_code in STOPPED
    assert (all(answered), len(answered) > 1) == (True, True)
    assert catalogue.local.running() == before


def test_an_abandoned_query_ends_at_once_and_others_go_on(heavy, catalogue):
    """The one that is given up would run for days, the others are answered from before it to after it."""
    assert is_answered(heavy)
    idle, before, asking = processes(catalogue), catalogue.local.running(), RunningQuery()
    with ThreadPoolExecutor() as threads:
        others = [threads.submit(heavy.get, "/sparql", params={"query": SORTED}) for _ in range(2)]
        until(lambda: len(processes(catalogue)) > len(idle))
        known = processes(catalogue)
        abandoned = threads.submit(catalogue.ask, f"SELECT * {CROSS}", "text/csv", None, asking)
        until(lambda: processes(catalogue) - known)
        (working,) = processes(catalogue) - known
        asking.give_up()
        with pytest.raises(StoreAway):
            abandoned.result()
        until(lambda: working not in processes(catalogue))
        assert not any(other.done() for other in others)
        assert is_answered(heavy)
    assert catalogue.local.running() == before


def test_many_long_queries_let_short_ones_pass(heavy, catalogue):
    """One of a client that has none under way is answered; long ones beyond half of the places end."""
    with ThreadPoolExecutor(2 * MOST_QUERIES) as threads:
        long = [
            threads.submit(
                heavy.get,
                "/sparql",
                params={"query": SORTED},
                headers={"X-Forwarded-For": f"192.0.2.{number}"},
            )
            for number in range(2 * MOST_QUERIES)
        ]
        until(lambda: slowed(catalogue))
        assert is_answered(heavy)
        given = [each.result() for each in long]
    refused = [each for each in given if each.status_code == 503]
    assert {503} < {each.status_code for each in given} <= {503, *STOPPED}
    assert all(each.headers["Retry-After"] for each in refused)


def niceness(pid):
    with suppress(FileNotFoundError, ProcessLookupError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[16])
    return -20


def slowed(catalogue):
    usual = niceness(catalogue.local.running().keeper_pid)
    return {pid for pid in processes(catalogue) if niceness(pid) > usual}


def test_a_query_that_takes_long_goes_after_what_is_written_and_after_short_ones(heavy, catalogue):
    asking = RunningQuery()
    with ThreadPoolExecutor() as threads:
        long = threads.submit(catalogue.ask, SORTED, "text/csv", None, asking)
        until(lambda: slowed(catalogue))
        (working,) = slowed(catalogue)
        assert is_answered(heavy)
        assert slowed(catalogue) == {working}
        asking.give_up()
        with pytest.raises(StoreAway):
            long.result()
    until(lambda: working not in processes(catalogue))


def test_a_query_that_was_slowed_down_is_answered_and_its_process_takes_no_other(heavy, catalogue):
    """Only the superuser could make it quick again."""
    working, some = set(), 100
    with ThreadPoolExecutor() as threads:
        while not working:
            first = f"SELECT ?a {{ ?a <http://h.example/p> ?c }} LIMIT {some}"
            pairs = f"SELECT (COUNT(*) AS ?n) {{ {{ {first} }} ?d <http://h.example/p> ?f }}"
            long = threads.submit(heavy.get, "/sparql", params={"query": pairs})
            until(lambda: slowed(catalogue) or long.done())  # noqa: B023 - it is over before the next one
            working = slowed(catalogue)
            [found] = long.result().json()["results"]["bindings"]
            assert found["n"]["value"] == str(2000 * min(some, 2000))
            some *= 2
    until(lambda: not working & processes(catalogue))
    assert is_answered(heavy)


def test_a_client_that_leaves_ends_its_query(heavy, catalogue):
    """The process that worked for it is another one afterwards, long before the time limit."""
    assert is_answered(heavy)
    for pid in processes(catalogue):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not processes(catalogue))

    async def leave():
        asked = asyncio.create_task(heavy.send("GET", "/sparql", {"params": {"query": SORTED}}))
        await asyncio.to_thread(until, lambda: processes(catalogue))
        (working,) = processes(catalogue)
        asked.cancel()
        return working

    working = asyncio.run(leave())
    until(lambda: working not in processes(catalogue))
    assert is_answered(heavy)


def until(holds):
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("kind", ["text/csv", "application/sparql-results+json"])
def test_an_answer_that_is_too_large_is_an_error(heavy, kind):
    answer = heavy.get("/sparql", params={"query": f"SELECT * {CROSS}"}, headers={"Accept": kind})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


def answered(asked):
    """The rows of a query, which may have to be asked again while the server starts."""
    deadline = time.monotonic() + 60
    while (answer := asked.get("/sparql", params={"query": QUERY})).status_code != 200:
        assert answer.status_code in (502, 503), answer.text
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return answer.json()["results"]["bindings"]


def test_a_process_that_was_killed_is_replaced(asked, catalogue):
    assert len(answered(asked)) == 1
    for pid in processes(catalogue):
        os.kill(pid, signal.SIGKILL)
    assert len(answered(asked)) == 1


def test_a_writer_that_was_killed_is_replaced(asked, catalogue, corpus, refresher):
    for pid in processes(catalogue):
        os.kill(pid, signal.SIGKILL)
    corpus.crawl("http://a.example/doc", DOCUMENT.replace(b"p>", b"q>"))
    assert rounds_until_written(refresher) <= 5
    assert answered(asked) == []


def rounds_until_written(refresher):
    """A service tries again every second."""
    for number in range(1, 20):
        with suppress(SinkAway):
            refresher.round()
            return number
        time.sleep(1)
    raise AssertionError("the store stays away")


def test_a_keeper_that_was_killed_is_started_again(asked, catalogue):
    os.kill(catalogue.local.running().keeper_pid, signal.SIGKILL)
    assert len(answered(asked)) == 1


def test_the_processes_have_no_network(asked, catalogue):
    assert len(answered(asked)) == 1
    theirs = {os.readlink(f"/proc/{pid}/ns/net") for pid in processes(catalogue)}
    assert theirs
    assert os.readlink("/proc/self/ns/net") not in theirs

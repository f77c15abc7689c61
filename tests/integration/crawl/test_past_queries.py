"""Graphs as they were, and graphs of versions, compared with what rdflib reads from the same bytes."""

import csv
import io
import time
from datetime import UTC, datetime

import pytest
from rdflib import Graph
from rdflib.compare import isomorphic

import tamias as library
from tamias.model.errors import UsageError

EVERYTHING = "CONSTRUCT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } FILTER(STRSTARTS(STR(?g), 'http')) }"
STATES = [
    b'@prefix : <http://v.example/> . :a :says "one" ; :knows [ :name "B" ; :in ( 1 2 ) ] .',
    b'@prefix : <http://v.example/> . :a :says "two"@en ; :knows [ :name "C" ; :in ( 1 2 3 ) ] . :d a :E .',
]


def now():
    time.sleep(0.01)
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def parsed(text, **words):
    return Graph().parse(data=text, **{"format": "turtle", **words})


def constructed(tamias, query, *words):
    done = tamias.run("query", query, "--format", "nquads", *words)
    assert done.returncode == 0, done.stderr
    return parsed(done.stdout, format="nt")


@pytest.fixture
def visited(tamias, site, reply):
    """Two documents: one with two states and then gone, one that comes later; and the times between."""
    site.pages |= {"/a.ttl": STATES[0]}
    times = [now()]
    assert tamias.run("add", site.url("/a.ttl")).returncode == 0
    assert tamias.crawl("--recrawl").returncode == 0
    times.append(now())
    time.sleep(1 - time.time() % 1)  # the address of a Memento tells seconds apart, not less
    site.pages |= {"/a.ttl": STATES[1], "/b.ttl": STATES[0]}
    assert tamias.run("add", site.url("/b.ttl")).returncode == 0
    assert tamias.crawl("--recrawl", site.url("/a.ttl"), site.url("/b.ttl")).returncode == 0
    times.append(now())
    site.pages["/a.ttl"] = reply(410)
    assert tamias.crawl("--recrawl", site.url("/a.ttl")).returncode == 0
    times.append(now())
    return times


def test_a_query_is_answered_as_it_was_at_a_time(tamias, site, visited):
    states = [Graph(), parsed(STATES[0]), parsed(STATES[1]) + parsed(STATES[0]), parsed(STATES[0])]
    for at, expected in zip(visited, states, strict=True):
        found = constructed(tamias, EVERYTHING, "--at", at)
        assert isomorphic(found, expected), at
    versions = "SELECT (COUNT(?v) AS ?n) { ?url dct:hasVersion ?v FILTER STRSTARTS(STR(?v), 'http') }"
    counts = [
        tamias.run("query", versions, "--format", "csv", "--at", at).stdout.split()[1] for at in visited
    ]
    assert counts == ["0", "1", "3", "3"]
    with library.Archive(tamias.data) as archive:
        found = Graph()
        for triple in archive.query(EVERYTHING, at=visited[1]):
            found.parse(data=f"{triple} .", format="nt")
        assert len(found) == len(states[1])
        with pytest.raises(UsageError):
            archive.query(EVERYTHING, at="yesterday")


def test_a_version_is_a_graph_by_each_of_its_names(tamias, site, visited):
    with library.Archive(tamias.data) as archive:
        name = archive.resource(site.url("/a.ttl")).id
        first = archive.versions(site.url("/a.ttl"))[0]
    stamp = first.captured_at.strftime("%Y%m%d%H%M%S")
    service = "http://127.0.0.1:8080"
    names = [
        f"{service}/dataset/{name}/1",
        f"{service}/api/v1/get/file/id/{name}_1",
        f"{service}/memento/{stamp}/{site.url('/a.ttl')}",
    ]
    for graph in names:
        found = constructed(tamias, f"CONSTRUCT {{ ?s ?p ?o }} FROM <{graph}> WHERE {{ ?s ?p ?o }}")
        assert isomorphic(found, parsed(STATES[0])), graph
    two = f"FROM NAMED <{names[0]}> FROM NAMED <{service}/dataset/{name}/2>"
    words = f"SELECT ?said ?g {two} {{ GRAPH ?g {{ ?s <http://v.example/says> ?said }} }} ORDER BY ?g"
    done = tamias.run("query", words, "--format", "csv")
    assert list(csv.reader(io.StringIO(done.stdout))) == [
        ["said", "g"], ["one", names[0]], ["two", f"{service}/dataset/{name}/2"],
    ]  # fmt: skip
    mixed = f"CONSTRUCT {{ ?s ?p ?o }} FROM <{names[0]}> FROM <{site.url('/b.ttl')}> WHERE {{ ?s ?p ?o }}"
    assert len(constructed(tamias, mixed)) == 2 * len(parsed(STATES[0])) - 1
    done = tamias.run("query", f"SELECT * FROM <{service}/dataset/{name}/9> {{ ?s ?p ?o }}")
    assert (done.returncode, "has no version 9" in done.stderr) == (1, True)

"""The catalogue of an earlier time says what a query was answered at that time."""

import csv
import io
import json
import time
from datetime import UTC, datetime

import pytest

import tamias as library

STATEMENTS = """SELECT ?g ?s ?p ?o WHERE {
    GRAPH ?g { ?s ?p ?o } FILTER(STRSTARTS(STR(?g), "urn:tamias:catalogue")) }"""
ARC = "https://w3id.org/tamias/archive#"
DCAT = "http://www.w3.org/ns/dcat#"
DCT = "http://purl.org/dc/terms/"
DQV = "http://www.w3.org/ns/dqv#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
NOT_STORED = {ARC + "walkedAt", ARC + "valuesWithin", DCT + "accrualPeriodicity"}
"""Of these only the present value is stored, and of measures; docs/archive.md lists them."""


TITLES = {"My own", "Roads", "Trees", "Trees and shrubs", "Wells", "Plants"}


def is_stored(statement):
    _, subject, predicate, value = statement
    measured = subject.startswith("urn:tamias:measure:") or predicate == DQV + "hasQualityMeasurement"
    return not (measured or predicate in NOT_STORED or (predicate, value) == (TYPE, DCT + "Frequency"))


def now():
    time.sleep(0.01)
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def ask(tamias, *words):
    done = tamias.run("query", STATEMENTS, "--format", "csv", *words)
    assert done.returncode == 0, done.stderr
    return {tuple(row) for row in list(csv.reader(io.StringIO(done.stdout)))[1:]}


def table(name, *rows):
    return "".join(f"{line}\n" for line in (f"{name},n", *(f"{row},{len(row)}" for row in rows))).encode()


@pytest.fixture
def portal(site, reply):
    """A CKAN portal with the titles of its datasets in `site.titles`, and a file that it does not list."""
    site.titles = {"one": "Trees", "two": "Roads"}

    def record(name, title):
        file = {"id": f"r-{name}", "url": site.url(f"/{name}.csv"), "format": "CSV", "name": title}
        return {"id": name, "name": name, "title": title, "notes": "x", "resources": [file]}

    def search(handler):
        words = dict(pair.split("=") for pair in handler.path.partition("?")[2].split("&"))
        start, rows = int(words.get("start", 0)), int(words.get("rows", 10))
        results = [record(*each) for each in sorted(site.titles.items())[start : start + rows]]
        body = {"success": True, "result": {"count": len(site.titles), "results": results}}
        reply(200, json.dumps(body).encode(), **{"Content-Type": "application/json"})(handler)

    site.pages["/api/3/action/package_search?"] = search
    site.put = lambda name, *rows: site.pages.update(
        {f"/{name}.csv": reply(200, table(name, *rows), **{"Content-Type": "text/csv"})}
    )
    return site


CHANGES = [
    lambda site, reply: [site.put("one", "elm"), site.put("two", "A1"), site.put("own", "x")],
    lambda site, reply: [
        site.titles.update(one="Trees and shrubs", three="Wells"),
        site.put("one", "elm", "hazel"), site.put("three", "deep"),
        site.pages.update({"/own.csv": reply(410)}),
    ],
    lambda site, reply: [
        site.titles.pop("two"), site.titles.update(one="Plants"),
        site.pages.update({"/one.csv": reply(200, b"<p>Elm", **{"Content-Type": "text/html"})}),
        site.put("own", "x", "y"),
    ],
]  # fmt: skip
"""What is new before each of the visits."""


@pytest.fixture
def told(tamias, portal, reply):
    """The statements of the catalogue before all visits and after each of them, with the time of each."""
    tamias.env["TAMIAS_SCHEDULE__HARVESTS"] = "0.5"
    before = now()
    assert tamias.run("add", f"ckan:{portal.url('/')}").returncode == 0
    assert tamias.run("add", portal.url("/own.csv"), "--title", "My own").returncode == 0
    found = [(before, set()), (now(), ask(tamias))]
    for change in CHANGES:
        change(portal, reply)
        with library.Archive(tamias.data) as archive:
            known = [resource.url for resource in archive.resources()]
        done = tamias.crawl("--recrawl", *known)
        assert done.returncode == 0, done.stderr
        done = tamias.crawl("--recrawl")
        assert done.returncode == 0, done.stderr
        found.append((now(), ask(tamias)))
    return found


def test_the_catalogue_of_a_time_is_the_one_that_was_there_then(tamias, portal, told):
    for number, (at, then) in enumerate(told):
        found = ask(tamias, "--at", at)
        assert sorted(found - then) == [], number
        assert sorted(filter(is_stored, then - found)) == [], number
    assert ask(tamias, "--at", told[-1][0]) == told[-1][1]
    everything = [{tuple(row[1:]) for row in then} for _, then in told]
    assert [
        sorted({value for _, predicate, value in each if predicate == DCT + "title"} & TITLES)
        for each in everything
    ] == [
        [], ["My own"],
        ["My own", "Roads", "Trees"],
        ["My own", "Roads", "Trees", "Trees and shrubs", "Wells"],
        ["My own", "Plants", "Roads", "Trees", "Trees and shrubs", "Wells"],
    ]  # fmt: skip
    assert [sum(predicate == DCAT + "hasVersion" for _, predicate, _ in each) for each in everything] == [
        0, 0, 3, 5, 6,
    ]  # fmt: skip
    assert sum(predicate == ARC + "hasSuspect" for _, predicate, _ in everything[-1]) == 1
    assert tamias.run("remove", portal.url("/own.csv")).returncode == 0
    at, then = told[2]
    assert {predicate for _, _, predicate, _ in filter(is_stored, then - ask(tamias, "--at", at))} == {
        ARC + "state"
    }

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Dataset, NamedNode, RdfFormat, Store, parse, serialize

from tamias.features.dcat.activity import activity_quads
from tamias.model.capture import CaptureRecord, Extent, Hop, Outcome
from tamias.model.errors import UrlError
from tamias.model.site import Signal
from tamias.model.url import fetch_url
from tamias.model.vocabulary import METADATA_GRAPH, TERMS, VOCABULARY, address_iri, term
from tests.messages import saying

PAGE = Path(__file__).parents[3] / "docs" / "vocabulary.md"
RECORD = CaptureRecord(
    id="01990000-0000-7000-8000-000000000001",
    crawl=1,
    crawl_name="default",
    url="http://example.org/thing",
    started_at=1_767_225_600_123,
    ended_at=1_767_225_601_456,
    outcome=Outcome.OK,
    reason="200 OK",
    depth=2,
    hops=(
        Hop(
            url="http://example.org/thing",
            status=303,
            address="192.0.2.1",
            location="http://example.org/data",
        ),
        Hop(url="http://example.org/data", status=200, address="192.0.2.2"),
    ),
    final_url="http://example.org/data",
    status=200,
    declared_type="text/turtle; charset=utf-8",
    found_type="text/turtle",
    bytes=1234,
    sha256="ab" * 32,
    quads=17,
    links=5,
    problems=("line 3: no IRI", "line 9: no IRI"),
    extent=Extent(1, 0, 0, 100),
    renamed_graphs=(("urn:x:y", "http://example.org/data#graph=urn%3Ax%3Ay"),),
    signals=(Signal("header", "x-robots-tag", "noindex"),),
    worker="worker 1 on büro",
    agent="Tamias/0.1 (+https://example.org/bot)",
)
REFUSED = CaptureRecord(
    id="01990000-0000-7000-8000-000000000002",
    crawl=1,
    crawl_name="default",
    url="http://example.org/private",
    started_at=0,
    ended_at=0,
    outcome=Outcome.REFUSED,
    reason="robots.txt forbids /private",
    depth=0,
    final_url="http://example.org/private",
    worker="w",
    agent="Tamias",
)


def facts(record):
    """Predicate to values, of the activity itself."""
    store = Store()
    store.extend(activity_quads(record))
    rows = store.query(
        "PREFIX prov: <http://www.w3.org/ns/prov#>"
        "SELECT ?p ?o { GRAPH <urn:tamias:metadata> { ?a a prov:Activity ; ?p ?o } } ORDER BY ?p ?o"
    )
    found = {}
    for predicate, value in rows:
        found.setdefault(re.split("[#/]", predicate.value)[-1], []).append(value.value)
    return found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("startedAtTime", "2026-01-01T00:00:00.123Z"),
        ("endedAtTime", "2026-01-01T00:00:01.456Z"),
        ("wasAssociatedWith", "urn:tamias:worker:worker%201%20on%20b%C3%BCro"),
        ("generated", "http://example.org/data"),
        ("requestedUrl", "http://example.org/thing"),
        ("finalUrl", "http://example.org/data"),
        ("status", "200"),
        ("toldType", "text/turtle; charset=utf-8"),
        ("foundType", "text/turtle"),
        ("byteSize", "1234"),
        ("sha256", "ab" * 32),
        ("triples", "17"),
        ("links", "5"),
        ("depth", "2"),
        ("address", "192.0.2.2"),
        ("outcome", "ok"),
        ("reason", "200 OK"),
        ("crawl", "default"),
        ("userAgent", "Tamias/0.1 (+https://example.org/bot)"),
    ],
)
def test_an_activity_tells(name, value):
    assert facts(RECORD)[name] == [value]


def test_an_activity_tells_every_problem():
    assert facts(RECORD)["problem"] == ["line 3: no IRI", "line 9: no IRI"]


def test_all_is_in_the_metadata_graph():
    assert {quad.graph_name for quad in activity_quads(RECORD)} == {METADATA_GRAPH}


def test_every_redirect_is_told_and_the_last_answer_is_none():
    store = Store()
    store.extend(activity_quads(RECORD))
    rows = store.query(
        f"PREFIX t: <{VOCABULARY}> SELECT ?n ?url ?status ?address ?location {{ GRAPH ?g {{ ?a t:hop ?hop ."
        "?hop t:position ?n ; t:url ?url ; t:status ?status ; t:address ?address ; t:location ?location } }"
    )
    assert [[value.value for value in row] for row in rows] == [
        ["1", "http://example.org/thing", "303", "192.0.2.1", "http://example.org/data"]
    ]


def test_a_renamed_graph_tells_its_original_name():
    graph = NamedNode("http://example.org/data#graph=urn%3Ax%3Ay")
    quads = activity_quads(RECORD)
    assert [q.object.value for q in quads if (q.subject, q.predicate) == (graph, term("originalName"))] == [
        "urn:x:y"
    ]


def test_what_did_not_happen_is_not_told():
    assert set(facts(REFUSED)) == {
        "type",
        "startedAtTime",
        "endedAtTime",
        "wasAssociatedWith",
        "crawl",
        "userAgent",
        "requestedUrl",
        "finalUrl",
        "outcome",
        "reason",
        "depth",
        "triples",
        "links",
    }


@pytest.mark.parametrize("outcome", [Outcome.UNCHANGED, Outcome.FAILED, Outcome.GONE])
def test_only_a_document_that_came_is_a_result(outcome):
    assert "generated" not in facts(msgspec.structs.replace(RECORD, outcome=outcome))


def test_the_same_record_gives_the_same_quads():
    assert activity_quads(RECORD) == activity_quads(RECORD)


def test_nothing_a_server_says_breaks_the_quads():
    hostile = 'a> "b" .\n\x00\ud800\u202e<'
    record = msgspec.structs.replace(
        RECORD,
        declared_type=hostile,
        reason=hostile,
        problems=(hostile,),
        hops=(Hop(url=RECORD.url, status=302, address="192.0.2.1", location="http://[" + hostile),),
    )
    quads = activity_quads(record)
    lines = serialize(quads, format=RdfFormat.N_QUADS)
    assert Dataset(parse(lines, format=RdfFormat.N_QUADS)) == Dataset(quads)


def test_a_name_that_is_no_term_is_an_error():
    with pytest.raises(KeyError, check=saying("stauts")):
        term("stauts")


def test_every_term_has_one_line_in_the_documentation():
    assert sorted(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)) == sorted(TERMS)


def test_every_term_is_used():
    deferred = msgspec.structs.replace(RECORD, outcome=Outcome.FAILED, deferred=True)
    quads = [*activity_quads(RECORD), *activity_quads(deferred)]
    assert {quad.predicate.value.removeprefix(VOCABULARY) for quad in quads} >= TERMS


@pytest.mark.parametrize(
    "url",
    [
        "http://e/?a={b}|c^`\\d",
        "http://e/a|b[c]",
        "http://e/100%",
        "http://e/%zz",
        "http://[::1]:8080/?[a]",
        "mailto:a b{",
        "data:text/plain,<a>%",
        "urn:x:[é]",
    ],
)
def test_a_url_that_is_no_iri_is_made_one(url):
    assert NamedNode(address_iri(fetch_url(url)))


@given(st.text(max_size=30), st.sampled_from(["http://e/", "https://e/?", "http://", "ftp://u@e/", "urn:x:"]))
def test_every_url_is_made_an_iri(text, beginning):
    try:
        url = fetch_url(beginning + text)
    except UrlError:
        return
    assert NamedNode(address_iri(url))


def test_an_iri_is_left_as_it_is():
    assert address_iri("http://[::1]:81/a%20b/c;d?e=f&g='#h") == "http://[::1]:81/a%20b/c;d?e=f&g='#h"

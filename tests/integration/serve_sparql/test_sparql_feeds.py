"""Feeds by query: the new versions of what a SELECT names."""

from contextlib import closing
from xml.etree import ElementTree

import pytest

from tamias.archive.captures import insert_captures
from tamias.features.dcat.terms import CatalogueBases
from tamias.features.feeds import changes as feeds
from tamias.features.service import service
from tamias.model.capture import CaptureRecord, Outcome
from tamias.model.lease import Lease, Task
from tamias.model.site import Signal

A, B, HIDDEN, GROWING = (f"http://data.example/{name}.csv" for name in ("a", "b", "hidden", "growing"))
ALL = "SELECT DISTINCT ?dataset { ?dataset arc:hasPortal <http://data.gv.at> ; dc:hasVersion ?version }"
BASE = CatalogueBases().service
LEASE = Lease(host="", qid=1, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())
TASK = Task(uid=1, url="", crawl=1, depth=0, score=0.0)
SECRET = {"Authorization": "Bearer secret"}


@pytest.fixture(scope="module")
def archive(shared_corpus, shared_catalogue):
    """The ids of a dataset with three versions and of one with one, both of a portal; and of one that was
    hidden when its second version came."""
    shared_corpus.clear()
    names = [shared_corpus.put(A, b"a\n", b"b\n", b"c\n"), shared_corpus.put(B, b"x\n")]
    elsewhere = "http://other.example"
    names.append(shared_corpus.put(HIDDEN, b"h\n", b"i\n", portal=elsewhere))
    shared_corpus.put(GROWING, b"g\n", portal=elsewhere)
    _hide(shared_corpus, names[2])
    with (
        closing(shared_corpus.database.session()) as session,
        closing(shared_catalogue.refresher(session)) as refresher,
    ):
        refresher.round()
    return names


def _hide(corpus, name):
    newest = "SELECT capture::text FROM version WHERE resource = %b AND number = 2"
    [(capture,)] = corpus.session.transact(lambda cursor: cursor.execute(newest, (name,)).fetchall())
    record = CaptureRecord(
        id=capture, crawl=1, url=HIDDEN, started_at=0, ended_at=1, outcome=Outcome.OK, reason="", depth=0,
        final_url=HIDDEN, status=200, worker="w", agent="test",
        signals=tuple(Signal("header", "x-robots-tag", word) for word in ("noindex", "noarchive")),
    )  # fmt: skip
    corpus.session.transact(lambda cursor: insert_captures(cursor, [(LEASE, TASK, record)]))


@pytest.fixture(scope="module")
def client(archive, shared_corpus, shared_catalogue, client_of):
    with client_of(shared_corpus, shared_catalogue) as client:
        yield client


def followed(client, query, **words):
    answer = client.get("/feed", params={"sparql": query, "format": "json", **words})
    assert answer.status_code == 200, answer.text
    return [item["id"].removeprefix("urn:tamias:version:") for item in answer.json()["items"]]


def ids(name, *numbers):
    return [f"{name}_{number}" for number in numbers]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("SELECT (<{base}/dataset/{a}> AS ?d) {{}}", (3, 2, 1)),
        ("SELECT (<{url}> AS ?d) {{}}", (3, 2, 1)),
        ("SELECT (<{base}/dataset/{a}/2> AS ?v) {{}}", (2,)),
        ("SELECT (<{base}/api/v1/get/file/id/{a}_1> AS ?f) {{}}", (1,)),
        ("SELECT (<{base}/dataset/{a}> AS ?d) (<{base}/dataset/{a}/2> AS ?v) {{}}", (2,)),
        ("SELECT (<http://elsewhere.example/> AS ?d) {{}}", ()),
        ("SELECT (42 AS ?number) {{}}", ()),
    ],
)
def test_a_dataset_stands_for_its_versions_and_a_version_for_itself(client, archive, query, numbers):
    asked = query.format(base=BASE, a=archive[0], url=A)
    assert followed(client, asked) == ids(archive[0], *numbers)


def test_a_query_of_the_catalogue_is_followed_newest_first(client, archive):
    found = followed(client, ALL)
    assert found[:2] == ids(archive[0], 3, 2)
    assert sorted(found[2:]) == sorted([f"{archive[0]}_1", f"{archive[1]}_1"])


def test_a_new_version_is_told_without_the_query_being_asked_again(client, shared_corpus):
    query = f"SELECT (<{GROWING}> AS ?d) {{}}"
    before = followed(client, query)
    name = shared_corpus.put(GROWING, b"y\n", start=1_800_000_000_000)
    assert (before, followed(client, query)) == (ids(name, 1), ids(name, 2, 1))


def test_what_a_query_named_is_kept_for_some_seconds_only(client, shared_catalogue, monkeypatch):
    asked, ask = [], shared_catalogue.ask
    monkeypatch.setattr(shared_catalogue, "ask", lambda *words: [asked.append(1), ask(*words)][1])
    query = f"SELECT (<{B}> AS ?kept) {{}}"
    for _ in range(2):
        followed(client, query)
    monkeypatch.setattr(service.time, "monotonic", lambda: 10.0**9)
    followed(client, query)
    assert len(asked) == 2


def test_a_feed_by_query_leads_page_by_page_to_every_version(client, archive):
    address, found = "/feed", []
    words = {"params": {"sparql": ALL, "format": "json", "limit": "2"}}
    while address:
        told = client.get(address, **words).json()
        found += [item["id"] for item in told["items"]]
        address, words = told.get("next_url"), {}
    assert len(found) == len(set(found)) == 4


def test_a_time_narrows_the_feed(client, archive):
    assert followed(client, ALL, since="2026-01-02") == ids(archive[0], 3, 2)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "application/atom+xml"),
        ("text/html", "application/atom+xml"),
        ("application/feed+json", "application/feed+json"),
        ("application/json", "application/feed+json"),
    ],
)
def test_accept_chooses_the_form_of_the_feed(client, archive, accept, kind):
    answer = client.get("/feed", params={"sparql": ALL}, headers={"Accept": accept})
    assert answer.headers["content-type"].partition(";")[0] == kind


def test_the_atom_feed_names_the_page_of_each_version(client, archive):
    answer = client.get("/feed", params={"sparql": f"SELECT (<{B}> AS ?d) {{}}"})
    space = "{http://www.w3.org/2005/Atom}"
    links = ElementTree.fromstring(answer.text).findall(f"{space}entry/{space}link[@rel='alternate']")
    assert [link.get("href") for link in links] == [f"http://127.0.0.1:8080/dataset/{archive[1]}/1"]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({}, 400),
        ({"sparql": " "}, 400),
        ({"sparql": "SELECT nonsense"}, 400),
        ({"sparql": "ASK {}"}, 400),
        ({"sparql": "CONSTRUCT { ?s a ?o } { ?s a ?o }"}, 400),
        ({"sparql": "SELECT * { SERVICE <http://elsewhere.example/> { ?s ?p ?o } }"}, 400),
        ({"sparql": "SELECT * {}", "format": "rss"}, 400),
        ({"sparql": "SELECT * {}", "cursor": "x"}, 400),
    ],
)
def test_what_makes_no_feed_is_refused(client, archive, asked, status):
    answer = client.get("/feed", params=asked)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


def test_a_query_that_failed_is_asked_again(client, archive, monkeypatch):
    query = f"SELECT (<{B}> AS ?failed) {{}}"
    with monkeypatch.context() as patched:
        patched.setattr(feeds, "MOST_NAMED", 0)
        refused = client.get("/feed", params={"sparql": query})
    assert (refused.status_code, followed(client, query)) == (422, ids(archive[1], 1))


def test_a_feed_leaves_out_what_is_not_to_be_listed_but_for_the_owner(client, archive):
    asked = {"params": {"sparql": f"SELECT (<{HIDDEN}> AS ?d) {{}}", "format": "json"}}
    found = [len(client.get("/feed", **asked, **more).json()["items"]) for more in ({}, {"headers": SECRET})]
    assert found == [0, 2]


def test_a_download_by_query_leaves_out_what_is_withheld_but_for_the_owner(client, archive):
    query = {"params": {"q": f"SELECT (<{HIDDEN}> AS ?d) {{}}"}}
    told = [
        client.get("/api/v1/get/files/sparql", **query, **more).content for more in ({}, {"headers": SECRET})
    ]
    assert [f"{archive[2]}_2.csv".encode() in each.split(b"PK\x01\x02", 1)[0][:200] for each in told] == [
        False,
        True,
    ]

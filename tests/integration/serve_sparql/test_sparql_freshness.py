"""The store follows what is committed: resources, documents, what is gone; and is made anew."""

import hashlib
import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from tamias.archive.versions.resources import stop_resources
from tamias.features.catalogue.catalogue import CatalogueFollower, rebuild
from tamias.features.catalogue.documents import Documents
from tamias.features.catalogue.store.local_store import LocalGraphs
from tamias.features.dcat.profiles import keep_profiles
from tamias.features.dcat.terms import CatalogueBases
from tamias.features.tables.body import profile
from tamias.model.capture import Outcome
from tamias.model.errors import TamiasError
from tamias.settings import Settings

from .conftest import DAY, START

URL = "http://data.example/a.csv"
DOC = "http://d.example/doc"
OTHER = "http://d.example/other"


def line(value, graph=DOC):
    return f'<http://d.example/s> <http://d.example/p> "{value}" <{graph}> .\n'.encode()


@pytest.fixture
def ask(client):
    """The values of the only variable."""

    def values(query):
        answer = client.get("/sparql", params={"query": query})
        rows = answer.json()["results"]["bindings"]
        return sorted(next(iter(row.values()))["value"] for row in rows)

    return values


def numbers(ask):
    return ask(
        f"SELECT ?n {{ ?v dcat:isVersionOf/dcat:distribution/dcat:accessURL <{URL}> ; dcat:version ?n }}"
    )


def objects(ask):
    return ask("SELECT ?o { ?s <http://d.example/p> ?o }")


def test_what_was_there_before_is_found(corpus, refresher, ask):
    corpus.put(URL, b"a\n", b"b\n")
    corpus.crawl(DOC, line(1))
    refresher.round()
    assert (numbers(ask), objects(ask)) == (["1", "2"], ["1"])


def test_a_version_more_is_found_after_the_next_round(corpus, refresher, ask):
    refresher.round()
    corpus.put(URL, b"a\n")
    refresher.round()
    assert numbers(ask) == ["1"]


def test_a_state_that_changes_is_replaced(corpus, refresher, ask):
    name = corpus.put(URL, b"a\n")
    refresher.round()
    stop_resources(corpus.session, [name])
    refresher.round()
    assert ask("SELECT ?s { ?d arc:state ?s }") == ["stopped"]


def test_a_resource_that_is_taken_away_is_taken_from_the_store(corpus, refresher, ask):
    corpus.put(URL, b"a\n")
    refresher.round()
    corpus.session.transact(lambda cursor: cursor.execute("DELETE FROM resource"))
    refresher.round()
    assert ask("SELECT ?s { ?d arc:state ?s }") == []


def everything(catalogue):
    """What the store holds, by graphs."""
    query = "SELECT ?g ?s ?p ?o { GRAPH ?g { ?s ?p ?o } }"
    with catalogue.ask(query, "text/tab-separated-values").content as content:
        return sorted(content.read().decode().splitlines())


CHANGES = {
    "a version more": "INSERT INTO version SELECT resource, number + 1, captured_at + 1, sha256, byte_size, "
    "media_type, told_type, fingerprint, noise, gen_random_uuid() FROM version WHERE number = 3",
    "a version is taken": "DELETE FROM version WHERE number = 2",
    "a title": "UPDATE resource SET title = 'Another'",
    "a title of a source": "UPDATE source SET title = 'Of the source'",
    "a source with a title": "INSERT INTO source (resource, source, title, first_seen, last_seen) "
    "SELECT resource, 'http://p.example/2', 'Of another', 0, 0 FROM resource",
    "a source is taken": "DELETE FROM source",
    "a state": "UPDATE resource SET state = 'gone'",
    "a profile": "INSERT INTO profile (sha256, kind, made_at, profile) SELECT sha256, 'content', 0, "
    """'{"size": 9, "types": {"found": "text/csv"}, "tables": [{"name": "t", "rows": 7, "width": 1}]}' """
    "FROM version WHERE number = 1",
    "a resource is taken": "DELETE FROM resource",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_after_any_change_the_store_holds_what_one_that_is_made_anew_does(
    corpus, catalogue, refresher, change
):
    """Only what a change concerns is written; nothing else may then be out of date."""
    corpus.session.transact(lambda cursor: cursor.execute("DELETE FROM profile"))
    corpus.put(URL, b"a\n", b"b\n", b"c\n")
    refresher.round()
    before = everything(catalogue)
    corpus.session.transact(lambda cursor: cursor.execute(change))
    refresher.round()
    found = everything(catalogue)
    rebuild(corpus.database, corpus.data, Settings())
    anew = everything(catalogue)
    kept = [line for line in found if "<urn:tamias:catalogue>" not in line and ":term:" not in line]
    assert kept == [line for line in anew if "<urn:tamias:catalogue>" not in line and ":term:" not in line]
    assert found != before


def test_many_changes_at_once_leave_what_a_store_that_is_made_anew_holds(corpus, catalogue, refresher):
    """They go the way of the bulk loader, beside graphs that are replaced and removed."""
    urls = [f"http://data.example/{number}.csv" for number in range(25)]
    for url in urls:
        corpus.put(url, b"a\n")
    refresher.round()
    gone = corpus.put(urls[0], b"b\n", start=START + DAY)
    for url in urls[1:]:
        corpus.put(url, b"b\n", url.encode(), start=START + DAY)
    corpus.session.transact(lambda cursor: cursor.execute("DELETE FROM resource WHERE resource = %s", [gone]))
    refresher.round()
    found = everything(catalogue)
    rebuild(corpus.database, corpus.data, Settings())
    assert found == everything(catalogue)
    assert len([line for line in found if "previousVersion" in line]) == 2 * 24


def test_a_version_more_leaves_the_graphs_of_others_as_they_are(corpus, catalogue, refresher, monkeypatch):
    """What is sent to the store is the head and the new version, however many there are."""
    name = corpus.put(URL, *(b"%d\n" % number for number in range(20)))
    refresher.round()
    sent = []
    monkeypatch.setattr(LocalGraphs, "hold", lambda _, contents: sent.extend(contents))
    corpus.put(URL, b"one more\n", start=START + 30 * DAY)
    refresher.round()
    graphs = {graph for graph in sent if graph.startswith(f"urn:tamias:catalogue:{name}")}
    assert graphs == {f"urn:tamias:catalogue:{name}", f"urn:tamias:catalogue:{name}:21"}


def test_rounds_without_news_write_nothing_to_the_database(corpus, refresher, ask):
    corpus.put(URL, b"a\n")
    for _ in range(3):
        refresher.round()
    read = "SELECT array_agg(xmin::text || seen::text ORDER BY sink) FROM catalogue"
    before = corpus.session.fetch_all(read.encode())
    for _ in range(3):
        refresher.round()
    assert corpus.session.fetch_all(read.encode()) == before
    corpus.put(URL, b"b\n", start=START + DAY)
    refresher.round()
    assert numbers(ask) == ["1", "2"]


TABLE = b"id,name\n1,a\n2,b\n"
NEW = b"id,name\n1,a\n2,b\n3,c\n"


@pytest.fixture
def profile_content(corpus, tmp_path):
    """Makes the profile of a body and keeps it; no other is waited for."""
    corpus.session.transact(lambda cursor: cursor.execute("DELETE FROM profile_due"))

    def keep(content):
        path = tmp_path / "body"
        path.write_bytes(content)
        found = profile(path, media_type="text/csv", declared_type=None, name=URL)
        keep_profiles(corpus.session, {hashlib.sha256(content).hexdigest(): found}, START)

    return keep


def test_a_version_is_written_once_with_its_profile_by_who_has_patience(
    corpus, catalogue, refresher, profile_content, monkeypatch
):
    name = corpus.put(URL, TABLE)
    profile_content(TABLE)
    refresher.round()
    sent = []
    plain = LocalGraphs.hold
    monkeypatch.setattr(LocalGraphs, "hold", lambda it, graphs: (sent.extend(graphs), plain(it, graphs))[1])
    corpus.put(URL, NEW, start=START + DAY)
    refresher.round(patience=600)
    assert sent == []
    profile_content(NEW)
    refresher.round(patience=600)
    refresher.round(patience=600)
    own = sorted(graph for graph in sent if graph.startswith(f"urn:tamias:catalogue:{name}"))
    assert own == [f"urn:tamias:catalogue:{name}", f"urn:tamias:catalogue:{name}:2"]
    found = [line for line in everything(catalogue) if name in line]
    assert any(f"{name}:2" in line and "csvw#Column" in line for line in found)
    rebuild(corpus.database, corpus.data, Settings())
    assert found == [line for line in everything(catalogue) if name in line]


def test_what_waits_for_a_profile_is_not_lost_with_who_waits(
    corpus, catalogue, refresher, profile_content, ask
):
    corpus.put(URL, TABLE)
    profile_content(TABLE)
    refresher.round()
    corpus.put(URL, NEW + b"4,d\n", start=START + DAY)
    refresher.round(patience=600)
    with closing(corpus.database.session()) as session, closing(catalogue.refresher(session)) as another:
        assert numbers(ask) == ["1"]
        another.round(patience=600)
        assert numbers(ask) == ["1"]
        another.round()
        assert numbers(ask) == ["1", "2"]


def test_patience_ends_though_nobody_makes_profiles(corpus, refresher, ask):
    corpus.put(URL, TABLE)
    refresher.round()
    corpus.put(URL, NEW + b"5,e\n", start=START + DAY)
    refresher.round(patience=1)
    time.sleep(1.2)
    refresher.round(patience=1)
    assert numbers(ask) == ["1", "2"]


def test_an_empty_archive_has_no_statements(catalogue, refresher):
    refresher.round()
    assert everything(catalogue)[1:] == []


def test_a_transaction_that_commits_late_is_not_missed(corpus, refresher, ask):
    refresher.round()
    with corpus.database._connection() as late:
        late.autocommit = False
        late.execute("SELECT pg_current_xact_id()")
        corpus.put("http://data.example/b.csv", b"b\n")
        refresher.round()
        late.execute(
            "INSERT INTO resource (resource, url, host, added_at) VALUES (%s, %s, 'data.example', 1)",
            ["a" * 24, "http://data.example/late.csv"],
        )
        refresher.round()
        late.commit()
    refresher.round()
    assert "a" * 24 in ask("SELECT ?i { ?d arc:state ?s ; dct:identifier ?i }")


def test_a_document_that_is_captured_again_is_replaced(corpus, refresher, ask):
    corpus.crawl(DOC, line(1))
    refresher.round()
    corpus.crawl(DOC, line(2))
    refresher.round()
    assert objects(ask) == ["2"]


@pytest.mark.parametrize("outcome", [Outcome.GONE, Outcome.OK])
def test_a_document_that_holds_nothing_any_more_is_taken_away(corpus, refresher, ask, outcome):
    corpus.crawl(DOC, line(1))
    refresher.round()
    corpus.crawl(DOC, b"", outcome)
    refresher.round()
    assert objects(ask) == []


def test_two_documents_may_write_into_one_graph(corpus, refresher, ask):
    corpus.crawl(DOC, line(1))
    corpus.crawl(OTHER, line(2, DOC) + line(3, OTHER))
    refresher.round()
    corpus.crawl(DOC, line(4))
    refresher.round()
    assert objects(ask) == ["2", "3", "4"]


def test_a_capture_that_was_long_under_way_is_found(corpus, refresher, ask):
    corpus.crawl(DOC, line(1))
    refresher.round()
    corpus.crawl(OTHER, line(2, OTHER), ago=20_000)
    refresher.round()
    assert objects(ask) == ["1", "2"]


def test_a_follower_brings_news_within_seconds(corpus, catalogue, ask):
    following = CatalogueFollower(catalogue, corpus.database, seconds=0.2)
    following.start()
    try:
        corpus.put(URL, b"a\n")
        corpus.crawl(DOC, line(1))
        until(lambda: (numbers(ask), objects(ask)) == (["1"], ["1"]))
    finally:
        following.close()


def test_news_whose_writer_was_killed_before_they_were_safe_are_brought_again(
    corpus, catalogue, refresher, ask, monkeypatch
):
    refresher.round()
    corpus.put(URL, b"a\n")
    hold = LocalGraphs.hold

    def hold_and_kill(self, contents):
        hold(self, contents)
        kill_writer(catalogue)

    with monkeypatch.context() as patch:
        patch.setattr(LocalGraphs, "hold", hold_and_kill)
        with pytest.raises(TamiasError):
            refresher.round()
    assert numbers(ask) == []
    refresher.round()
    assert numbers(ask) == ["1"]


def kill_writer(catalogue):
    keeper = catalogue.local.running().keeper_pid
    children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    [writer] = [pid for pid in children if holds_lock(pid)]
    os.kill(int(writer), signal.SIGKILL)


def holds_lock(pid):
    """Whether a process has the lock of RocksDB, which only one that writes has."""
    files = (os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir())
    return any(name.endswith("/oxigraph/LOCK") for name in files)


def test_the_first_query_after_a_while_sees_what_was_committed_before_it(corpus, catalogue, ask):
    following = CatalogueFollower(catalogue, corpus.database, seconds=0.1)
    following.start()
    try:
        for number in range(3):
            following._queried_at = float("-inf")  # as if nobody had asked for a while
            until(lambda: following._is_resting)
            corpus.put(f"{URL}/{number}", b"a\n")
            corpus.crawl(f"{DOC}/{number}", line(number, f"{DOC}/{number}"))
            assert objects(ask) == list(map(str, range(number + 1)))
            assert len(ask("SELECT ?v { ?v dcat:isVersionOf [] }")) == number + 1
    finally:
        following.close()


def test_a_follower_that_rests_ends_at_once(corpus, catalogue):
    following = CatalogueFollower(catalogue, corpus.database, seconds=0.1)
    following.start()
    until(lambda: following._is_resting)
    following.close()
    assert not following._is_resting


def test_documents_that_a_round_has_left_are_brought_although_nobody_asks(
    corpus, catalogue, refresher, monkeypatch
):
    many = 20
    monkeypatch.setattr("tamias.features.catalogue.documents._AT_ONCE", 1)
    monkeypatch.setattr("tamias.features.catalogue.catalogue._DOCUMENT_SECONDS", 0.0)
    monkeypatch.setattr("tamias.features.catalogue.catalogue._UNASKED_SECONDS", 3600.0)
    refresher.round()
    for number in range(many):
        corpus.crawl(f"{DOC}/{number}", line(number, f"{DOC}/{number}"))
    following = CatalogueFollower(catalogue, corpus.database, seconds=0.01)
    following.start()
    try:
        until(lambda: following._is_resting)
    finally:
        following.close()
    assert len([each for each in everything(catalogue) if f"<{DOC}/" in each]) == many


def test_a_follower_that_is_catching_up_ends_soon_and_the_next_round_brings_the_rest(
    corpus, catalogue, refresher, ask, monkeypatch
):
    many, begun, bring = 60, threading.Event(), Documents._bring
    monkeypatch.setattr("tamias.features.catalogue.documents._AT_ONCE", 1)
    refresher.round()
    for number in range(many):
        corpus.crawl(f"{DOC}/{number}", line(number, f"{DOC}/{number}"))
    following = CatalogueFollower(catalogue, corpus.database, seconds=0.1)

    def bring_when_it_is_to_end(self, claims):
        begun.set()
        assert following._ending.wait(60)
        return bring(self, claims)

    with monkeypatch.context() as patch:
        patch.setattr(Documents, "_bring", bring_when_it_is_to_end)
        following.start()
        assert begun.wait(60)
        following.close()
    assert 0 < len(objects(ask)) < many
    refresher.round()
    assert objects(ask) == sorted(map(str, range(many)))


def test_new_versions_do_not_wait_for_all_documents(corpus, catalogue, refresher, ask, monkeypatch):
    many, bring = 60, Documents._bring
    monkeypatch.setattr("tamias.features.catalogue.documents._AT_ONCE", 1)
    monkeypatch.setattr("tamias.features.catalogue.catalogue._DOCUMENT_SECONDS", 0.2)
    refresher.round()
    for number in range(many):
        corpus.crawl(f"{DOC}/{number}", line(number, f"{DOC}/{number}"))

    def bring_slowly(self, claims):
        time.sleep(0.1)
        return bring(self, claims)

    with monkeypatch.context() as patch:
        patch.setattr(Documents, "_bring", bring_slowly)
        following = CatalogueFollower(catalogue, corpus.database, seconds=0.1)
        following.start()
        try:
            until(lambda: objects(ask))
            corpus.put(URL, b"a\n")
            until(lambda: numbers(ask) == ["1"])
            assert len(objects(ask)) < many
        finally:
            following.close()


def test_of_two_services_the_elder_says_what_the_catalogue_begins_with(corpus, catalogue, ask, monkeypatch):
    """Each with an address of its own would else make the catalogue anew again and again."""
    monkeypatch.setattr("tamias.features.catalogue.catalogue.YOUNGER_SECONDS", 0.3)
    corpus.put(URL, b"a\n")
    elder, younger = (
        CatalogueFollower(
            catalogue, corpus.database, CatalogueBases(service=f"http://{name}.example"), seconds=0.1
        )
        for name in ("elder", "younger")
    )
    elder.start()
    until(lambda: services(ask) == ["http://elder.example"])
    younger.start()
    try:
        made = (corpus.data / "catalogue" / "store" / "id").read_text()
        corpus.crawl(DOC, line(1))
        until(lambda: objects(ask) == ["1"])
        time.sleep(1)
        assert (corpus.data / "catalogue" / "store" / "id").read_text() == made
        elder.close()
        until(lambda: services(ask) == ["http://younger.example"])
    finally:
        elder.close()
        younger.close()


def services(ask):
    return [
        iri.removesuffix("/catalogue") for iri in ask("SELECT ?c { ?c a dcat:Catalog ; dcat:dataset [] }")
    ]


def until(holds):
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_store_that_is_made_anew_holds_the_same(corpus, catalogue, refresher, ask):
    corpus.put(URL, b"a\n", b"b\n")
    corpus.crawl(DOC, line(1))
    refresher.round()
    before = ask("SELECT ?x { { ?x ?p ?o } UNION { ?s ?x ?o } FILTER(isIRI(?x)) }")
    assert rebuild(corpus.database, corpus.data, Settings()) == 1
    assert ask("SELECT ?x { { ?x ?p ?o } UNION { ?s ?x ?o } FILTER(isIRI(?x)) }") == before


def test_news_are_brought_to_a_store_that_another_process_made_anew(corpus, catalogue, refresher, ask):
    refresher.round()
    rebuild(corpus.database, corpus.data, Settings())
    corpus.crawl(DOC, line(1))
    refresher.round()
    assert objects(ask) == ["1"]


def test_a_portal_that_is_seen_is_found(corpus, refresher, ask):
    refresher.round()
    words = "INSERT INTO portal (url, kind, first_seen) VALUES ('http://p.example/', 'ckan', 1)"
    corpus.session.transact(lambda cursor: cursor.execute(words))
    refresher.round()
    assert ask("SELECT ?l { <http://p.example/> rdfs:label ?l }") == ["p.example"]


def test_a_document_that_the_segment_does_not_hold_keeps_no_other_away(corpus, refresher, ask):
    corpus.crawl(OTHER, line(2, OTHER))
    corpus.crawl(DOC, line(1))
    segments = sorted((corpus.data / "rdf").iterdir())
    segments[-2].write_bytes(b"")
    refresher.round()
    assert objects(ask) == ["1"]

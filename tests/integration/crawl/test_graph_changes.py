"""What changed in crawled documents that are not archived: diffs, a second crawl, an export of news."""

import json
import time
from datetime import UTC, datetime

import pytest
from pyoxigraph import Literal, NamedNode, RdfFormat, parse
from rdflib import Graph
from rdflib.compare import isomorphic

import tamias as library
from tamias.archive.file_store import segments_of
from tamias.archive.moments import first_millisecond
from tamias.features.diffs.graph_changes import changes_between
from tamias.model.errors import UsageError
from tamias.model.item import NEVER

SAYS = "<http://v.example/says>"
OLD = {
    "/kept.ttl": f'<#a> {SAYS} "kept", [ {SAYS} "deep" ] .',
    "/changed.ttl": f'<#a> {SAYS} "one", "two" ; <http://v.example/in> [ {SAYS} "node", "first" ] .',
    "/gone.ttl": f'<#a> {SAYS} "gone" .',
}
NEW = OLD | {
    "/changed.ttl": f'<#a> {SAYS} "two", "three" ; <http://v.example/in> [ {SAYS} "node", "second" ] .',
    "/kept.ttl": OLD["/kept.ttl"] + "\n# other bytes",
}


@pytest.fixture
def crawled(tamias, site, reply):
    """Documents crawled twice by one crawl, and the time between."""
    site.pages |= {name: text.encode() for name, text in OLD.items()}
    assert tamias.crawl(*map(site.url, OLD), "--depth", "0").returncode == 0
    time.sleep(0.05)
    between = datetime.now(UTC).isoformat(timespec="milliseconds")
    site.pages |= {name: text.encode() for name, text in NEW.items()} | {"/gone.ttl": reply(410)}
    again = tamias.crawl("--again")
    assert again.returncode == 0, again.stderr
    return between, again.stderr


def output(tamias, *words):
    done = tamias.run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_second_crawl_visits_everything_once_more_and_says_what_changed(crawled, site, tamias):
    assert all([path for path, _ in site.log].count(name) == 2 for name in OLD)
    assert "0 added, 1 changed, 1 removed" in crawled[1]
    assert f"~ {site.url('/changed.ttl')}  +2 -2" in crawled[1]
    assert f"- {site.url('/gone.ttl')}  +0 -1" in crawled[1]
    assert site.url("/kept.ttl") not in crawled[1]
    done = tamias.crawl("--again", site.url("/kept.ttl"))
    assert done.returncode == 2
    assert "--crawl NAME" in done.stderr


def test_a_document_is_compared_with_its_state_before(crawled, site, tamias):
    found = json.loads(output(tamias, "diff", site.url("/changed.ttl"), "--json"))
    assert found["kind"] == "triples"
    said = {(each["what"], (each.get("new") or each.get("old")).split('"')[1]) for each in found["changes"]}
    assert {("added", "three"), ("removed", "one"), ("added", "second"), ("removed", "first")} == said
    update = output(tamias, "diff", site.url("/changed.ttl"), "1", "2", "--sparql-update")
    assert "DELETE" in update
    assert tamias.run("diff", site.url("/changed.ttl"), "3").returncode == 1
    assert json.loads(output(tamias, "diff", site.url("/kept.ttl"), "--json"))["changes"] == []


def test_all_graphs_are_compared_with_a_time(crawled, site, tamias):
    found = json.loads(output(tamias, "diff", "--crawl", "--since", crawled[0], "--json"))
    kinds = {site.url("/changed.ttl"): "changed", site.url("/gone.ttl"): "removed"}
    assert found["what"] == kinds
    assert found["documents"][site.url("/gone.ttl")] == {"added": 0, "removed": 1}
    counts = {"added": found["added"], "removed": found["removed"]}
    assert list(found["hosts"].values()) == [counts]
    assert found["predicates"] == {"http://v.example/says": {"added": 2, "removed": 3}}
    patch = output(tamias, "diff", "--crawl", "--since", crawled[0], "--rdf-patch").splitlines()
    assert f'D <{site.url("/gone.ttl")}#a> {SAYS} "gone" <{site.url("/gone.ttl")}> .' in patch
    text = output(tamias, "diff", "--crawl", "--since", crawled[0])
    assert "0 added, 1 changed, 1 removed" in text


def test_snapshots_are_compared_graph_by_graph(crawled, site, tamias):
    for name, at in (("before", crawled[0]), ("after", datetime.now(UTC).isoformat())):
        output(tamias, "snapshot", name, "--at", at, "--title", name)
    found = json.loads(output(tamias, "diff", "--snapshot", "before", "after", "--json"))
    assert found["what"] == {site.url("/changed.ttl"): "changed", site.url("/gone.ttl"): "removed"}
    assert json.loads(output(tamias, "diff", "--snapshot", "after", "after", "--json"))["what"] == {}
    query = "CONSTRUCT { ?s ?p ?o } FROM <http://127.0.0.1:8080/snapshot/before> { ?s ?p ?o }"
    graph = Graph().parse(data=output(tamias, "query", query, "--format", "nquads"), format="nt")
    wanted = Graph()
    for name, text in OLD.items():
        wanted.parse(data=text, format="turtle", publicID=site.url(name))
    assert isomorphic(graph, wanted)


def test_an_export_since_a_time_has_only_what_changed(crawled, site, tamias):
    graphs = {
        quad.graph_name.value
        for quad in parse(
            output(tamias, "export", "--graph", "data", "--since", crawled[0]).encode(),
            format=RdfFormat.N_QUADS,
        )
    }
    assert graphs == {site.url("/changed.ttl")}


def test_a_history_answers_lookups_in_all_states(crawled, site, tamias):
    now = datetime.now(UTC)
    with library.Archive(tamias.data) as archive:
        history = archive.graph_history(site.url("/changed.ttl"))
        assert len(history.times) == 2
        pattern = (None, NamedNode("http://v.example/says"), None)
        for at, texts in (
            (crawled[0], {"one", "two", "node", "first"}),
            (now, {"two", "three", "node", "second"}),
        ):
            assert {quad.object.value for quad in history.at(at, pattern)} == texts
        added, removed = history.changes(crawled[0], now, (NamedNode(site.url("/changed.ttl#a")), None, None))
        assert {quad.object.value for quad in added if isinstance(quad.object, Literal)} == {"three"}
        assert {quad.object.value for quad in removed if isinstance(quad.object, Literal)} == {"one"}
        spans = dict(history.versions((None, None, Literal("two"))))
        assert list(spans.values()) == [[(history.times[0], None)]]
        assert history.versions((None, None, Literal("one")))[0][1] == [tuple(history.times)]
        gone = archive.graph_history(site.url("/gone.ttl"))
        assert gone.at(now) == []
        assert len(gone.at(crawled[0])) == 1


def test_a_comparison_ends_at_its_limits(crawled, tamias):
    times = first_millisecond(crawled[0]), NEVER
    with library.Archive(tamias.data) as archive:
        place = archive.session, segments_of(archive.session, archive.data)
        assert not changes_between(*place, *times, (4, 10_000)).truncated
        cut = changes_between(*place, *times, (4, 10))
        assert (cut.truncated, cut.what) == (True, {})
        with pytest.raises(UsageError, match="diff --crawl"):
            changes_between(*place, *times, (3, 10_000))

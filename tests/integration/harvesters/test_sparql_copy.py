"""Whole endpoints copied through caps, without a stable order, of every shape of data."""

import re

import pytest
from pyoxigraph import DefaultGraph, RdfFormat, parse

from tamias.features.sparql_copy.copying import SparqlHarvester
from tests.messages import unsaid

XSD = "http://www.w3.org/2001/XMLSchema#"
SD = "http://www.w3.org/ns/sparql-service-description#"


def triple(subject, predicate, value, graph=None):
    name = f"<http://example.org/{graph}> " if graph else ""
    return f"{subject} <http://example.org/{predicate}> {value} {name}.\n"


def many_subjects(graph=None, subjects=120):
    return "".join(
        triple(f"<http://example.org/s{number:04}>", f"p{each}", f'"{number * each}"', graph)
        for number in range(subjects)
        for each in range(5)
    )


def literals():
    forms = [
        '"plain"', '"plain"@en', '"plain"@de', f'"1"^^<{XSD}integer>', f'"01"^^<{XSD}integer>', '"1"',
        r'"two\nlines"', r'"a \"quoted\" word"', r'"back\\slash \\u0041 \\U0001F600"', '"täglich 日本 😀"',
        '""', r'"tab\there"', r'"\r\n"', f'"x"^^<{XSD}anyURI>', "<http://example.org/iri>",
        '"http://example.org/iri"', '"\'"',
    ]  # fmt: skip
    return "".join(
        triple(f"<http://example.org/s{number % 3}>", f"p{number % 7}", form)
        for number in range(21)
        for form in forms
    )


def blank_nodes(count=150):
    return "".join(
        triple(f"_:b{number}", "label", f'"{number}"')
        + triple(f"_:b{number}", "type", "<http://example.org/Thing>")
        + triple(f"_:b{number}", "next", f"_:b{(number + 1) % count}")
        + triple(f"<http://example.org/s{number % 10}>", "has", f"_:b{number}")
        for number in range(count)
    )


def one_heavy_subject(count=1_000):
    return "".join(
        triple("<http://example.org/heavy>", "iri", f"<http://example.org/o{number}>")
        + triple("<http://example.org/heavy>", "text", f'"text {number % 50}"@l{chr(97 + number // 50 % 26)}')
        + triple("<http://example.org/heavy>", f"rare{number % 400}", f'"{number}"^^<{XSD}integer>')
        + triple("<http://example.org/heavy>", "same", f'"same"^^<http://example.org/type{number}>')
        + triple("<http://example.org/heavy>", "part", f"_:n{number}")
        for number in range(count)
    )


def thirty_graphs():
    small = "".join(many_subjects(f"g{number}", subjects=1 + number) for number in range(29))
    return small + many_subjects("large", 300) + triple("_:x", "in", "_:y", "large") + many_subjects()


SHAPES = {
    "nothing": str,
    "subjects": many_subjects,
    "literals": literals,
    "blank nodes": blank_nodes,
    "a heavy subject": one_heavy_subject,
    "thirty graphs": thirty_graphs,
}


def data(copied):
    """All quads but the graph of the service description."""
    return [quad for quad in copied.quads if not str(quad.graph_name).endswith("#service-description>")]


@pytest.mark.parametrize("shuffled", [False, True], ids=["ordered", "unordered"])
@pytest.mark.parametrize("cap", [None, 100])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_statement_comes_under_any_cap(shape, cap, shuffled, proxy, sparql_server, copied, comparable):
    sparql_server.load(SHAPES[shape]())
    proxy.cap, proxy.shuffled = cap, shuffled
    found = copied(SparqlHarvester(), proxy.url, "sparql")
    assert comparable(data(found)) == comparable(sparql_server.content())
    assert found.end.complete, found.end.reason


def test_the_service_description_is_among_the_statements(proxy, copied):
    found = copied(SparqlHarvester(), proxy.url, "sparql")
    assert any(quad.predicate.value == SD + "endpoint" for quad in found.quads)


def test_a_union_of_graphs_as_default_graph_is_not_stored_twice(
    union_proxy, union_server, copied, comparable
):
    union_server.load(
        many_subjects("g1")
        + many_subjects("g2")
        + blank_nodes(20).replace(" .\n", " <http://example.org/g3> .\n")
    )
    union_proxy.cap = 100
    found = copied(SparqlHarvester(), union_proxy.url, "sparql")
    assert comparable(data(found)) == comparable(union_server.content())
    assert found.end.complete, found.end.reason


def test_what_only_the_default_graph_of_a_union_has_is_stored(union_proxy, union_server, copied, comparable):
    union_server.load(many_subjects("g1") + literals())
    union_proxy.cap = 100
    union_proxy.description = f"<> <{SD}feature> <{SD}UnionDefaultGraph> ."
    found = copied(SparqlHarvester(), union_proxy.url, "sparql")
    assert comparable(data(found)) == comparable(union_server.content())


NOT_IN_A_GRAPH = r"NOT EXISTS { GRAPH"


@pytest.fixture
def slow_union(union_proxy, union_server):
    """A union of graphs that has some statements of its own, and takes long to say which."""
    union_server.load(
        many_subjects("g1", 80)
        + many_subjects("g2", 60).replace("/s0", "/t0")
        + blank_nodes(20).replace(" .\n", " <http://example.org/g3> .\n")
        + many_subjects(None, 50).replace("/s0", "/u0")
        + "".join(triple("_:own", f"label{number}", f'"{number}"') for number in range(30))
    )
    union_proxy.description = f"<> <{SD}feature> <{SD}UnionDefaultGraph> ."
    union_proxy.slow = NOT_IN_A_GRAPH
    return union_proxy


def own_of_a_union(content):
    """What an endpoint shows of these quads: the default graph's, if no named graph has them."""
    quads = list(parse(content, format=RdfFormat.N_QUADS))
    named = {quad.triple for quad in quads if quad.graph_name != DefaultGraph()}
    return [quad for quad in quads if quad.graph_name != DefaultGraph() or quad.triple not in named]


@pytest.mark.parametrize("shuffled", [False, True], ids=["ordered", "unordered"])
def test_a_union_is_compared_here_where_its_server_takes_long_for_it(
    shuffled, slow_union, union_server, copied, comparable
):
    slow_union.cap, slow_union.shuffled = 100, shuffled
    found = copied(SparqlHarvester(), slow_union.url, "sparql")
    assert comparable(data(found)) == comparable(own_of_a_union(union_server.content()))
    assert len(data(found)) == len(set(data(found)))
    assert found.end.complete, found.end.reason
    dear = [query for query in slow_union.asked if re.search(NOT_IN_A_GRAPH, query)]
    assert len(dear) == 2
    assert all("LIMIT 20 }" in query for query in dear)


@pytest.mark.parametrize("steps", [4, 8, 10, 12])
def test_a_union_that_is_compared_here_is_whole_after_a_break(
    steps, slow_union, union_server, copied, comparable
):
    slow_union.cap = 100
    harvester = SparqlHarvester()
    first = copied(harvester, slow_union.url, "sparql", until=lambda had: len(had) == steps)
    assert first.end is None
    second = copied(harvester, slow_union.url, "sparql", state=first.steps[-1].state)
    both = data(first) + data(second)
    assert comparable(both) == comparable(own_of_a_union(union_server.content()))
    assert len(both) == len(set(both))
    assert second.end.complete, second.end.reason


def test_a_union_that_counts_a_statement_once_for_each_graph_is_compared_without_loss(
    slow_union, union_server, copied, comparable
):
    union_server.load(many_subjects("g1", 40) + many_subjects("g2", 60) + many_subjects(None, 70))
    found = copied(SparqlHarvester(), slow_union.url, "sparql")
    assert comparable(data(found)) == comparable(own_of_a_union(union_server.content()))
    assert not unsaid(found.end.reason, "850")


def test_of_a_union_without_statements_of_its_own_the_default_graph_is_not_requested(
    slow_union, union_server, copied, comparable
):
    union_server.load(many_subjects("g1", 40) + many_subjects("g2", 60).replace("/s0", "/t0"))
    found = copied(SparqlHarvester(), slow_union.url, "sparql")
    assert comparable(data(found)) == comparable(union_server.content())
    assert found.end.complete, found.end.reason
    windows = [query for query in slow_union.pages if not re.search("isBlank|isTRIPLE|GRAPH", query)]
    assert windows == ["SELECT ?s ?p ?o WHERE { ?s ?p ?o } LIMIT 1"]


def test_a_default_graph_that_holds_more_than_the_others_is_stored_with_all_it_holds(
    proxy, sparql_server, copied, comparable
):
    sparql_server.load(many_subjects("g1", 20) + many_subjects(None, 30))
    found = copied(SparqlHarvester(), proxy.url, "sparql")
    assert comparable(data(found)) == comparable(sparql_server.content())


def test_without_counts_every_statement_comes_and_the_doubt_is_said(proxy, sparql_server, copied, comparable):
    sparql_server.load(thirty_graphs() + one_heavy_subject(250))
    proxy.cap, proxy.refuses, proxy.shuffled = 100, "COUNT", True
    found = copied(SparqlHarvester(), proxy.url, "sparql")
    assert comparable(data(found)) == comparable(sparql_server.content())
    assert not found.end.complete
    assert "does not count" in found.end.reason


def test_labels_made_for_each_answer_hold_together_where_blank_nodes_fit_one(
    proxy, sparql_server, copied, comparable
):
    sparql_server.load(many_subjects() + blank_nodes(20))
    proxy.cap, proxy.relabelled = 100, True
    found = copied(SparqlHarvester(), proxy.url, "sparql")
    assert comparable(data(found)) == comparable(sparql_server.content())
    assert found.end.complete, found.end.reason


def test_labels_made_for_each_answer_are_kept_apart_where_they_do_not_fit(proxy, sparql_server, copied):
    sparql_server.load(many_subjects() + blank_nodes())
    proxy.cap, proxy.relabelled = 100, True
    found = copied(SparqlHarvester(), proxy.url, "sparql")
    assert not found.end.complete
    assert "blank nodes relabelled" in found.end.reason
    assert [problem for problem in found.problems if "blank nodes" in problem.what]
    assert len({str(quad) for quad in data(found)}) == 600 + 4 * 150


def test_a_server_that_takes_no_post_is_asked_with_get(proxy, sparql_server, copied, comparable):
    sparql_server.load(many_subjects(subjects=400))
    proxy.posts = False
    found = copied(SparqlHarvester(page=1_000), proxy.url, "sparql")
    assert comparable(data(found)) == comparable(sparql_server.content())


@pytest.mark.parametrize("form", ["application/sparql-results+xml", "text/tab-separated-values"])
def test_a_server_that_answers_csv_for_json_is_asked_for_another_form(
    form, proxy, sparql_server, copied, comparable
):
    sparql_server.load(literals() + blank_nodes(10) + many_subjects("g", 10))
    proxy.gives = {"application/sparql-results+json": "text/csv"}
    if "tab" in form:
        proxy.gives["application/sparql-results+xml"] = "text/csv"
    found = copied(SparqlHarvester(page=100), proxy.url, "sparql")
    assert comparable(data(found)) == comparable(sparql_server.content())
    assert found.end.complete, found.end.reason


def test_a_server_without_select_is_copied_by_construct(proxy, sparql_server, copied, comparable):
    sparql_server.load(many_subjects() + literals())
    proxy.refuses = "^SELECT"
    found = copied(SparqlHarvester(page=100), proxy.url, "sparql")
    assert comparable(data(found)) == comparable(sparql_server.content())
    assert not found.end.complete


def test_a_graph_that_is_begun_again_in_another_way_has_each_statement_once(proxy, sparql_server, copied):
    same = "".join(many_subjects(graph, 60 if graph == "large" else 2) for graph in ("a", "b", "large"))
    sparql_server.load(same)
    proxy.refuses = r"OFFSET \d{3}"
    found = copied(SparqlHarvester(page=100), proxy.url, "sparql")
    assert found.end.complete, found.end.reason
    assert any("MD5" in query for query in proxy.pages)
    loaded = parse(sparql_server.content(), format=RdfFormat.N_QUADS)
    assert sorted(str(quad) for quad in data(found)) == sorted(map(str, loaded))


def test_a_server_without_hashes_and_order_is_paged_by_number(proxy, sparql_server, copied, comparable):
    sparql_server.load(many_subjects(subjects=60))
    proxy.refuses = "MD5|ORDER BY"
    found = copied(SparqlHarvester(page=100), proxy.url, "sparql")
    assert comparable(data(found)) == comparable(sparql_server.content())


def test_pages_by_number_that_do_not_join_are_said_not_to(proxy, sparql_server, copied):
    sparql_server.load(many_subjects(subjects=60))
    proxy.refuses, proxy.shuffled = "MD5|ORDER BY", True
    found = copied(SparqlHarvester(page=100), proxy.url, "sparql")
    assert not found.end.complete
    assert "the order changes" in found.end.reason


def test_the_limit_on_statements_ends_a_copy_and_is_named(proxy, sparql_server, copied):
    sparql_server.load(many_subjects())
    found = copied(SparqlHarvester(page=100, most_statements=250), proxy.url, "sparql")
    assert 250 < len(data(found)) < 400
    assert "most_statements (250)" in found.end.reason

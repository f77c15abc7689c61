"""Queries are sound SPARQL whatever terms are in them, and request just what they say."""

import pytest
from hypothesis import given
from hypothesis import strategies as some
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Store

from tamias.features.sparql_copy import queries
from tamias.features.sparql_copy.queries import Span

EXAMPLE = "http://example.org/"
DATA = f"""
<{EXAMPLE}s1> <{EXAMPLE}p1> "a" . <{EXAMPLE}s1> <{EXAMPLE}p2> "a"@en , _:x .
<{EXAMPLE}s2> <{EXAMPLE}p1> <{EXAMPLE}o> .
_:x <{EXAMPLE}p1> "b" . _:x <{EXAMPLE}p2> _:y .
<{EXAMPLE}g> {{ <{EXAMPLE}s1> <{EXAMPLE}p1> "a" , "c" . }}
"""


@pytest.fixture(scope="module")
def store():
    store = Store()
    store.load(DATA.encode(), format=RdfFormat.TRIG)
    return store


PATTERNS = {
    queries.statements(None): 6,
    queries.statements(EXAMPLE + "g"): 2,
    queries.statements(None, content=queries.BLANK): 3,
    queries.statements(None, content=f"!({queries.BLANK})"): 3,
    queries.statements(None, own=True): 5,
    queries.some("isBlank(?s) || isBlank(?o)"): 3,
    queries.some("isLiteral(?o)", named=True): 2,
    queries.some("isBlank(?o)", f"VALUES ?p {{ <{EXAMPLE}p2> }}"): 2,
    queries.some("isIRI(?o)", f"VALUES (?s ?p) {{ (<{EXAMPLE}s2> <{EXAMPLE}p1>) }}"): 1,
}


@pytest.mark.parametrize(("pattern", "count"), PATTERNS.items())
@pytest.mark.parametrize("form", [queries.select, queries.construct])
@pytest.mark.parametrize("order", [False, True])
def test_a_pattern_has_the_statements_it_says(pattern, count, form, order, store):
    assert len(list(store.query(form(pattern, 100, order=order)))) == count


def test_ranges_of_hashes_part_a_graph_without_loss_or_repetition(store):
    spans = [Span(0, 1 << 31), Span(1 << 31, 1 << 30), Span(3 << 30, 1 << 30)]
    parts = [
        {str(each) for each in store.query(queries.construct(queries.statements(None, span=span), 100))}
        for span in spans
    ]
    assert sum(map(len, parts)) == len(set().union(*parts)) == 6


def test_statements_of_several_graphs_carry_their_graphs_number(store):
    names = ["http://example.org/other", EXAMPLE + "g"]
    found = list(store.query(queries.construct_graphs(names, 100)))
    assert {triple.predicate.value for triple in found} == {f"urn:1:{EXAMPLE}p1"}
    assert len(list(store.query(queries.select_graphs(names, 100)))) == len(found) == 2


@pytest.mark.parametrize("counted", [True, False])
def test_graphs_are_listed_with_their_counts(counted, store):
    (row,) = store.query(queries.graphs(Span(), 100, counted=counted))
    assert row["g"].value == EXAMPLE + "g"
    assert not counted or int(row["n"].value) == 2
    halves = [queries.graphs(Span(at, 1 << 31), 100, counted=counted) for at in (0, 1 << 31)]
    assert sum(len(list(store.query(half))) for half in halves) == 1


def test_what_tells_a_union_is_sound_sparql(store):
    only = [queries.NAMED_ONLY, queries.NAMED_ONLY_OF_SOME]
    assert [bool(list(store.query(query))) for query in only] == [True, True]
    counts = [queries.COUNT_DEFAULT, queries.COUNT_OWN, queries.count_own_of(99), queries.COUNT_UNNAMED]
    assert [int(next(store.query(query))["n"].value) for query in counts] == [6, 5, 5, 0]
    assert [list(store.query(query)) for query in queries.SHARED_BLANKS] == [[], []]
    assert list(store.query(queries.select_blank_graphs(10))) == []


@given(some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_text_can_stand_in_a_query(text):
    store = Store()
    store.add(Quad(NamedNode("a:s"), NamedNode("a:p"), Literal(text)))
    where = queries.some(f"STR(?o) = {queries.quoted(text)}")
    assert len(list(store.query(queries.select(where, 10)))) == 1

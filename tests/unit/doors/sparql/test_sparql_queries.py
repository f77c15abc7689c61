"""Queries are sound SPARQL whatever terms are in them, and ask for just what they say."""

import pytest
from hypothesis import given
from hypothesis import strategies as some
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Store

from tamias.doors.sparql import queries
from tamias.doors.sparql.scope import Scope, Span

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


SCOPES = {
    Scope(): 6,
    Scope(named=True): 2,
    Scope(named=True, graph=EXAMPLE + "g"): 2,
    Scope(subject=EXAMPLE + "s1"): 3,
    Scope(predicate=EXAMPLE + "p1"): 3,
    Scope(nameless=True): 2,
    Scope(opaque=True): 2,
    Scope(same="a"): 2,
    Scope(blankless=True): 3,
    Scope(apart=True): 5,
    Scope(named=True, nameless_graphs=True): 0,
    Scope(subject=EXAMPLE + "s1", predicate=EXAMPLE + "p2", opaque=True): 1,
}


@pytest.mark.parametrize(("scope", "count"), SCOPES.items())
def test_a_scope_has_the_statements_it_says(scope, count, store):
    assert len(list(store.query(queries.whole(scope, 100)))) == count


@pytest.mark.parametrize(("scope", "count"), SCOPES.items())
def test_a_scope_counts_the_statements_it_has(scope, count, store):
    (row,) = store.query(queries.count(scope))
    assert int(row["n"].value) == count


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ({}, {"s1", "s2"}),
        ({"through": EXAMPLE + "p2"}, {"s1"}),
        ({"without": [EXAMPLE + "p2"]}, {"s2"}),
    ],
)
def test_a_listing_has_the_subjects_it_should(words, names, counted, store):
    rows = list(store.query(queries.listing(Scope(), "s", Span(), 100, counted=counted, **words)))
    assert {row["s"].value.removeprefix(EXAMPLE) for row in rows} == names
    if counted:
        assert all(int(row["n"].value) == {"s1": 3, "s2": 1}[row["s"].value[-2:]] for row in rows)


def test_the_backbone_is_the_predicate_of_the_most_subjects(store):
    (row,) = store.query(queries.backbone(Scope(), []))
    assert row["p"].value == EXAMPLE + "p1"


def test_statements_with_blank_nodes_are_all_found(store):
    assert len(list(store.query(queries.with_blanks(Scope(), 100)))) == 3
    assert len(list(store.query(queries.some_blanks(100)))) == 3


def test_what_tells_a_union_is_sound_sparql(store):
    only = [
        queries.NAMED_ONLY,
        queries.DEFAULT_ONLY,
        queries.NAMED_ONLY_OF_SOME,
        queries.DEFAULT_ONLY_OF_SOME,
    ]
    assert [bool(list(store.query(query))) for query in only] == [True, True, True, True]


def holding(*texts):
    store = Store()
    store.extend([Quad(NamedNode("a:s"), NamedNode("a:p"), Literal(text)) for text in texts])
    return store


@given(some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_text_can_be_asked_for(text):
    store = holding(text)
    assert len(list(store.query(queries.whole(Scope(same=text), 10)))) == 1


@given(some.lists(some.text("ab\\u\"'\n0", max_size=4), min_size=1, max_size=8, unique=True), some.data())
def test_the_spans_before_and_after_a_text_leave_nothing_out(texts, data):
    store = holding(*texts)
    cut = data.draw(some.sampled_from(texts))
    parts = [Span(upto=cut), Span(after=cut)], [Span(upto=cut, below=True), Span(after=cut)]
    counts = [
        sum(len(list(store.query(queries.rows(Scope(), span, 100)))) for span in spans) for spans in parts
    ]
    assert counts == [len(texts), len(texts) - 1]

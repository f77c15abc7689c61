"""The plan of a copy: spans that cover all keys, parts that come to an end, a state that comes back."""

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from tamias.doors.sparql import SparqlDoor
from tamias.doors.sparql.answers import Cell
from tamias.doors.sparql.limits import Limits
from tamias.doors.sparql.parts import default_graph, following, inside, named_graphs, otherwise
from tamias.doors.sparql.scope import Scope
from tamias.doors.sparql.spans import Cuts
from tamias.doors.sparql.standing import Key, Standing
from tamias.doors.sparql.state import State, packed, unpacked
from tamias.doors.sparql.terms import Page, is_blank
from tamias.model.capture import Capture
from tamias.model.outcome import Outcome
from tamias.model.walk import Walk


@given(
    some.sets(some.text("abc", min_size=1, max_size=6), min_size=1, max_size=120),
    some.integers(2, 20),
    some.booleans(),
    some.randoms(),
)
def test_spans_cover_every_key_once_and_each_fits(keys, room, told, random):
    cuts, covered, after, upto = Cuts(), [], "", None
    for _ in range(2_000):
        inside = [key for key in keys if key > after and (upto is None or key <= upto)]
        if len(inside) >= room:
            came = random.sample(inside, room)
            upto = cuts.split(came, upto, room, len(keys) if told else None)
            continue
        covered += inside
        if upto is None:
            break
        after, upto = upto, cuts.after(len(inside), room)
    assert sorted(covered) == sorted(keys)


def test_every_way_of_a_part_is_followed_by_another_until_none_is_left():
    part, ways = default_graph(apart=False, expected=None), []
    part = otherwise(part, stable=True)
    while part is not None:
        ways.append((part.way, part.key, part.scope.nameless))
        part = following(part)
    assert ways == [("backbone", "", False), ("keys", "s", False), ("keys", "p", True)]


@pytest.mark.parametrize("start", [default_graph(apart=False, expected=5), named_graphs()])
def test_a_part_that_can_be_had_in_no_way_is_given_up(start):
    part, tries = start, 0
    while part is not None:
        part, tries = otherwise(part, stable=True), tries + 1
    assert tries < 10


def test_a_large_key_is_taken_apart_by_the_next_term():
    graph = inside(named_graphs(), "http://example.org/g", 100, stable=True)
    subjects = following(graph)
    subject = inside(subjects, "http://example.org/s", 90, stable=True)
    objects = inside(subject, "http://example.org/p", 80, stable=True)
    assert [graph.way, subjects.key, subject.key, objects.way] == ["backbone", "s", "p", "rows"]
    assert objects.scope.free == ("o",)


def test_a_state_comes_back_as_it_was():
    state = State(stack=[named_graphs(), inside(named_graphs(), "a:g", 7, stable=False)], cap=100, named=12)
    assert unpacked(packed(state), 10) == state


@pytest.mark.parametrize("data", [None, b"", b"\xc1", b"other"])
def test_a_state_that_is_not_ours_begins_anew(data):
    assert unpacked(data, 123) == State(page=123)


def test_rows_that_are_no_rdf_are_counted_and_the_others_kept():
    page = Page(Scope(predicate="http://example.org/p"))
    good = {"s": Cell("uri", "http://example.org/s"), "o": Cell("literal", "1", None, "http://example.org/t")}
    page.take([good, {**good, "s": Cell("uri", "not an iri")}, {**good, "s": Cell("literal", "x")}, {}])
    assert (len(page.quads), page.unreadable) == (1, 3)


def test_labels_of_blank_nodes_that_hold_for_one_answer_are_told_apart():
    row = {"s": Cell("bnode", "b0"), "p": Cell("uri", "a:p"), "o": Cell("bnode", "nodeID://b1")}
    first, second = Page(Scope(), "p1x"), Page(Scope(), "p2x")
    first.take([row])
    second.take([row])
    assert first.quads[0].subject != second.quads[0].subject


def test_the_labels_of_virtuoso_are_blank_nodes_even_where_it_calls_them_iris():
    assert is_blank(Cell("uri", "nodeID://b10001"))


def test_a_span_that_no_longer_fits_is_begun_anew_and_counted_once():
    state = State(stack=[named_graphs()])
    standing = Standing(state, Limits())
    standing.list([Key("a:1", 5), Key("a:2", 5), Key("a:3", 5)], 10)
    standing.drop(1)
    standing.count(5, standing.part)
    standing.unlist()
    standing.part = msgspec.structs.replace(standing.part, done="a:1")
    standing.split(["a:1", "a:2", "a:3"], None)
    assert (state.statements, standing.part.copied, standing.part.done) == (0, 0, None)


def test_a_rule_that_forbids_the_endpoint_ends_the_walk_as_refused():
    class Forbidden:
        async def ask(self, request):
            return Capture(
                url=request.url,
                started_at=0,
                ended_at=0,
                outcome=Outcome.REFUSED,
                reason="robots.txt forbids it",
            )

    async def walk():
        walk = Walk(url="http://example.org/sparql", kind="sparql")
        return [step async for step in SparqlDoor().walk(walk, Forbidden())]

    (step,) = asyncio.run(walk())
    assert (step.end.outcome, step.end.retry) == (Outcome.REFUSED, False)
    assert step.end.reason.startswith("robots.txt forbids it")

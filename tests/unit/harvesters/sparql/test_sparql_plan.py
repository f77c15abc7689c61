"""The plan of a copy: ranges that cover all hashes, rows that become statements, a state that comes back."""

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from pyoxigraph import BlankNode, NamedNode, Quad

from tamias.features.sparql_copy.answers import Cell
from tamias.features.sparql_copy.copying import SparqlHarvester
from tamias.features.sparql_copy.queries import SPACE, Span
from tamias.features.sparql_copy.source import ListedGraph, StatementPage, digest, relabelled
from tamias.features.sparql_copy.state import CopyPart, CopyState, unpacked
from tamias.model.capture import Capture, Outcome
from tamias.model.finding import Harvest


@given(some.lists(some.floats(0.01, 4.0), min_size=1, max_size=50))
def test_ranges_cover_every_hash_once_however_wide_they_are(factors):
    span, covered = Span().resized(0.1), 0
    for factor in factors:
        assert span.low == covered
        covered += span.width
        if span.is_last:
            break
        span = span.next().resized(factor)
    assert (covered == SPACE) == span.is_last or span.low == covered


def test_a_range_that_cannot_be_narrower_still_holds_one_hash():
    assert Span(7, 1).resized(0.1) == Span(7, 1)


def test_a_state_comes_back_as_it_was():
    state = CopyState(
        part=CopyPart(graph="a:g", expected=7, way="hashes", span=Span(5, 9)), cap=100, listing=Span()
    )
    assert unpacked(msgspec.msgpack.encode(state), 10) == state


@pytest.mark.parametrize("data", [None, b"", b"\xc1", b"other"])
def test_a_state_that_is_not_ours_begins_anew(data):
    assert unpacked(data, 123) == CopyState(page=123)


def test_rows_that_are_no_rdf_are_counted_and_the_others_kept():
    good = {
        "s": Cell("uri", "http://example.org/s"),
        "p": Cell("uri", "http://example.org/p"),
        "o": Cell("literal", "1", None, "http://example.org/t"),
    }
    bad = [{**good, "s": Cell("uri", "not an iri")}, {**good, "s": Cell("literal", "x")}, {}]
    page = StatementPage.of_rows([good, *bad])
    assert (len(page.quads), page.unreadable, page.rows) == (1, 3, 4)


def test_labels_that_hold_for_one_response_are_kept_apart_from_those_of_another():
    quad = Quad(BlankNode("b0"), NamedNode("a:p"), BlankNode("b1"))
    (first,), (second,) = relabelled([quad], "p1x"), relabelled([quad], "p2x")
    assert first.subject != second.subject
    assert first.subject != first.object


def test_the_labels_of_virtuoso_are_blank_nodes_even_where_it_calls_them_iris():
    row = {
        "s": Cell("uri", "nodeID://b10001"),
        "p": Cell("uri", "http://example.org/p"),
        "o": Cell("literal", ""),
    }
    (quad,) = StatementPage.of_rows([row]).quads
    assert isinstance(quad.subject, BlankNode)


def test_the_digest_of_counts_tells_a_changed_graph_from_any_order_of_the_same():
    graphs = [ListedGraph("a:1", 5), ListedGraph("a:2", 6)]
    assert digest(graphs) == digest(graphs[::-1])
    assert digest(graphs) != digest([ListedGraph("a:1", 6), ListedGraph("a:2", 5)])


def test_a_rule_that_forbids_the_endpoint_ends_the_harvest_as_refused():
    class Forbidden:
        async def ask(self, request):
            return Capture(
                url=request.url,
                started_at=0,
                ended_at=0,
                outcome=Outcome.REFUSED,
                reason="robots.txt forbids it",
            )

    async def harvest():
        harvest = Harvest(url="http://example.org/sparql", kind="sparql")
        return [step async for step in SparqlHarvester().harvest(harvest, Forbidden())]

    (step,) = asyncio.run(harvest())
    assert (step.end.outcome, step.end.retry) == (Outcome.REFUSED, False)
    assert step.end.reason.startswith("robots.txt forbids it")

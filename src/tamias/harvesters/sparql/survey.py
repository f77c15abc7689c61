"""What is found out before a copy: what the endpoint says of itself, how it answers, what it holds."""

from collections.abc import Iterable

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad

from tamias.content.formats import JSON_LD, NTRIPLES, RDF_XML, TURTLE
from tamias.harvesters.sparql import queries
from tamias.harvesters.sparql.blank_nodes import labels_hold, sampled
from tamias.harvesters.sparql.client import RESULT_FORMATS, EndpointClient, QueryFailed
from tamias.harvesters.sparql.default_graph import default_graph
from tamias.harvesters.sparql.listing import GraphListing, list_graphs
from tamias.harvesters.sparql.queries import Span
from tamias.harvesters.sparql.source import StatementSource
from tamias.harvesters.sparql.state import CopyState
from tamias.harvesters.sparql.terms import writable
from tamias.model.capture import Outcome, Request
from tamias.model.finding import Quads

_SD = "http://www.w3.org/ns/sparql-service-description#"
_VOID = "http://rdfs.org/ns/void#"
_ACCEPT = f"{TURTLE}, {NTRIPLES}, {RDF_XML};q=0.9, {JSON_LD};q=0.5"
MOST_DESCRIBED = 100_000
MOST_NAMES = 1_000
_HEAD = 1024
_TRIES = 3


async def description(client: EndpointClient, state: CopyState) -> list[Quad]:
    """What the endpoint says of itself; empty when it says nothing or shows a form. Raises `QueryFailed`."""
    client.dialect.requests += 1
    capture = await client.http.ask(Request(url=client.url, accept=_ACCEPT))
    if capture.outcome is not Outcome.OK:
        if capture.outcome is Outcome.REFUSED or capture.retry_after_ms is not None:
            raise QueryFailed(capture.reason, capture)
        return []
    if b"<html" in client.http.body(capture, _HEAD).lower():
        return []
    quads: list[Quad] = []
    for finding in client.http.read(capture):
        quads += finding.quads if isinstance(finding, Quads) else []
        if len(quads) > MOST_DESCRIBED:
            return []
    if not any(_describes(quad) for quad in quads):
        return []
    _take_description(quads, state)
    return [_apart(quad) for quad in quads]


def _describes(quad: Quad) -> bool:
    """Whether it speaks of a service or a dataset: some servers give out their data at this address."""
    terms = (quad.predicate, quad.object)
    return any(isinstance(term, NamedNode) and term.value.startswith((_SD, _VOID)) for term in terms)


def _take_description(quads: Iterable[Quad], state: CopyState) -> None:
    names = set()
    for quad in quads:
        if quad.object == NamedNode(_SD + "UnionDefaultGraph"):
            state.union_said = True
        if quad.predicate == NamedNode(_SD + "name") and isinstance(quad.object, NamedNode):
            names.add(quad.object.value)
    state.graph_names = sorted(filter(writable, names))[:MOST_NAMES]


def _apart(quad: Quad) -> Quad:
    """With labels that no blank node of the data can have; the graph is the endpoint's own."""
    subject, value = (
        BlankNode(f"sd-{term.value}") if isinstance(term, BlankNode) else term
        for term in (quad.subject, quad.object)
    )
    return Quad(subject, quad.predicate, value, DefaultGraph())  # type: ignore[arg-type]


async def survey(client: EndpointClient, state: CopyState) -> GraphListing:
    """Finds out what the endpoint holds and how it answers; returns its graphs as far as they are listed.

    Raises `QueryFailed` when it does not answer at all.
    """
    await _find_result_format(client)
    await _find_labels(StatementSource(client, state), state)
    await _count_default(client, state)
    listing = await list_graphs(client, state, Span(), proven=False)
    if listing.graphs or listing.unnamed:
        state.listing = listing.span
    state.default = None if client.graphs else await default_graph(client, state, listing)
    if state.labels == "change":
        await _check_shared_blanks(client, state, listing)
    return listing


async def _find_result_format(client: EndpointClient) -> None:
    first: QueryFailed | None = None
    for results in RESULT_FORMATS:
        client.dialect.results = results
        try:
            await client.select(queries.ANY, tries=3)
        except QueryFailed as failure:
            first = first or failure
            if failure.final or failure.capture is None or failure.capture.status is None:
                raise
        else:
            return
    client.dialect.results = "json"
    try:
        await client.triples(queries.construct(queries.statements(None), 1))
    except QueryFailed:
        assert first is not None
        raise first from None


async def _find_labels(source: StatementSource, state: CopyState) -> None:
    """Chooses the form in which blank nodes keep their labels: N-Triples, else rows, else neither."""
    forms = []
    for state.triples in (True, False):
        sample, of_named = await _sample(source, named=False), False
        if not sample and (other := await _sample(source, named=True)) is not None:
            sample, of_named = other, True
        if sample is None:
            continue
        forms.append(state.triples)
        if not sample:
            state.labels = "none"
            return
        if await labels_hold(source, sample, named=of_named):
            state.labels = "hold"
            return
    state.labels = "change"
    state.triples = True in forms


async def _sample(source: StatementSource, *, named: bool) -> list[Quad] | None:
    """Some statements with blank nodes; None where the endpoint does not answer in this form."""
    for _ in range(_TRIES):
        try:
            return await sampled(source, named=named)
        except QueryFailed as failure:
            if failure.final:
                raise
            if failure.lasting:
                return None
    return None


async def _count_default(client: EndpointClient, state: CopyState) -> None:
    try:
        state.default_count = await client.number(queries.COUNT_DEFAULT)
    except QueryFailed as failure:
        if failure.final:
            raise
        state.counts = False


async def _check_shared_blanks(client: EndpointClient, state: CopyState, listing: GraphListing) -> None:
    """Blank nodes that change their labels cannot be kept together over several graphs."""
    try:
        state.relabelled = len(listing.graphs) > 1 and bool(
            await client.select(queries.SHARED_BLANKS, tries=2)
        )
    except QueryFailed as failure:
        if failure.final:
            raise
        state.relabelled = True

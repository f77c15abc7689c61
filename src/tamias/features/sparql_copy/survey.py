"""The survey before a copy: the endpoint's own description, how it answers, what it has."""

from collections.abc import Iterable
from itertools import product

from pyoxigraph import NamedNode, Quad

from tamias.content.formats import JSON_LD, NTRIPLES, RDF_XML, TURTLE
from tamias.features.sparql_copy import queries
from tamias.features.sparql_copy.blank_nodes import Sample, labels_hold, sampled
from tamias.features.sparql_copy.client import RESULT_FORMATS, EndpointClient, QueryFailed, answered
from tamias.features.sparql_copy.default_graph import default_graph
from tamias.features.sparql_copy.listing import GraphListing, list_graphs
from tamias.features.sparql_copy.queries import Span
from tamias.features.sparql_copy.source import StatementSource
from tamias.features.sparql_copy.state import CopyState
from tamias.features.sparql_copy.terms import relabelled, writable
from tamias.model.capture import Outcome, Request
from tamias.model.finding import Quads
from tamias.model.vocabulary import address_iri

_SD = "http://www.w3.org/ns/sparql-service-description#"
_VOID = "http://rdfs.org/ns/void#"
_ACCEPT = f"{TURTLE}, {NTRIPLES}, {RDF_XML};q=0.9, {JSON_LD};q=0.5"
DESCRIPTION = "#service-description"
"""Behind the address of an endpoint: the graph of what it says of itself."""
MOST_DESCRIBED = 100_000
MOST_NAMES = 1_000
_HEAD = 1024
_TRIES = 3


async def description(client: EndpointClient, state: CopyState) -> list[Quad]:
    """Return the endpoint's own description; empty when there is none, or a form. Raises `QueryFailed`."""
    client.dialect.requests += 1
    capture = await client.http.ask(Request(url=client.url, accept=_ACCEPT))
    if capture.outcome is not Outcome.OK:
        if capture.outcome is Outcome.REFUSED or capture.retry_after_ms is not None:
            raise QueryFailed(capture.reason, capture)
        return []
    state.is_document = True
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
    graph = NamedNode(address_iri(client.url) + DESCRIPTION)
    return [Quad(quad.subject, quad.predicate, quad.object, graph) for quad in relabelled(quads, "sd-")]


def _describes(quad: Quad) -> bool:
    """Return whether a description is of a service or a dataset: some servers serve their data here."""
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


async def survey(client: EndpointClient, state: CopyState) -> GraphListing | None:
    """Take the next step to find out what the endpoint holds and how it answers.

    The last step returns the graphs as far as they are listed. Raises `QueryFailed` when the endpoint does
    not answer at all.
    """
    if state.stage == "described":
        await _find_result_format(client)
        state.stage = "readable"
    elif state.stage == "readable":
        await _find_labels(client, StatementSource(client, state), state)
        state.stage = "labelled"
    elif state.stage == "labelled":
        state.default_count = await answered(client.number(queries.COUNT_DEFAULT), None)
        state.counts = state.default_count is not None
        state.stage = "counted"
    else:
        listing = await list_graphs(client, state, Span(), proven=False)
        if listing.graphs or listing.unnamed:
            state.listing = listing.span
        state.default = None if client.graphs else await default_graph(client, state, listing)
        if state.labels == "change":
            await _check_shared_blanks(client, state, listing)
        state.stage = "surveyed"
        return listing
    return None


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


async def _find_labels(client: EndpointClient, source: StatementSource, state: CopyState) -> None:
    """Chooses the form in which blank nodes keep their labels: N-Triples, else rows, else neither."""
    forms = []
    for state.triples in (True, False):
        samples = await _samples(source)
        if samples is None:
            continue
        forms.append(state.triples)
        if not samples:
            state.labels = "none"
            return
        if await _all_hold(client, source, samples):
            state.labels = "hold"
            return
    state.labels = "change"
    state.triples = True in forms
    state.triple_terms = await _sample(source, queries.some(queries.TRIPLE_TERM)) is not None


async def _all_hold(client: EndpointClient, source: StatementSource, samples: list[Sample]) -> bool:
    """Return whether labels hold in all samples. One label in two of them stands for one node, or for two."""
    has_twice = len({label for sample in samples for label in sample.turns}) < len(samples)
    if has_twice and not await answered(client.select(queries.SHARED_BLANKS[1], tries=2), []):
        return False
    return all([await labels_hold(source, sample) for sample in samples])


async def _samples(source: StatementSource) -> list[Sample] | None:
    """Find blank nodes: one place with several of them, else all that have one.

    None where the endpoint does not answer in this form.
    """
    found, answers = list[Sample](), False
    for kind, named in product((queries.BLANK, queries.TRIPLE_TERM), (False, True)):
        where = queries.some(kind, named=named)
        quads = None if kind == queries.TRIPLE_TERM and found else await _sample(source, where)
        if quads is None and kind == queries.TRIPLE_TERM:
            break
        answers = answers or quads is not None
        if quads:
            sample = Sample(quads, where, named)
            if len(sample.turns) > 1:
                return [sample]
            found.append(sample)
    return found if answers else None


async def _sample(source: StatementSource, where: str) -> list[Quad] | None:
    """Return statements with blank nodes; None where the endpoint does not answer in this form."""
    for _ in range(_TRIES):
        try:
            return await sampled(source, where)
        except QueryFailed as failure:
            if failure.final:
                raise
            if failure.lasting:
                return None
    return None


async def _check_shared_blanks(client: EndpointClient, state: CopyState, listing: GraphListing) -> None:
    """Blank nodes that change their labels cannot be kept together over several graphs."""
    several = len(listing.graphs) > 1, bool(listing.graphs) and state.default is not None and not state.union
    shared = [query for query, has in zip(queries.SHARED_BLANKS, several, strict=True) if has]
    if shared and state.triple_terms:
        shared.append(queries.select(queries.some(queries.TRIPLE_TERM, named=True), 1))
    for query in shared:
        rows = await answered(client.select(query, tries=2), None)
        state.relabelled = state.relabelled or rows is None or bool(rows)

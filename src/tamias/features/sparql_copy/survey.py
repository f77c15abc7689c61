"""The survey before a copy: the endpoint's own description, how it answers, what it has; and the verdict
after it.

Which statements no named graph has can be asked of the server. Some look into each graph for each statement,
which takes hours where the copy takes a minute; so the question is first asked of a few statements. Where it
is dear, the default graph is copied last and compared with what came of the named graphs. Labels of blank
nodes may be the same in every response of an endpoint, or not. The verdict says how much was copied, whether
that is all, and how it is known.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, product

import msgspec
import numpy
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from tamias.content.blank_labels import blank_nodes
from tamias.content.formats import JSON_LD, NTRIPLES, RDF_XML, TURTLE
from tamias.features.sparql_copy import queries
from tamias.features.sparql_copy.client import RESULT_FORMATS, EndpointClient, QueryFailed, answered
from tamias.features.sparql_copy.queries import TRIPLE_TERM, Span, quoted, some
from tamias.features.sparql_copy.source import (
    GraphListing,
    StatementSource,
    digest,
    list_graphs,
    relabelled,
    writable,
)
from tamias.features.sparql_copy.state import CopyPart, CopyState, Union
from tamias.model.capture import Outcome, Request
from tamias.model.finding import HarvestEnd, Quads
from tamias.model.vocabulary import address_iri

_UNIONS = {
    "": "",
    "said": "; the default graph is the union of the others, as the service description says",
    "seen": "; the default graph holds all statements of the others, which are kept once",
    "sampled": "; the default graph is taken for the union of the others, by a sample",
}


def failed(failure: QueryFailed, state: CopyState) -> HarvestEnd:
    """The end of a copy that cannot go on now."""
    capture = failure.capture
    status = None if capture is None else capture.status
    can_help = status is None or status >= 500 or (capture is not None and capture.retry)
    said = f"stopped after {state.dialect.requests:,} requests"
    return failure.end(said, retry=can_help or state.pages > 0)


async def verdict(client: EndpointClient, state: CopyState) -> HarvestEnd:
    """The end of a copy that came through."""
    doubts = _doubts(state)
    if state.counts and not state.cut_short:
        doubts += await _changes(client, state)
    graphs = f"{state.graphs:,} named graph{'s' * (state.graphs != 1)}"
    form = "CONSTRUCT" if state.triples else "SELECT"
    what = f"{state.statements:,} statements of the default graph and {graphs} by {form}"
    said = "; ".join(doubts) or "the endpoint counts the same in each graph, before and after"
    unreadable = f"; {state.unreadable:,} of them are not RDF and were left out" if state.unreadable else ""
    return HarvestEnd(
        outcome=Outcome.OK,
        reason=f"copied {'whole' if not doubts else 'as far as it could be'}: {what}, in "
        f"{state.dialect.requests:,} requests; {said}{_UNIONS[state.union]}{unreadable}",
        complete=not doubts,
    )


def _doubts(state: CopyState) -> list[str]:
    others = f" (and {state.miscounted - 1} more graphs)" if state.miscounted > 1 else ""
    said = [
        (bool(state.cut_short), f"stopped at {state.cut_short}"),
        (state.abandoned > 0, f"{state.abandoned} parts could not be fetched"),
        (not state.counts, "the endpoint does not count, so that it is all cannot be shown"),
        (state.union == "sampled", "what only the default graph has may be missing"),
        (state.shuffled, "windows did not join: the order changes between requests"),
        (state.relabelled, "blank nodes relabelled: they have other labels in every response"),
        (state.miscounted > 0, f"{state.example}{others}"),
    ]
    return [doubt for holds, doubt in said if holds]


async def _changes(client: EndpointClient, state: CopyState) -> list[str]:
    """Return whether a graph of the endpoint has another count than before the copy."""
    try:
        default = await client.number(queries.COUNT_DEFAULT)
        counted, span = 0, Span()
        while True:
            listing = await list_graphs(client, state, span)
            counted = (counted + digest(listing.graphs)) % (1 << 56)
            if listing.span.is_last:
                break
            span = listing.span.next()
    except QueryFailed:
        return ["the endpoint does not count any more, so that it is all cannot be shown"]
    if (default, counted) != (state.default_count, state.counted):
        return ["the endpoint counts otherwise than before the copy: it changed meanwhile"]
    return []


SAMPLE = 200
_CANDIDATES = 4
_UNCUT = 50
"""No server gives fewer rows than this at once."""

Pointer = tuple[str, str]
"""The label of a blank node, and the pattern of statements among which it must be found again."""


class Sample(msgspec.Struct, frozen=True):
    """Statements with blank nodes of a pattern, which is of the default graph or of named graphs."""

    quads: list[Quad]
    where: str
    named: bool

    @property
    def turns(self) -> dict[str, int]:
        """Return each label with the number of others that come before it."""
        return _turns(self.quads)


async def sampled(source: StatementSource, where: str, offset: int = 0) -> list[Quad]:
    """Return some statements of a pattern, those with blank nodes in them. Raises `QueryFailed`."""
    quads = (await source.matching(where, SAMPLE, offset)).quads
    return [quad for quad in quads if any(blank_nodes(quad.subject, quad.object))]


async def labels_hold(source: StatementSource, sample: Sample) -> bool:
    """Requests a blank node again, by what is said of it, in a response with fewer of them.

    A server that numbers them in each response would give it a lower number there. In doubt, they do not
    hold. Raises `QueryFailed`.
    """
    turns = sample.turns
    pointers = _pointers(sample.quads, named=sample.named)
    shared = Counter(where for _, where in pointers)
    pointers.sort(key=lambda pointer: (shared[pointer[1]], -turns[pointer[0]]))
    missed = 0
    for label, pattern in islice(dict.fromkeys(pointers), _CANDIDATES):
        again = (await source.matching(pattern, SAMPLE)).quads
        if len(again) >= max(_UNCUT, len(sample.quads)):
            continue
        labels = _turns(again)
        if label not in labels:
            missed += 1
            if missed > 1:  # one may be missing for another reason, such as a response cut short
                return False
        elif len(labels) <= turns[label] or len(turns) == 1:
            return True
    if missed:
        return False
    # A later window has some of the labels, and not in the same sequence.
    later = list(_turns(await sampled(source, sample.where, len(sample.quads) // 2)))
    differ = any(one != other for one, other in zip(turns, later, strict=False))
    return differ and not turns.keys().isdisjoint(later)


def _turns(quads: list[Quad]) -> dict[str, int]:
    """Return each label with the number of others before it."""
    turns: dict[str, int] = {}
    for quad in quads:
        for node in blank_nodes(quad.subject, quad.object):
            turns.setdefault(node.value, len(turns))
    return turns


def _pointers(quads: list[Quad], *, named: bool) -> list[Pointer]:
    pointers = []
    for quad in quads:
        subject, value = quad.subject, quad.object
        if not writable(quad.predicate.value):
            continue
        fixed = f"VALUES ?p {{ <{quad.predicate.value}> }}"
        if isinstance(subject, BlankNode) and isinstance(value, NamedNode | Literal):
            said = f"isBlank(?s) && STR(?o) = {quoted(value.value)}"
            pointers.append((subject.value, some(said, fixed, named=named)))
        elif isinstance(subject, NamedNode) and writable(subject.value):
            fixed = f"VALUES (?s ?p) {{ (<{subject.value}> <{quad.predicate.value}>) }}"
            kind = TRIPLE_TERM if isinstance(value, Triple) else "isBlank(?o)"
            pointers += [(node.value, some(kind, fixed, named=named)) for node in blank_nodes(value)]
        elif isinstance(value, BlankNode):
            pointers.append((value.value, some("isBlank(?s) && isBlank(?o)", fixed, named=named)))
    return pointers


MOST_COMPARED = 4_000_000
"""Statements of a default graph that is compared here: eight bytes of memory for each."""
_FEW = 20
_GROWTH = 20
_DEAR = 2.0
"""Seconds for a part of the question; the next, larger by the growth, would take about as many times more."""


class SeenStatements:
    """Statements of named graphs, as hashes: how many they are, and which of others are not among them."""

    def __init__(self) -> None:
        self._hashes = array("q")
        self._sorted: numpy.ndarray | None = None

    def __len__(self) -> int:
        return len(self._distinct())

    def add(self, quads: Iterable[Quad]) -> None:
        """Add statements, in whatever graph they are."""
        self._hashes.extend(hash(quad.triple) for quad in quads)
        self._sorted = None

    def without(self, quads: Sequence[Quad]) -> list[Quad]:
        """The quads whose statements were not seen."""
        hashes = numpy.fromiter((hash(quad.triple) for quad in quads), numpy.int64, len(quads))
        seen = numpy.isin(hashes, self._distinct())
        return [quad for quad, was_seen in zip(quads, seen, strict=True) if not was_seen]

    def _distinct(self) -> numpy.ndarray:
        if self._sorted is None:
            self._sorted = numpy.unique(numpy.array(self._hashes, dtype=numpy.int64))
        return self._sorted


async def default_graph(client: EndpointClient, state: CopyState, listing: GraphListing) -> CopyPart | None:
    """Return the part of the default graph to copy; None for nothing."""
    total = state.default_count
    if total == 0:
        return None
    if listing.graphs and (total is None or total >= max(each.statements or 0 for each in listing.graphs)):
        state.union = await _union(client, said=state.union_said)
    if not state.union:
        return CopyPart(expected=total)
    if (part := await answered(_own_part(client, state, total), None)) is None:
        state.union = "sampled"
        return None
    return part if part.compared else await own_or_all(client, state, part, part.expected or 0)


async def own_or_all(client: EndpointClient, state: CopyState, part: CopyPart, own: int) -> CopyPart | None:
    """The part, which has so many statements that no named graph has; else the whole graph, or nothing."""
    if own == 0:
        return None
    if own > 0 and (state.union == "said" or await answered(client.number(queries.COUNT_UNNAMED), 0) > 0):
        return part
    state.union = ""  # a default graph with more than the others have may well be one of its own
    return CopyPart(expected=state.default_count)


async def _own_part(client: EndpointClient, state: CopyState, total: int | None) -> CopyPart | None:
    """Return how many statements only the default graph has; None if that cannot be found out."""
    if total is None:
        return None
    if not await _is_dear(client, total):
        return CopyPart(own=True, expected=await client.number(queries.COUNT_OWN))
    if state.labels == "change" or total > MOST_COMPARED:
        return None
    return CopyPart(expected=total, compared=True)


async def _is_dear(client: EndpointClient, total: int) -> bool:
    """Return whether counting what only the default graph has would take long, by the time for a part."""
    count = _FEW
    while count < total:
        for _ in range(2):  # the first answer of a server that has just started, or is busy, says little
            await client.number(queries.count_own_of(count))
            if client.last_seconds <= _DEAR:
                break
        else:
            return True
        count *= _GROWTH
    return False


async def _union(client: EndpointClient, *, said: bool) -> Union:
    """Return whether the default graph has all that the named graphs have; by a sample if need be."""
    if said:
        return "said"
    found: Union = ""
    for way, exceptions in (("sampled", queries.NAMED_ONLY_OF_SOME), ("seen", queries.NAMED_ONLY)):
        rows = await answered(client.select(exceptions, tries=2), None)
        if rows is None:
            return found
        if rows:
            return ""
        found = way  # type: ignore[assignment]
    return found


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

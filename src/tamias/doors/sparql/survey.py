"""What is asked before a copy: what the endpoint says of itself, how it is talked to, what it holds."""

from collections.abc import Iterable

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad

from tamias.doors.sparql import queries
from tamias.doors.sparql.conversation import Conversation, Trouble
from tamias.doors.sparql.parts import Part, default_graph, named_graphs
from tamias.doors.sparql.scope import Scope
from tamias.doors.sparql.state import Form, State, Union
from tamias.doors.sparql.terms import writable
from tamias.model.capture import Request
from tamias.model.finding import Quads
from tamias.model.outcome import Outcome

_SD = "http://www.w3.org/ns/sparql-service-description#"
_VOID = "http://rdfs.org/ns/void#"
_ACCEPT = "text/turtle, application/n-triples, application/rdf+xml;q=0.9, application/ld+json;q=0.5"
MOST_DESCRIBED = 100_000
MOST_NAMES = 1_000
_HEAD = 1024
_FORMS: tuple[Form, ...] = ("json", "xml", "tsv")


async def description(conversation: Conversation, state: State) -> list[Quad]:
    """What the endpoint says of itself; nothing when it says nothing, or shows a form. Raises `Trouble`."""
    state.requests += 1
    capture = await conversation.guide.ask(Request(url=conversation.url, accept=_ACCEPT))
    if capture.outcome is not Outcome.OK:
        if capture.outcome is Outcome.REFUSED or capture.retry_after_ms is not None:
            raise Trouble(capture.reason, capture)
        return []
    if b"<html" in conversation.guide.body(capture, _HEAD).lower():
        return []
    quads: list[Quad] = []
    for finding in conversation.guide.read(capture):
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


def _take_description(quads: Iterable[Quad], state: State) -> None:
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


async def survey(conversation: Conversation, state: State) -> None:
    """Settles the manner, counts, lays out the parts of the copy. Raises `Trouble` when nobody answers."""
    filled = await _contact(conversation, state)
    if state.manner.form == "construct":
        state.counting = False
        names = [
            Part(scope=Scope(named=True, graph=name), way="offset", name=name) for name in state.graph_names
        ]
        state.graphs = len(names)
        state.later = [*names, Part(scope=Scope(), way="offset")]
        return
    named = await _any_graph(conversation)
    if filled and named:
        state.union = await _union(conversation, said=state.union_said)
    state.later = [named_graphs()] if named else []
    if filled:
        state.later += await _default_parts(conversation, state)
    elif state.counting:
        state.default_count = 0


async def _contact(conversation: Conversation, state: State) -> bool:
    """Finds a form of results that the server gives; returns whether its default graph holds anything."""
    first: Trouble | None = None
    for form in _FORMS:
        state.manner.form = form
        try:
            return bool(await conversation.patient(queries.ANY))
        except Trouble as trouble:
            first = first or trouble
            if trouble.final or trouble.capture is None or trouble.capture.status is None:
                raise
    state.manner.form = "construct"
    try:
        await conversation.construct(queries.ANY_CONSTRUCTED)
    except Trouble:
        state.manner.form = "json"
        raise first from None  # type: ignore[misc]
    return True


async def _any_graph(conversation: Conversation) -> bool:
    try:
        return bool(await conversation.patient(queries.ANY_GRAPH))
    except Trouble as trouble:
        if not trouble.lasting:
            raise
        return False


async def _union(conversation: Conversation, *, said: bool) -> Union:
    """Whether the default graph and the named graphs hold the same; by a sample if need be."""
    if said:
        return "said"
    ways: tuple[tuple[Union, tuple[str, str]], ...] = (
        ("seen", (queries.NAMED_ONLY, queries.DEFAULT_ONLY)),
        ("sampled", (queries.NAMED_ONLY_OF_SOME, queries.DEFAULT_ONLY_OF_SOME)),
    )
    for way, exceptions in ways:
        try:
            for query in exceptions:
                if await conversation.patient(query, tries=2):
                    return ""
        except Trouble as trouble:
            if trouble.final:
                raise
        else:
            return way
    return ""


async def _default_parts(conversation: Conversation, state: State) -> list[Part]:
    if state.union in {"seen", "sampled"}:
        return []
    apart = state.union == "said"
    try:
        state.default_count = await conversation.number(queries.count(Scope(apart=apart)))
    except Trouble as trouble:
        if trouble.final:
            raise
        if apart:
            return []  # too much to ask: the server's word must do
        state.counting = False
    return [default_graph(apart=apart, expected=state.default_count)]

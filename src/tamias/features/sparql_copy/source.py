"""The source of statements: CONSTRUCT in N-Triples, or rows where that does not work.

Rows become quads, with terms as lenient as N-Quads allows.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence, Sized
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from pyoxigraph import BaseDirection, BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from tamias.analyse.rdf.statements import blank_node, iri
from tamias.content.blank_labels import blank_nodes, rename_blank_nodes
from tamias.features.sparql_copy import queries
from tamias.features.sparql_copy.answers import Cell, Nested, Row
from tamias.features.sparql_copy.client import EndpointClient, QueryFailed, answered
from tamias.features.sparql_copy.queries import Span
from tamias.features.sparql_copy.state import CopyPart, CopyState

_WRITABLE = re.compile(r'[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>"{}|^`\\]*')
_NODE_ID = "nodeID://"
"""How Virtuoso writes the labels of blank nodes, at times in the place of an IRI."""

Term = NamedNode | BlankNode | Literal | Triple


def writable(text: str) -> bool:
    """Return whether an IRI can be written between angle brackets.

    >>> writable("http://example.org/a"), writable("http://example.org/a b")
    (True, False)
    """
    return _WRITABLE.fullmatch(text) is not None


class StatementPage:
    """The statements of one response, and what of it is no RDF."""

    def __init__(self, quads: list[Quad] | None = None) -> None:
        self.quads = quads or []
        self.rows = len(self.quads)
        """As many as the server gave."""
        self.unreadable = 0
        self.example = ""
        self._iris: dict[str, NamedNode] = {}

    @classmethod
    def of_rows(cls, rows: Iterable[Row]) -> "StatementPage":
        """Read rows as statements; without `?g` they are of the default graph."""
        page = cls()
        for row in rows:
            page.rows += 1
            try:
                page.quads.append(page._quad(row))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                page.unreadable += 1
                page.example = page.example or f"{error}"[:200]
        return page

    def __len__(self) -> int:
        return self.rows

    def _quad(self, row: Row) -> Quad:
        graph = self._term(row["g"]) if "g" in row else DefaultGraph()
        return Quad(self._term(row["s"]), self._term(row["p"]), self._term(row["o"]), graph)  # type: ignore[arg-type]

    def _term(self, cell: Cell) -> Term:
        value = cell.value
        if isinstance(value, Nested):
            return Triple(*(self._term(each) for each in (value.subject, value.predicate, value.object)))  # type: ignore[arg-type]
        if cell.type == "bnode" or (cell.type == "uri" and value.startswith(_NODE_ID)):
            return blank_node(value)
        if cell.type == "uri":
            return self._iri(value)
        if cell.language:
            direction = BaseDirection(cell.direction) if cell.direction else None
            return Literal(value, language=cell.language, direction=direction)
        return Literal(value, datatype=self._iri(cell.datatype)) if cell.datatype else Literal(value)

    def _iri(self, value: str) -> NamedNode:
        found = self._iris.get(value)
        if found is None:
            found = self._iris[value] = iri(value)
        return found


def has_blank_inside(quad: Quad) -> bool:
    """Return whether a triple term of the statement has blank nodes in it."""
    return isinstance(quad.object, Triple) and any(blank_nodes(quad.object))


def relabelled(quads: Iterable[Quad], prefix: str) -> list[Quad]:
    """Return the statements with labels that no other response has."""
    return [rename_blank_nodes(quad, lambda node: BlankNode(prefix + node.value)) for quad in quads]


class StatementSource:
    """Requests statements in the one form that the state names: labels differ between forms."""

    def __init__(self, client: EndpointClient, state: CopyState) -> None:
        self._client = client
        self._state = state

    async def matching(
        self, where: str, limit: int, offset: int = 0, *, order: bool = False
    ) -> StatementPage:
        """A window of the statements of a pattern. Raises `QueryFailed`."""
        query = (queries.construct if self._state.triples else queries.select)(
            where, limit, offset, order=order
        )
        if self._state.triples:
            page = StatementPage(await self._client.triples(query))
        else:
            page = StatementPage.of_rows(await self._client.select(query))
        if page.rows == limit:
            self._state.most = max(self._state.most, limit)
        return page

    async def window(self, part: CopyPart, limit: int, offset: int = 0) -> StatementPage:
        """A window of a part, its statements in their graph. Raises `QueryFailed`."""
        where = self.pattern(part)
        page = await self.matching(where, limit, offset, order=part.way == "ordered")
        if part.graph is not None:
            name = NamedNode(part.graph)
            page.quads = [Quad(quad.subject, quad.predicate, quad.object, name) for quad in page.quads]
        return page

    def pattern(self, part: CopyPart) -> str:
        """The pattern of what a part holds."""
        blank = queries.BLANK + f" || {queries.TRIPLE_TERM}" * self._state.triple_terms
        content = {"all": "", "blank": blank, "ground": f"!({blank})"}[part.content]
        return queries.statements(part.graph, content=content, own=part.own, span=part.span)

    async def graphs(self, names: Sequence[str], limit: int) -> StatementPage:
        """Return all statements of several graphs. Raises `QueryFailed`."""
        if not self._state.triples:
            return StatementPage.of_rows(await self._client.select(queries.select_graphs(names, limit)))
        graphs = [NamedNode(name) for name in names]
        predicates: dict[str, tuple[NamedNode, NamedNode]] = {}
        page = StatementPage(await self._client.triples(queries.construct_graphs(names, limit)))
        for at, quad in enumerate(page.quads):
            text = quad.predicate.value
            if text not in predicates:
                predicates[text] = _unnumbered(text, graphs)
            predicate, graph = predicates[text]
            page.quads[at] = Quad(quad.subject, predicate, quad.object, graph)
        return page


def _unnumbered(predicate: str, graphs: Sequence[NamedNode]) -> tuple[NamedNode, NamedNode]:
    """The predicate and the graph whose number stands before it."""
    try:
        _, number, name = predicate.split(":", 2)
        return NamedNode(name), graphs[int(number)]
    except (ValueError, IndexError):
        raise QueryFailed(f"answered with the predicate {predicate[:100]!r}, which no graph has") from None


async def uncut(state: CopyState, rows: int, limit: int, probe: Callable[[], Awaitable[Sized]]) -> bool:
    """Return whether these rows are all; `probe` requests one more, which is right in any order."""
    if rows >= limit:
        return False
    if rows >= state.most:
        if len(await probe()):
            state.learn_cap(rows)
            return False
        state.most = rows
    return True


_TRIES = 3


class ListedGraph(NamedTuple):
    """A graph, with the number of its statements where the endpoint counts."""

    name: str
    statements: int | None


class GraphListing(NamedTuple):
    """Return the graphs whose names have a hash in the span, in the order of code points."""

    span: Span
    graphs: Sequence[ListedGraph]
    unproven: int = 0
    """Rows of a response that may have been cut; 0 when it is known that it was not."""
    unnamed: int = 0
    """Graphs that cannot be requested by name: their names are blank nodes or no IRIs."""


async def list_graphs(
    client: EndpointClient, state: CopyState, span: Span, *, proven: bool = True
) -> GraphListing:
    """The graphs of this span, or of its first part if that is what fits. Raises `QueryFailed`.

    Unless it must be `proven`, all that came is taken for all there is, as far as it is no full response.
    Where the endpoint cannot list them, they are those that its description names.
    """
    while True:
        limit = state.page
        try:
            rows = await _rows(client, state, span, limit)
        except QueryFailed as failure:
            if failure.final or not failure.lasting:
                raise
            names = sorted(client.graphs) or state.graph_names
            return GraphListing(Span(), [ListedGraph(name, None) for name in names])
        if (len(rows) < limit and not proven) or await _are_all(client, state, span, len(rows), limit):
            break
        if span.width == 1:
            raise QueryFailed("the graphs cannot be listed: the server ignores conditions", lasting=True)
        span = span.resized(0.5)
    graphs, unnamed = _listed(rows)
    if client.graphs:
        graphs, unnamed = [graph for graph in graphs if graph.name in client.graphs], 0
    return GraphListing(span, graphs, 0 if proven else len(rows), unnamed)


def _listed(rows: list[Row]) -> tuple[list[ListedGraph], int]:
    """The graphs that have names, and the number of the others."""
    known = [(row["g"], row) for row in rows if "g" in row]
    named = ((name.text, row) for name, row in known if name.type == "uri" and writable(name.text))
    graphs = sorted(ListedGraph(name, _number(row)) for name, row in named)
    return graphs, len(known) - len(graphs)


async def prove(client: EndpointClient, state: CopyState, listing: GraphListing) -> GraphListing | None:
    """The listing, known to have all graphs of its span; None if it was cut. Raises `QueryFailed`."""
    is_whole = await _are_all(client, state, listing.span, listing.unproven, state.page)
    return listing._replace(unproven=0) if is_whole else None


async def _are_all(client: EndpointClient, state: CopyState, span: Span, rows: int, limit: int) -> bool:
    # Counted as they are listed: for names alone with an offset, Virtuoso may take hours.
    probe = partial(client.select, queries.graphs(span, 1, rows, counted=state.counts), _TRIES)
    return await uncut(state, rows, limit, probe)


async def _rows(client: EndpointClient, state: CopyState, span: Span, limit: int) -> list[Row]:
    if state.counts:
        rows = await answered(client.select(queries.graphs(span, limit), _TRIES), None)
        if rows is not None:
            return rows
        state.counts = False
    return await client.select(queries.graphs(span, limit, counted=False), _TRIES)


def digest(graphs: Sequence[ListedGraph]) -> int:
    """A number by which the same graphs with the same counts are known again, in any order."""
    total = 0
    for graph in graphs:
        said = f"{graph.statements} {graph.name}".encode("utf-8", "surrogatepass")
        total += int.from_bytes(blake2b(said, digest_size=7).digest())
    return total % (1 << 56)


def _number(row: Row) -> int | None:
    try:
        return int(row["n"].text)
    except (KeyError, ValueError):
        return None

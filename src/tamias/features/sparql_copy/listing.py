"""The named graphs of an endpoint and their counts, as many at once as fit into a response."""

from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from tamias.features.sparql_copy import queries
from tamias.features.sparql_copy.answers import Row
from tamias.features.sparql_copy.client import EndpointClient, QueryFailed, answered
from tamias.features.sparql_copy.queries import Span
from tamias.features.sparql_copy.source import uncut, writable
from tamias.features.sparql_copy.state import CopyState

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

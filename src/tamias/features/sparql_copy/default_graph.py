"""The part of the default graph to copy: all of it, what no named graph has, or nothing.

Which statements no named graph has can be asked of the server. Some look into each graph for each statement,
which takes hours where the copy takes a minute; so the question is first asked of a few statements. Where it
is dear, the default graph is copied last and compared with what came of the named graphs.
"""

from array import array
from collections.abc import Iterable, Sequence

import numpy
from pyoxigraph import Quad

from tamias.features.sparql_copy import queries
from tamias.features.sparql_copy.client import EndpointClient, answered
from tamias.features.sparql_copy.listing import GraphListing
from tamias.features.sparql_copy.state import CopyPart, CopyState, Union

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
    some = _FEW
    while some < total:
        for _ in range(2):  # the first answer of a server that has just started, or is busy, says little
            await client.number(queries.count_own_of(some))
            if client.last_seconds <= _DEAR:
                break
        else:
            return True
        some *= _GROWTH
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

"""What a strict parser reads, as lines of N-Quads: no statement becomes an object that outlives its line."""

from collections.abc import Iterator
from itertools import groupby, islice
from operator import attrgetter

from pyoxigraph import DefaultGraph, Quad, RdfFormat, serialize

from tamias.content.quad_lines import QuadLines

BATCH = 1000

_GRAPH = attrgetter("graph_name")
_DEFAULT = DefaultGraph()


def written(parser: Iterator[Quad], *, has_graphs: bool) -> list[QuadLines]:
    """All quads of a parser that is not lenient, in their order. Its `SyntaxError` passes through."""
    if not has_graphs:
        return [QuadLines(text, _DEFAULT) for text in _texts(parser, RdfFormat.N_TRIPLES)]
    runs = groupby(parser, _GRAPH)
    return [QuadLines(text, graph) for graph, run in runs for text in _texts(run, RdfFormat.N_QUADS)]


def _texts(quads: Iterator[Quad], syntax: RdfFormat) -> Iterator[bytes]:
    while text := serialize(islice(quads, BATCH), format=syntax):
        yield text

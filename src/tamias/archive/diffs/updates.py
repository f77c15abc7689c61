"""The difference of two RDF documents for machines: as two N-Quads texts, and as SPARQL that repeats it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pyoxigraph import BlankNode, DefaultGraph, Quad, RdfFormat, Triple, parse

from tamias.archive.diffs.triples import StatementsDiff

_Term = object


def as_nquads(lines: Iterable[bytes]) -> bytes:
    """Statements as an N-Quads document."""
    return b"".join(line + b"\n" for line in lines)


def as_sparql_update(found: StatementsDiff) -> str:
    """SPARQL that turns the old graph into the new one.

    A blank node cannot be named in SPARQL: it is found by all that the old document says of it and of those
    it is joined with. Nodes of which exactly the same is said are changed together.
    """
    removed, added = _quads(found.removed), _quads(found.added)
    blank_removed, blank_added = list(filter(_nodes, removed)), list(filter(_nodes, added))
    operations = [
        *_data("DELETE DATA", [quad for quad in removed if not _nodes(quad)]),
        *_data("INSERT DATA", [quad for quad in added if not _nodes(quad)]),
        *_of_nodes(blank_removed, blank_added, _quads(found.around)),
    ]
    return " ;\n".join(operations) + "\n" if operations else ""


def _quads(lines: Iterable[bytes]) -> list[Quad]:
    return list(parse(as_nquads(lines), format=RdfFormat.N_QUADS))


def _data(word: str, quads: Sequence[Quad]) -> list[str]:
    return [f"{word} {{\n{_block(quads, frozenset())}}}"] if quads else []


def _of_nodes(removed: Sequence[Quad], added: Sequence[Quad], around: Sequence[Quad]) -> Iterator[str]:
    """One operation for each group of joined nodes."""
    groups = _groups([*removed, *added, *around])
    touched = {groups[node] for quad in (*removed, *added) for node in _nodes(quad)}
    parts: dict[str, tuple[list[Quad], list[Quad], list[Quad]]] = {
        group: ([], [], []) for group in sorted(touched)
    }
    for place, quads in enumerate((removed, added, around)):
        for quad in quads:
            group = groups[next(iter(_nodes(quad)))]
            if group in parts:
                parts[group][place].append(quad)
    for gone, come, known in parts.values():
        old = frozenset(node for quad in known for node in _nodes(quad))
        gone_block, come_block, known_block = (_block(quads, old) for quads in (gone, come, known))
        yield f"DELETE {{\n{gone_block}}}\nINSERT {{\n{come_block}}}\nWHERE {{\n{known_block}}}"


def _groups(quads: Iterable[Quad]) -> dict[str, str]:
    """For each node the least node that it is joined with over any number of statements."""
    beside: dict[str, set[str]] = defaultdict(set)
    for quad in quads:
        nodes = _nodes(quad)
        for node in nodes:
            beside[node] |= nodes
    groups: dict[str, str] = {}
    for start in sorted(beside):
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node not in groups:
                groups[node] = start
                waiting += beside[node]
    return groups


def _nodes(quad: Quad) -> set[str]:
    return set(_labels(quad.subject, quad.object, quad.graph_name))


def _labels(*terms: _Term) -> Iterator[str]:
    for term in terms:
        if isinstance(term, BlankNode):
            yield term.value
        elif isinstance(term, Triple):
            yield from _labels(term.subject, term.object)


def _block(quads: Iterable[Quad], variables: frozenset[str]) -> str:
    by_graph: dict[_Term, list[str]] = defaultdict(list)
    for quad in quads:
        by_graph[quad.graph_name].append(_triple(quad, variables))
    return "".join(_in_graph(graph, triples, variables) for graph, triples in by_graph.items())


def _in_graph(graph: _Term, triples: Sequence[str], variables: frozenset[str]) -> str:
    text = "".join(f"  {triple} .\n" for triple in triples)
    return text if isinstance(graph, DefaultGraph) else f" GRAPH {_written(graph, variables)} {{\n{text} }}\n"


def _triple(triple: Quad | Triple, variables: frozenset[str]) -> str:
    terms = (triple.subject, triple.predicate, triple.object)
    return " ".join(_written(term, variables) for term in terms)


def _written(term: _Term, variables: frozenset[str]) -> str:
    if isinstance(term, BlankNode) and term.value in variables:
        return f"?{term.value}"
    return f"<<( {_triple(term, variables)} )>>" if isinstance(term, Triple) else str(term)

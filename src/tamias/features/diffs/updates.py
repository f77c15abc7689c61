"""The difference of two RDF documents for machines: as two N-Quads texts, and as SPARQL that repeats it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pyoxigraph import BlankNode, DefaultGraph, Quad, RdfFormat, Triple, parse

from tamias.content.blank_labels import blank_nodes
from tamias.features.diffs.triples import StatementsDiff, statements_diff
from tamias.model.diff import DiffLimits

_Term = object


def as_nquads(lines: Iterable[bytes]) -> bytes:
    """Statements as an N-Quads document."""
    return b"".join(line + b"\n" for line in lines)


def sparql_update(old: Path, new: Path, media_type: str, *, old_type: str, base: str | None = None) -> str:
    """Return SPARQL that turns the graph of one file into that of another. Raises `Unreadable`."""
    return as_sparql_update(statements_diff(old, new, media_type, DiffLimits(), base, old_type=old_type))


def as_sparql_update(found: StatementsDiff) -> str:
    """SPARQL that turns the old graph into the new one.

    A blank node cannot be named in SPARQL: it is found as a node of which just the same is said as in the old
    document. Several such nodes are changed together.
    """
    removed, added, around = _quads(found.removed), _quads(found.added), _quads(found.around)
    old = frozenset(node for quad in around for node in _nodes(quad))
    groups = _groups([*added, *around])
    with_old = {groups[node] for node in old}
    apart = [quad for quad in added if not any(groups[node] in with_old for node in _nodes(quad))]
    joined = [quad for quad in added if any(groups[node] in with_old for node in _nodes(quad))]
    operations = [
        *_of_nodes([quad for quad in removed if _nodes(quad)], joined, around, groups),
        *_data("DELETE DATA", [quad for quad in removed if not _nodes(quad)]),
        *_data("INSERT DATA", apart),
    ]
    return " ;\n".join(operations) + "\n" if operations else ""


def _quads(lines: Iterable[bytes]) -> list[Quad]:
    return list(parse(as_nquads(lines), format=RdfFormat.N_QUADS))


def _data(word: str, quads: Sequence[Quad]) -> list[str]:
    return [f"{word} {{\n{_block(quads, frozenset())}}}"] if quads else []


def _of_nodes(
    removed: Sequence[Quad], added: Sequence[Quad], around: Sequence[Quad], groups: dict[str, str]
) -> Iterator[str]:
    """Yield one operation on all nodes at once, so that no node matches what another has become."""
    variables = frozenset(node for quad in (*around, *added) for node in _nodes(quad))
    known, fresh = _by_group(around, groups), _by_group(added, groups)
    touched = sorted({groups[node] for quad in (*removed, *added) for node in _nodes(quad)})
    if touched:
        found = " UNION\n".join(f" {{\n{_where(known[each], fresh[each], variables)} }}" for each in touched)
        gone, come = _block(removed, variables), _block(added, variables)
        yield f"DELETE {{\n{gone}}}\nINSERT {{\n{come}}}\nWHERE {{\n{found}\n}}"


def _by_group(quads: Iterable[Quad], groups: dict[str, str]) -> dict[str, list[Quad]]:
    found: dict[str, list[Quad]] = defaultdict(list)
    for quad in quads:
        found[groups[min(_nodes(quad))]].append(quad)
    return found


def _where(known: Sequence[Quad], added: Sequence[Quad], variables: frozenset[str]) -> str:
    old = {node for quad in known for node in _nodes(quad)}
    fresh = sorted({node for quad in added for node in _nodes(quad)} - old)
    return (
        _block(known, variables)
        + "".join(_only(node, known, sorted(old), variables) for node in sorted(old))
        + "".join(f"  BIND (BNODE() AS ?{node})\n" for node in fresh)
    )


def _only(node: str, known: Sequence[Quad], old: Sequence[str], variables: frozenset[str]) -> str:
    """Return a filter: the variable is a blank node of its own, without any other statements."""
    others = "".join(f" && ?{node} != ?{other}" for other in old if other < node)
    said: dict[_Term, tuple[list[str], list[str]]] = {}
    for quad in known:
        by_it, of_it = said.setdefault(quad.graph_name, ([], [])) if node in _nodes(quad) else ([], [])
        if _is(quad.subject, node):
            by_it.append(_same(quad, quad.object, variables))
        if _is(quad.object, node):
            of_it.append(_same(quad, quad.subject, variables))
    text = f"  FILTER (isBlank(?{node}){others})\n"
    for graph, (by_it, of_it) in said.items():
        text += _nothing_but(_in_graph(graph, [f"?{node} ?property ?value"], variables), by_it)
        text += _nothing_but(_in_graph(graph, [f"?value ?property ?{node}"], variables), of_it)
    return text


def _same(quad: Quad, value: _Term, variables: frozenset[str]) -> str:
    return f"(sameTerm(?property, {quad.predicate}) && sameTerm(?value, {_written(value, variables)}))"


def _nothing_but(pattern: str, allowed: Sequence[str]) -> str:
    inner = f"  FILTER (!({' || '.join(allowed)}))\n" if allowed else ""
    return f"  FILTER NOT EXISTS {{\n{pattern}{inner}  }}\n"


def _is(term: _Term, node: str) -> bool:
    return isinstance(term, BlankNode) and term.value == node


def _groups(quads: Iterable[Quad]) -> dict[str, str]:
    """Return for each node the least node that it is joined with over any number of statements."""
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
    return {node.value for node in blank_nodes(quad.subject, quad.object, quad.graph_name)}


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

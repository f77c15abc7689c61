"""New labels for the blank nodes of statements, wherever they stand: in triple terms and as graphs too."""

from collections.abc import Callable, Iterator
from typing import Any

from pyoxigraph import BlankNode, Quad, Triple

Rename = Callable[[BlankNode], BlankNode]


def rename_blank_nodes(quad: Quad, rename: Rename) -> Quad:
    """Return the statement with other labels; the same object where it has no blank nodes."""
    terms = quad.subject, quad.object, quad.graph_name
    if not any(isinstance(term, BlankNode | Triple) for term in terms):
        return quad
    subject, value, graph = (_renamed(term, rename) for term in terms)
    return Quad(subject, quad.predicate, value, graph)


def _renamed(term: Any, rename: Rename) -> Any:
    if isinstance(term, Triple):
        return Triple(_renamed(term.subject, rename), term.predicate, _renamed(term.object, rename))
    return rename(term) if isinstance(term, BlankNode) else term


def blank_nodes(*terms: Any) -> Iterator[BlankNode]:
    """The blank nodes among terms and inside triple terms, in order."""
    for term in terms:
        if isinstance(term, BlankNode):
            yield term
        elif isinstance(term, Triple):
            yield from blank_nodes(term.subject, term.object)


class Labels:
    """Numbers the blank nodes of one page: no two pages share a label, and every run gives the same ones."""

    def __init__(self, page: str) -> None:
        self._page = page
        self._labels: dict[BlankNode, BlankNode] = {}

    def quad(self, quad: Quad) -> Quad:
        """The same statement with the new labels."""
        return rename_blank_nodes(quad, self._label)

    def _label(self, node: BlankNode) -> BlankNode:
        return self._labels.setdefault(node, BlankNode(f"{self._page}n{len(self._labels) + 1}"))

"""Blank nodes of one page of many: labelled by the page, and by their order on it."""

from typing import Any

from pyoxigraph import BlankNode, Quad, Triple


class Labels:
    """Makes the labels of one page anew: no two pages of a harvest share one, and each time the same one."""

    def __init__(self, page: str) -> None:
        self._page = page
        self._labels: dict[BlankNode, BlankNode] = {}

    def quad(self, quad: Quad) -> Quad:
        """The same statement with the new labels."""
        terms = (quad.subject, quad.predicate, quad.object, quad.graph_name)
        if not any(isinstance(term, BlankNode | Triple) for term in terms):
            return quad
        return Quad(
            self._term(quad.subject), quad.predicate, self._term(quad.object), self._term(quad.graph_name)
        )

    def _term(self, term: Any) -> Any:
        if isinstance(term, BlankNode):
            return self._labels.setdefault(term, BlankNode(f"{self._page}n{len(self._labels) + 1}"))
        if isinstance(term, Triple):
            return Triple(self._term(term.subject), term.predicate, self._term(term.object))
        return term

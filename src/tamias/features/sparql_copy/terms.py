"""Rows become quads, with terms as lenient as N-Quads allows."""

import re
from collections.abc import Iterable

from pyoxigraph import BaseDirection, BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from tamias.analyse.rdf.statements import blank_node, iri
from tamias.content.blank_labels import blank_nodes, rename_blank_nodes
from tamias.features.sparql_copy.answers import Cell, Nested, Row

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

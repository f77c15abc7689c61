"""Rows become quads: terms as lenient as N-Quads allows, blank nodes with labels that hold beyond a page."""

import re
from collections.abc import Iterable
from hashlib import blake2b

import msgspec
from pyoxigraph import (
    BaseDirection,
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    RdfFormat,
    Triple,
    parse,
)

from tamias.doors.sparql.answers import Cell, Nested, Row
from tamias.doors.sparql.scope import Scope

_WRITABLE = re.compile(r'[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>"{}|^`\\]*')
_NODE_ID = "nodeID://"
"""How Virtuoso writes the labels of blank nodes, at times in the place of an IRI."""

Term = NamedNode | BlankNode | Literal | Triple


def writable(iri: str) -> bool:
    """Whether an IRI can be written between angle brackets.

    >>> writable("http://example.org/a"), writable("http://example.org/a b")
    (True, False)
    """
    return _WRITABLE.fullmatch(iri) is not None


def is_blank(cell: Cell) -> bool:
    """Whether it is, or holds, a blank node."""
    if isinstance(cell.value, Nested):
        return is_blank(cell.value.subject) or is_blank(cell.value.object)
    return cell.type == "bnode" or cell.value.startswith(_NODE_ID)


class Page:
    """The quads of one answer, and what of it is no RDF."""

    def __init__(self, scope: Scope, label: str = "") -> None:
        """`label` goes before the labels of blank nodes, where those hold for one answer only."""
        self._label = label
        self._iris: dict[str, NamedNode] = {}
        self.graph = self._iri(scope.graph) if scope.graph else None if scope.named else DefaultGraph()
        self._subject = self._iri(scope.subject) if scope.subject else None
        self._predicate = self._iri(scope.predicate) if scope.predicate else None
        self.quads: list[Quad] = []
        self.unreadable = 0
        self.example = ""

    def take(self, rows: Iterable[Row]) -> None:
        """Adds what the rows say."""
        for row in rows:
            try:
                self.quads.append(self._quad(row))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                self.unreadable += 1
                self.example = self.example or f"{error}"[:200]

    def _quad(self, row: Row) -> Quad:
        graph = self.graph or self._term(row["g"])
        subject = self._subject or self._term(row["s"])
        predicate = self._predicate or self._term(row["p"])
        return Quad(subject, predicate, self._term(row["o"]), graph)  # type: ignore[arg-type]

    def _term(self, cell: Cell) -> Term:
        value = cell.value
        if isinstance(value, Nested):
            return Triple(*(self._term(each) for each in (value.subject, value.predicate, value.object)))  # type: ignore[arg-type]
        if cell.type == "bnode" or value.startswith(_NODE_ID):
            return _blank(self._label + value)
        if cell.type == "uri":
            return self._iri(value)
        if cell.language:
            direction = BaseDirection(cell.direction) if cell.direction else None
            return Literal(value, language=cell.language, direction=direction)
        return Literal(value, datatype=self._iri(cell.datatype)) if cell.datatype else Literal(value)

    def _iri(self, value: str) -> NamedNode:
        found = self._iris.get(value)
        if found is None:
            found = self._iris[value] = _named(value)
        return found


def _named(value: str) -> NamedNode:
    try:
        return NamedNode(value)
    except ValueError:
        if not writable(value):
            raise ValueError(f"{value[:200]!r} is no absolute IRI") from None
    # Only a parser makes an IRI that breaks a finer rule, such as %zz.
    [quad] = parse(f"<{value}> <urn:p> <urn:o> .".encode(), format=RdfFormat.N_TRIPLES, lenient=True)
    if not isinstance(quad.subject, NamedNode):
        raise ValueError(f"{value[:200]!r} is no absolute IRI")
    return quad.subject


def _blank(label: str) -> BlankNode:
    try:
        return BlankNode(label)
    except ValueError:
        return BlankNode("z" + blake2b(label.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest())


def digest(row: Row) -> str:
    """A row's mark, by which it is known again."""
    return blake2b(msgspec.json.encode(row, order="sorted"), digest_size=12).hexdigest()

"""Statements about one dataset while they are gathered, and the nodes that several properties share."""

from collections.abc import Iterable
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from tamias.harvesters.kit.terms import below, day_or_moment, sound_iri, text_literal, word


class DcatStatements:
    """Gathers quads about a record of a catalogue and what belongs to it."""

    def __init__(self, catalogue: str, record: str, language: str | None = None) -> None:
        self.catalogue = catalogue
        self.language = language
        self.quads: list[Quad] = []
        self._record = below(catalogue, record).value

    def part(self, *segments: str) -> NamedNode:
        """The IRI of the record, or of a part of it that has none of its own. Segments are plain words."""
        return NamedNode("/".join((self._record, *segments)))

    def add(self, subject: NamedNode, predicate: str, value: NamedNode | Literal | None) -> None:
        """One statement; none where there is no value."""
        if value is not None:
            self.quads.append(Quad(subject, word(predicate), value))

    def text(self, subject: NamedNode, predicate: str, value: str | None) -> None:
        """A text in the dataset's language."""
        if value and value.strip():
            self.add(subject, predicate, text_literal(value, self.language))

    def plain(self, subject: NamedNode, predicate: str, value: str | None) -> None:
        """A text that is in no language: a name, a number, a code."""
        if value and value.strip():
            self.add(subject, predicate, text_literal(value))

    def date(self, subject: NamedNode, predicate: str, value: str | None) -> None:
        """A date, where the text is one."""
        self.add(subject, predicate, day_or_moment(value))

    def page(self, subject: NamedNode, predicate: str, address: str | None) -> None:
        """A page for people."""
        if node := sound_iri(address, web=True):
            self.typed(subject, predicate, node, "foaf:Document")

    def typed(self, subject: NamedNode, predicate: str, node: NamedNode, kind: str) -> None:
        """Another node and what it is."""
        self.add(subject, predicate, node)
        self.add(node, "rdf:type", word(kind))

    def named(
        self, subject: NamedNode, predicate: str, kind: str, value: str | None, part: NamedNode,
        iri: str | None = None,
    ) -> None:  # fmt: skip
        """What a text names: `iri`, or itself where it is a sound IRI; else `part`, which bears the text."""
        if not (value and value.strip()):
            return
        node = NamedNode(iri) if iri else sound_iri(value)
        self.typed(subject, predicate, node or part, kind)
        if node is None:
            self.text(part, "rdfs:label", value)

    def standards(self, subject: NamedNode, values: Iterable[str], *segments: str) -> None:
        """What it conforms to."""
        for number, value in enumerate(values, 1):
            part = self.part(*segments, "standard", str(number))
            self.named(subject, "dct:conformsTo", "dct:Standard", value, part)

    def concept(self, subject: NamedNode, predicate: str, node: NamedNode, label: str) -> None:
        """A concept with the label that every concept must have."""
        self.typed(subject, predicate, node, "skos:Concept")
        self.text(node, "skos:prefLabel", label)


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

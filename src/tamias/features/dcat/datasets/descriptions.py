"""The statements of a page by their subject, to read descriptions from: an index in memory, bounded."""

from collections.abc import Iterable

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from tamias.model.vocabulary import RDF_TYPE, sound_iri

MOST_STATEMENTS = 500_000
"""What is kept of one page; about 300 bytes each."""

Node = NamedNode | BlankNode
Term = NamedNode | BlankNode | Literal


class Descriptions:
    """Statements by their subject, whatever graph they are in. Those beyond the limit are left out."""

    def __init__(self, quads: Iterable[Quad] = (), most: int = MOST_STATEMENTS) -> None:
        self._of: dict[Node, dict[str, dict[Term, None]]] = {}
        self._typed: dict[str, dict[Node, None]] = {}
        self._room = most
        self.add(quads)

    @property
    def full(self) -> bool:
        """Return whether statements were left out."""
        return self._room < 0

    def add(self, quads: Iterable[Quad]) -> None:
        """Add statements, in any order."""
        for quad in quads:
            self._room -= 1
            if self._room < 0:
                self._room = -1
                return
            if isinstance(quad.subject, Triple) or isinstance(quad.object, Triple):
                continue
            said = self._of.setdefault(quad.subject, {})
            said.setdefault(quad.predicate.value, {})[quad.object] = None
            if quad.predicate.value == RDF_TYPE.value and isinstance(quad.object, NamedNode):
                self._typed.setdefault(quad.object.value, {})[quad.subject] = None

    def of_type(self, *types: str) -> list[Node]:
        """Return the nodes of these types, in the order in which they were added."""
        return list(dict.fromkeys(node for each in types for node in self._typed.get(each, ())))

    def saying(self, predicate: str) -> list[Node]:
        """Return the nodes that have this predicate."""
        return [node for node, said in self._of.items() if predicate in said]

    def nodes(self) -> list[Node]:
        """Return all subjects, in the order in which they were added."""
        return list(self._of)

    def statements(self, node: Term) -> list[Triple]:
        """Return all statements about a node."""
        if isinstance(node, Literal) or node not in self._of:
            return []
        said = self._of[node].items()
        return [Triple(node, NamedNode(name), value) for name, values in said for value in values]

    def knows(self, node: Term) -> bool:
        """Return whether a node is a subject."""
        return node in self._of

    def values(self, node: Term, *predicates: str) -> list[Term]:
        """Return all values of these predicates, those of the first predicate first."""
        said = self._of.get(node, {}) if not isinstance(node, Literal) else {}
        return [value for predicate in predicates for value in said.get(predicate, ())]

    def literal(self, node: Term, *predicates: str) -> Literal | None:
        """Return a literal of the first predicate with one: English, else without a language, else any."""
        for predicate in predicates:
            found = [value for value in self.values(node, predicate) if isinstance(value, Literal)]
            found = [value for value in found if value.value.strip()]
            if found:
                return min(found, key=_preference)
        return None

    def text(self, node: Term, *predicates: str) -> str | None:
        """Return the text of `literal`."""
        found = self.literal(node, *predicates)
        return found.value.strip() if found is not None else None

    def texts(self, node: Term, *predicates: str) -> tuple[str, ...]:
        """Return the texts of all literals, each once."""
        return _each_once(value for value in self.values(node, *predicates) if isinstance(value, Literal))

    def words(self, node: Term, *predicates: str) -> tuple[str, ...]:
        """Return the texts of literals and the IRIs among the values, each once."""
        return _each_once(
            value for value in self.values(node, *predicates) if not isinstance(value, BlankNode)
        )

    def iris(self, node: Term, *predicates: str) -> tuple[str, ...]:
        """Return the values that are IRIs, also where a literal holds one."""
        return tuple(word for word in self.words(node, *predicates) if sound_iri(word))


def is_web(text: str | None) -> bool:
    """Return whether a text is an address that can be fetched."""
    return sound_iri(text, web=True) is not None


def _each_once(values: Iterable[NamedNode | Literal]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (value.value.strip() for value in values))))


def _preference(literal: Literal) -> tuple[int, str, str]:
    language = (literal.language or "").lower()
    rank = 0 if language.partition("-")[0] == "en" else 1 if not language else 2
    return rank, language, literal.value

"""The addresses that a batch of quads speaks of."""

from collections.abc import Iterable

from pyoxigraph import NamedNode, Quad

_WEB = ("http://", "https://", "HTTP://", "HTTPS://")


def rdf_links(
    quads: list[Quad], *, subjects: bool = True, predicates: bool = True, objects: bool = True
) -> set[str]:
    """The distinct http(s) IRIs in the places that are asked for, as they stand.

    Graph names are left out: they say where a statement was, not what it is about.
    """
    found: set[str] = set()
    if subjects:
        found.update(_iris(quad.subject for quad in quads))
    if predicates:
        found.update({quad.predicate.value for quad in quads})
    if objects:
        found.update(_iris(quad.object for quad in quads))
    return {iri for iri in found if iri.startswith(_WEB)}


def _iris(terms: Iterable[object]) -> set[str]:
    return {term.value for term in terms if type(term) is NamedNode}

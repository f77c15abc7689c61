"""The addresses that a batch of quads speaks of."""

from collections.abc import Iterable, Sequence
from itertools import chain, compress

from pyoxigraph import NamedNode, Quad

from tamias.content.quad_lines import QuadLines

_WEB = ("http://", "https://", "HTTP://", "HTTPS://", "ftp://", "ftps://")
_WEB_WORD = (b"<http", b"<HTTP", b"<ftp")


def rdf_links(
    quads: Sequence[Quad], *, subjects: bool = True, predicates: bool = True, objects: bool = True
) -> set[str]:
    """The distinct IRIs of the Web and of FTP in the places that are asked for, as they stand.

    Graph names are left out: they say where a statement was, not what it is about.
    """
    if isinstance(quads, QuadLines):
        return _links_of_lines(quads, (subjects, predicates, objects))
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


def _links_of_lines(lines: QuadLines, wanted: tuple[bool, bool, bool]) -> set[str]:
    words = lines.words if all(wanted) else _columns(lines, wanted)
    likely = [word[1 : word.index(b">")] for word in words if word.startswith(_WEB_WORD)]
    return {iri for iri in b"\n".join(likely).decode().split("\n") if iri.startswith(_WEB)}


def _columns(lines: QuadLines, wanted: tuple[bool, bool, bool]) -> set[bytes]:
    rows = (line.split(b" ", 2) for line in lines.nquads.splitlines())
    return set(chain.from_iterable(compress(row, wanted) for row in rows))

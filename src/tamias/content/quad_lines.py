"""Quads as the lines of N-Quads that say them: what a parser read is stored without an object for each.

And the addresses that a batch of quads names, in either form.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property, lru_cache
from itertools import chain, compress, repeat
from typing import overload

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple, parse


class QuadLines(Sequence[Quad]):
    """Quads of one graph, as pyoxigraph wrote what its strict parser read: each line is sound.

    Quad objects are made when they are asked for, anew each time.
    """

    def __init__(self, nquads: bytes, graph: NamedNode | BlankNode | DefaultGraph) -> None:
        self.nquads = nquads
        self.graph = graph
        self._length = nquads.count(b" .\n")

    @cached_property
    def words(self) -> set[bytes]:
        """Return every subject, every predicate, and every object with the rest of its line."""
        lines = self.nquads.split(b"\n")
        del lines[-1:]  # what follows the last line end
        return set(chain.from_iterable(map(bytes.split, lines, repeat(b" "), repeat(2))))

    def saying(self, predicates: Set[bytes]) -> list[Quad]:
        """The quads with one of these predicates, each as `<IRI>`, and perhaps some others."""
        return self.having([b" %b " % predicate for predicate in predicates & self.words])

    def having(self, texts: Iterable[bytes]) -> list[Quad]:
        """Return the quads in whose lines one of some texts stands."""
        found: dict[int, bytes] = {}
        for text in texts:
            found.update(self._lines_with(text))
        if not found:
            return []
        return list(parse(b"".join(found[start] for start in sorted(found)), format=RdfFormat.N_QUADS))

    def _lines_with(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        place = self.nquads.find(text)
        while place >= 0:
            start, end = self.nquads.rfind(b"\n", 0, place) + 1, self.nquads.find(b"\n", place) + 1
            yield start, self.nquads[start:end]
            place = self.nquads.find(text, end)

    @property
    def end(self) -> bytes:
        """Return the end of each line, after the object, which nothing else ends with."""
        return b" .\n" if isinstance(self.graph, DefaultGraph) else f" {self.graph} .\n".encode()

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Quad]:
        return parse(self.nquads, format=RdfFormat.N_QUADS)

    @overload
    def __getitem__(self, index: int) -> Quad: ...
    @overload
    def __getitem__(self, index: slice) -> list[Quad]: ...
    def __getitem__(self, index: int | slice) -> Quad | list[Quad]:
        return list(self)[index]


WEB_SCHEMES = ("http", "https", "ftp", "ftps")


@lru_cache
def _beginnings(schemes: tuple[str, ...]) -> tuple[str, ...]:
    """Return how addresses of these schemes begin; schemes may be written in capitals."""
    starts = [f"{each}://" if each.lower() in WEB_SCHEMES else f"{each}:" for each in schemes]
    return tuple({case for each in starts for case in (each.lower(), each.upper())})


def rdf_links(
    quads: Sequence[Quad],
    *,
    subjects: bool = True,
    predicates: bool = True,
    objects: bool = True,
    datatypes: bool = False,
    schemes: tuple[str, ...] = WEB_SCHEMES,
) -> set[str]:
    """Return the distinct IRIs of some schemes in some places, as they stand; also in triple terms.

    Graph names are left out: they say where a statement was, not what it is about.
    """
    wanted, found, beginnings = (subjects, predicates, objects), set[str](), _beginnings(schemes)
    if isinstance(quads, QuadLines) and not datatypes:
        found, quads = _links_of_lines(quads, wanted, beginnings), quads.having([b" <<("])
    for each in quads:
        for part in _parts(each):
            terms = compress((part.subject, part.predicate, part.object), wanted)
            found.update(term.value for term in terms if type(term) is NamedNode)
            if datatypes and isinstance(part.object, Literal):
                found.add(part.object.datatype.value)
    return {iri for iri in found if iri.startswith(beginnings)}


def _parts(statement: Quad) -> Iterator[Quad | Triple]:
    """Yield a statement, and each triple term in it."""
    part: object = statement
    while isinstance(part, Quad | Triple):
        yield part
        part = part.object


def _links_of_lines(
    lines: QuadLines, wanted: tuple[bool, bool, bool], beginnings: tuple[str, ...]
) -> set[str]:
    words = lines.words if all(wanted) else _columns(lines, wanted)
    starts = tuple(f"<{each}".encode() for each in beginnings)
    found = {word[1 : word.index(b">")] for word in words if word.startswith(starts)}
    return set(b"\n".join(found).decode().split("\n")) if found else set()


def _columns(lines: QuadLines, wanted: tuple[bool, bool, bool]) -> set[bytes]:
    rows = (line.split(b" ", 2) for line in lines.nquads.splitlines())
    return set(chain.from_iterable(compress(row, wanted) for row in rows))

"""Quads as the lines of N-Quads that say them: what a parser read is stored without an object for each."""

from collections.abc import Iterator, Sequence, Set
from functools import cached_property
from itertools import chain, repeat
from typing import overload

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, parse


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
        """Every subject, every predicate, and every object with what follows it to the end of its line."""
        lines = self.nquads.split(b"\n")
        del lines[-1:]  # what follows the last line end
        return set(chain.from_iterable(map(bytes.split, lines, repeat(b" "), repeat(2))))

    def saying(self, predicates: Set[bytes]) -> list[Quad]:
        """The quads with one of these predicates, each as `<IRI>`, and perhaps some others."""
        found: dict[int, bytes] = {}
        for predicate in predicates & self.words:
            found.update(self._lines_with(b" %b " % predicate))
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
        """How each line ends, and nothing else does: after the object."""
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

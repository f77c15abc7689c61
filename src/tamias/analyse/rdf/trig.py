"""TriG with a fault in it: its graphs one by one, and of a bad graph the good statements.

A lost brace must not carry statements into another graph, so what stands next to one is left out.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from pyoxigraph import Quad, RdfFormat

from tamias.analyse.rdf.recover import Faults, Piece, Read, TextPlace, taken_apart
from tamias.analyse.rdf.turtle import Turtle, statements
from tamias.content.rdf_detection import BOUNDARY_OR_BRACE

_NAME = re.compile(
    rb"(?:\s|#[^\n]*\n)*(?:(?i:graph)\s+)?(?:<[^<>\s]*>|[^\s<>\"'{}\[\]();,]*:[^\s<>\"'{}\[\]();,]*|\[\s*\])?(?:\s|#[^\n]*\n)*"
)
_MAX_NAME = 4000


class Trig(Turtle):
    """A TriG document that the parser could not read."""

    syntax = RdfFormat.TRIG
    _graph: bytes | None = None

    def of(self, text: bytes, faults: Faults) -> Iterator[Read]:
        """Yield the good statements of all graphs whose beginning and end are beyond doubt."""
        return taken_apart([piece for graph in graphs(text) for piece in _in_graph(graph)], self, faults)

    def read(self, text: bytes, *, lenient: bool = False) -> list[Quad]:
        if self._graph is None:
            return super().read(text, lenient=lenient)
        return super().read(b"%b{%b}" % (self._graph, text), lenient=lenient)

    def salvage(self, piece: Piece) -> list[Quad]:
        opening = _opening(piece.text)
        if opening is None:
            return [] if b"}" in piece.text else super().salvage(piece)
        if not piece.text.endswith(b"}") or b"[" in piece.text[: opening.start()]:
            return []
        self._graph = piece.text[: opening.start()]
        try:
            # The brace ends the last statement, dot or no dot.
            text = piece.text[opening.end() : -1].rstrip().removesuffix(b".") + b" ."
            return super().salvage(Piece(text, piece.place.after(piece.text[: opening.end()])))
        finally:
            self._graph = None


def _opening(text: bytes) -> re.Match[bytes] | None:
    return next((each for each in BOUNDARY_OR_BRACE.finditer(text) if each.lastgroup == "open"), None)


def _in_graph(piece: Piece) -> list[Piece]:
    """Return each statement of a graph in a graph of its own, so that it can be read alone."""
    opening = _opening(piece.text)
    if opening is None or b"[" in piece.text[: opening.start()]:
        return [piece]
    name, content = piece.text[: opening.end()].strip(), piece.text[opening.end() :].rstrip()
    *inner, last = statements(content.removesuffix(b"}"), piece.place.after(piece.text[: opening.end()]))
    pieces = [_wrapped(each, name) for each in inner]
    if last.text.strip() or not content.endswith(b"}"):
        # What neither a dot nor a brace ends may be cut off, and stays as it is.
        pieces.append(_wrapped(last, name) if content.endswith(b"}") else Piece(name + last.text, last.place))
    return pieces


def _wrapped(statement: Piece, name: bytes) -> Piece:
    line, column = statement.place
    return Piece(b"%b%b}" % (name, statement.text), TextPlace(line, column - len(name)))


def graphs(text: bytes) -> list[Piece]:
    """The text cut after each graph and, outside of graphs, each statement and directive."""
    scan = _BraceScan(text)
    for found in BOUNDARY_OR_BRACE.finditer(text):
        if found.lastgroup is not None:
            scan.take(found.lastgroup, found.start(), found.end())
    return _cut(text, [*scan.ends, len(text)])


class _BraceScan:
    """The ends of the pieces of a text, as far as damaged braces show them."""

    def __init__(self, text: bytes) -> None:
        self.ends = [0]
        self._text = text
        self._sure = 0
        """So many of the ends, after the first, are beyond doubt."""
        self._last = 0
        """Where the last statement, directive or graph ended, even inside a graph."""
        self._is_open = self._is_doubtful = self._is_directive = False

    def take(self, kind: str, start: int, end: int) -> None:
        if kind == "open":
            self._opened(start)
            return
        if kind == "close":
            if not self._is_open:  # a graph lost its beginning, and all since the last one may belong to it
                self._merge()
            self._end(end)
        elif kind == "dot" and self._is_directive:
            self._end(end)
        elif kind == "dot":
            if not self._is_open:
                self.ends.append(end)
        else:
            self._end(start if kind == "before" else end)
            self._is_directive = kind == "before"
        self._last = end

    def _opened(self, start: int) -> None:
        if start - self._last > _MAX_NAME or not _NAME.fullmatch(self._text, self._last, start):
            if self._is_open:
                self._end(self._last)
            self._is_doubtful = True  # no graph begins here, or one ended too early, or has no end
            return
        if self._is_doubtful:
            self._merge()
        if self._is_open or self._is_doubtful:  # what stands before has no end
            self._end(self._last)
        self._is_open = True

    def _merge(self) -> None:
        del self.ends[self._sure + 1 :]

    def _end(self, end: int) -> None:
        self.ends.append(end)
        self._sure = len(self.ends) - 1
        self._is_open = self._is_doubtful = self._is_directive = False


def _cut(text: bytes, ends: list[int]) -> list[Piece]:
    pieces, place = [], TextPlace()
    for start, end in pairwise(ends):
        if text[start:end].strip():
            pieces.append(Piece(text[start:end], place))
        place = place.after(text[start:end])
    return pieces

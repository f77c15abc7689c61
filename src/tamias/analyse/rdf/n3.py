"""Notation3 as far as it is RDF: formulae are told and left out, the data around them is read."""

import re
from collections.abc import Iterator
from itertools import chain

from pyoxigraph import BlankNode, RdfFormat, parse

from tamias.analyse.chunks import as_stream
from tamias.analyse.rdf.recover import Faults, Piece, Read, TextPlace, read_on, taken_apart
from tamias.analyse.rdf.turtle import Turtle
from tamias.content.rdf_detection import BOUNDARY_OR_BRACE
from tamias.model.document import DocumentBudget

_BASE = re.compile(rb"^[ \t]*(?:@base\s+<[^<>\s]*>\s*\.|(?i:base)\s+<[^<>\s]*>)", re.MULTILINE)
_OWN_EMPTY_PREFIX = re.compile(rb"^[ \t]*@?(?i:prefix)[ \t]+:", re.MULTILINE)


class N3(Turtle):
    """A Notation3 document. The empty prefix, where it is not declared, stands for the base and a hash."""

    syntax = RdfFormat.N3

    def __init__(self, base: str | None, budget: DocumentBudget) -> None:
        super().__init__(base, budget)
        if base is not None:
            self._prefixes = {"": base.partition("#")[0] + "#"}

    def of(self, text: bytes, faults: Faults) -> Iterator[Read]:
        """Yield all statements that have no formula in them and no other fault."""
        text = _with_empty_prefix(text)
        pieces = _statements(text) if b"{" in text else []
        if not any(has_formula for _, has_formula in pieces):
            yield from self._without_formulae(text, faults)
            return
        data: list[Piece] = []
        for piece, has_formula in pieces:
            if has_formula:
                yield from taken_apart(data, self, faults)
                data = []
                blank = len(piece.text) - len(piece.text.lstrip())
                place = piece.place.after(piece.text[:blank])
                yield from faults.report("a formula is not RDF data, statement left out", place)
            else:
                data.append(piece)
        yield from taken_apart(data, self, faults)

    def streamed(self, chunks: Iterator[bytes], faults: Faults) -> Iterator[Read]:
        """A document too large to hold, up to the first formula or other fault."""
        source = as_stream(chain((self.header,), chunks))
        parser = parse(source, format=self.syntax, base_iri=self._base, lenient=True)
        for read in read_on(parser, faults, to_the_end=False):
            if isinstance(read, list) and any(isinstance(quad.graph_name, BlankNode) for quad in read):
                yield from faults.report("a formula is not RDF data, the rest was not read")
                return
            yield read

    def _without_formulae(self, text: bytes, faults: Faults) -> Iterator[Read]:
        try:
            found = self.written(text)
        except SyntaxError:
            yield from taken_apart([piece for piece, _ in _statements(text)], self, faults)
        else:
            yield from found


def _with_empty_prefix(text: bytes) -> bytes:
    """Lets the empty prefix follow the base, up to where the document declares it itself."""
    own = _OWN_EMPTY_PREFIX.search(text)
    end = own.start() if own else len(text)
    return _BASE.sub(rb"\g<0> @prefix : <#> .", text[:end]) + text[end:]


def _statements(text: bytes) -> list[tuple[Piece, bool]]:
    """The text cut after each statement, and whether there is a formula in it."""
    pieces, place, start = [], TextPlace(), 0
    depth, has_formula = 0, False
    for end, kind in [*_boundaries(text), (len(text), "dot")]:
        if kind in ("open", "close"):
            depth, has_formula = max(0, depth + (1 if kind == "open" else -1)), True
        elif kind == "before" or depth == 0 or end == len(text):
            piece = text[start:end]
            pieces.append((Piece(piece, place), has_formula))
            place, start = place.after(piece), end
            depth, has_formula = (depth, depth > 0) if kind == "before" else (0, False)
    return pieces


def _boundaries(text: bytes) -> Iterator[tuple[int, str]]:
    for found in BOUNDARY_OR_BRACE.finditer(text):
        if found.lastgroup is not None:
            yield (found.start() if found.lastgroup == "before" else found.end()), found.lastgroup

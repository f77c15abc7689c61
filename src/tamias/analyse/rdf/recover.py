"""Reads RDF piece by piece and takes what has a fault apart, until the fault stands alone.

A piece (a line, a statement, a node element) is read whole or not at all: never from its middle.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tamias.analyse.chunks import times
from tamias.content.quad_lines import QuadLines
from tamias.model.document import DocumentBudget, TextPosition
from tamias.model.finding import Finding, Problem, Quads

BATCH = 1000
MAX_MESSAGE = 500

_WHERE = re.compile(r"^Parser error (?:at|between) line (?:[^:]|:(?! ))*: ")
_UNSAYABLE = re.compile(r'[\x00-\x20<>"{}|^`\\]')
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")

Read = list[Quad] | QuadLines | Problem | TextPosition


class TextPlace(NamedTuple):
    """A place in a document: line and column from 1, the column in characters."""

    line: int = 1
    column: int = 1

    def after(self, text: bytes) -> "TextPlace":
        """Return the place after a text."""
        lines, last = times(b"\n", text), text[text.rfind(b"\n") + 1 :].decode("utf-8", "replace")
        return TextPlace(self.line + lines, len(last) + (1 if lines else self.column))

    def within(self, line: int, column: int) -> "TextPlace":
        """A place counted from here, as a place of the document."""
        return TextPlace(self.line + line - 1, column if line > 1 else self.column + column - 1)


class Piece(NamedTuple):
    """A piece of text that can be read on its own, and its place."""

    text: bytes
    place: TextPlace


class Faults:
    """Counts what is wrong with one document against what is right; `budget` is what it may become."""

    def __init__(self, most: int, budget: DocumentBudget) -> None:
        self._most = most
        self.budget = budget
        self.count = 0
        self.given_up = False
        """There are too many, and more than one for nine good statements."""
        self.good = 0
        self._noted = 0

    def note(self, what: str, place: TextPlace) -> Iterator[Problem]:
        """A problem by which nothing was lost: it says nothing against the rest."""
        self._noted += 1
        if self._noted <= self._most:
            yield Problem(what[:MAX_MESSAGE], *place)

    def report(self, what: str, place: TextPlace | None = None) -> Iterator[Problem]:
        """Yield the problem, unless there were too many."""
        self.count += 1
        self.given_up = self.count > self._most and self.count * 9 > self.good
        if self.count <= self._most:
            line, column = place or (None, None)
            yield Problem(_WHERE.sub("", what)[:MAX_MESSAGE], line, column)

    def summary(self) -> Iterator[Problem]:
        """Yield a summary of problems that were not reported one by one."""
        if self._noted > self._most:
            yield Problem(f"{self._noted - self._most} more leniencies (limit analyse.max_errors)")
        if self.given_up:
            yield Problem(f"more than {self._most} errors (limit analyse.max_errors), the rest was not read")
        elif self.count > self._most:
            yield Problem(f"{self.count - self._most} more errors (limit analyse.max_errors)")


class Grammar(Protocol):
    """The way in which pieces of a syntax are read."""

    def read(self, text: bytes, *, lenient: bool = False) -> list[Quad]:
        """Return all quads of a text. Raises `SyntaxError`, with places counted from its beginning."""
        ...

    def salvage(self, piece: Piece) -> list[Quad]:
        """Return the quads of a damaged piece that are beyond doubt, if any."""
        ...


def taken_apart(pieces: Sequence[Piece], grammar: Grammar, faults: Faults) -> Iterator[Read]:
    """Reads pieces in their order; those with a fault are found by halving."""
    if not pieces or faults.given_up:
        return
    faults.budget.check()
    try:
        quads = grammar.read(b"".join(piece.text for piece in pieces))
    except SyntaxError as fault:
        if len(pieces) == 1:
            yield from _of_a_bad_piece(pieces[0], grammar, faults, fault)
            return
        half = len(pieces) // 2
        yield from taken_apart(pieces[:half], grammar, faults)
        yield from taken_apart(pieces[half:], grammar, faults)
    else:
        faults.good += len(quads)
        yield quads


def _of_a_bad_piece(piece: Piece, grammar: Grammar, faults: Faults, fault: SyntaxError) -> Iterator[Read]:
    quads = _without_checks(piece, grammar)
    note = "; kept as it stands" if quads is not None else ""
    if quads is None:
        quads = grammar.salvage(piece)
    faults.good += len(quads)
    place = piece.place.within(fault.lineno or 1, fault.offset or 1)
    yield from faults.report(_WHERE.sub("", fault.msg) + note, place)
    if quads:
        yield quads


def _without_checks(piece: Piece, grammar: Grammar) -> list[Quad] | None:
    """Read a piece without checks of IRIs; return None where something else was taken for one."""
    try:
        quads = grammar.read(piece.text, lenient=True)
    except SyntaxError:
        return None
    return quads if all(_is_sayable(quad) for quad in quads) else None


def _is_sayable(quad: Quad) -> bool:
    """Return whether all its IRIs are absolute, and without characters that end them in any syntax."""
    terms: list[object] = [*quad]
    while terms:
        term = terms.pop()
        if isinstance(term, Triple):
            terms.extend(term)
        if isinstance(term, Literal):
            term = term.datatype
        if isinstance(term, NamedNode) and (_UNSAYABLE.search(term.value) or not _SCHEME.match(term.value)):
            return False
    return True


def read_on(
    parser: Iterator[Quad], faults: Faults, start: TextPlace | None = None, *, to_the_end: bool = True
) -> Iterator[Read]:
    """Read what is too large to be taken apart: after a fault the parser goes on.

    Near a fault it may then say what the document does not; in a graph it forgets the graph, so that syntaxes
    with graphs are not to be read to the end.
    """
    start, going_on = start or TextPlace(), True
    while going_on and not faults.given_up:
        quads: list[Quad] = []
        problems: list[Problem] = []
        try:
            quads.extend(islice(parser, BATCH))
            going_on = len(quads) == BATCH
        except SyntaxError as fault:
            place = start.within(fault.lineno, fault.offset or 1) if fault.lineno else None
            what = fault.msg if to_the_end else f"{_WHERE.sub('', fault.msg)}; the rest was not read"
            problems.extend(faults.report(what, place))
            going_on = to_the_end
        faults.good += len(quads)
        yield from problems
        yield quads


def batched(found: Iterable[Read]) -> Iterator[Finding]:
    """Quads in batches of one size; lines, positions and problems as they come."""
    batch: list[Quad] = []
    for each in found:
        if isinstance(each, Problem):
            yield each
            continue
        if isinstance(each, QuadLines | TextPosition):
            if batch:
                yield Quads(batch)
                batch = []
            yield Quads(each) if isinstance(each, QuadLines) else each
            continue
        batch += each
        if len(batch) >= BATCH:
            whole = len(batch) // BATCH * BATCH
            for start in range(0, whole, BATCH):
                yield Quads(batch[start : start + BATCH])
            batch = batch[whole:]
    if batch:
        yield Quads(batch)

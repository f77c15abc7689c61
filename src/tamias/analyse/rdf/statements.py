"""Makes terms, and gathers the statements of one document into batches.

A syntax that names a term once and then points to it can say terabytes in a megabyte: so what a parser makes
is checked against the document's budget while it is made.
"""

import io
import re
from collections.abc import Iterator
from hashlib import blake2b
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING

from pyoxigraph import (
    BaseDirection,
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    RdfFormat,
    parse,
    serialize,
)

from tamias.analyse.chunks import MIB, RefusedError
from tamias.content.quad_lines import QuadLines
from tamias.model.document import Document, DocumentBudget, LimitExceeded
from tamias.model.finding import Finding, Problem, Quads
from tamias.settings import AnalyseSettings

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

BATCH = 1000
BATCH_BYTES = 8 * MIB

CHECKED_BYTES = 1 << 16
_MAX_MESSAGE = 500


class RdfStatements:
    """The statements and the problems of a document."""

    def __init__(self, limits: AnalyseSettings) -> None:
        self._most_faults = limits.max_errors
        self._faults = 0
        self._batch: list[Quad] = []
        self._size = 0

    def say(self, quad: Quad, size: int) -> bool:
        """Takes a statement with the bytes of its terms; whether it is time to `take` a batch."""
        self._batch.append(quad)
        self._size += size
        return len(self._batch) >= BATCH or self._size >= BATCH_BYTES

    def take(self) -> Quads:
        """Return the batch, and begin the next."""
        batch, self._batch, self._size = self._batch, [], 0
        return Quads(batch)

    def fault(self, what: str, line: int | None = None) -> Iterator[Problem]:
        """A problem, unless there were too many."""
        self._faults += 1
        if self._faults <= self._most_faults:
            yield Problem(what[:_MAX_MESSAGE], line)

    def rest(self) -> Iterator[Finding]:
        """Yield what is left at the end."""
        if self._batch:
            yield Quads(self._batch)
        if self._faults > self._most_faults:
            yield Problem(f"{self._faults - self._most_faults} more errors (limit analyse.max_errors)")


class StatementAnalyser:
    """An analyser that reads a document statement by statement, up to where it is refused to read on."""

    def __init__(self, limits: AnalyseSettings | None = None) -> None:
        self._limits = limits or AnalyseSettings()

    def analyse(self, document: Document) -> Iterator[Finding]:
        statements = RdfStatements(self._limits)
        reason: LimitExceeded | RefusedError | None = None
        try:
            yield from self._read(document, statements)
        except (LimitExceeded, RefusedError) as stop:
            reason = stop
        yield from statements.rest()
        if isinstance(reason, RefusedError):
            yield Problem(str(reason))
        elif reason:
            raise reason

    def _read(self, document: Document, statements: RdfStatements) -> Iterator[Finding]:
        raise NotImplementedError


_WRITABLE = re.compile(r'[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>"{}|^`\\]*')


def iri(text: str) -> NamedNode:
    """An absolute IRI. Raises `ValueError` for what N-Quads could not say."""
    try:
        return NamedNode(text)
    except ValueError:
        if not _WRITABLE.fullmatch(text):
            raise ValueError(f"{text[:200]!r} is not an absolute IRI") from None
    # Only a parser makes an IRI that breaks a finer rule, such as %zz.
    line = f"<{text}> <urn:p> <urn:o> .".encode()
    [quad] = parse(line, format=RdfFormat.N_TRIPLES, lenient=True)
    return NamedNode(text) if not isinstance(quad.subject, NamedNode) else quad.subject


def blank_node(label: str) -> BlankNode:
    """A blank node; a label that N-Quads does not allow becomes its hash."""
    try:
        if ":" not in label:  # which pyoxigraph takes, writes, and cannot read again
            return BlankNode(label)
    except ValueError:
        pass
    return BlankNode("z" + blake2b(label.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest())


def literal(value: str, language: str | None = None, datatype: str | None = None) -> Literal:
    """A literal; of language and datatype, the language counts. Raises `ValueError` for a bad one."""
    if language:
        tag, _, direction = language.partition("--")
        return Literal(value, language=tag, direction=BaseDirection(direction) if direction else None)
    return Literal(value, datatype=iri(datatype)) if datatype else Literal(value)


_GRAPH = attrgetter("graph_name")
_DEFAULT = DefaultGraph()


def written(parser: Iterator[Quad], budget: DocumentBudget | None, *, has_graphs: bool) -> list[QuadLines]:
    """Return all quads of a strict parser in their order. Its `SyntaxError` passes through.

    The budget is checked as they are made; none is needed for what is too short to become much.
    """
    out = BoundedLines(budget) if budget else None
    if not has_graphs:
        return [QuadLines(text, _DEFAULT) for text in _texts(parser, RdfFormat.N_TRIPLES, out)]
    runs = groupby(parser, _GRAPH)
    return [QuadLines(text, graph) for graph, run in runs for text in _texts(run, RdfFormat.N_QUADS, out)]


def _texts(quads: Iterator[Quad], syntax: RdfFormat, out: "BoundedLines | None") -> Iterator[bytes]:
    take = out.take if out else _serialized
    while text := take(islice(quads, BATCH), syntax):
        yield text
        if text.count(b"\n") < BATCH:  # a line for each of them, so that was all
            return


def _serialized(quads: Iterator[Quad], syntax: RdfFormat) -> bytes:
    return serialize(quads, format=syntax) or b""


class BoundedLines(io.BytesIO):
    """A file that statements are written to, as long as the budget of their document lasts."""

    def __init__(self, budget: DocumentBudget) -> None:
        super().__init__()
        self._budget = budget
        self._taken = 0

    def write(self, part: "ReadableBuffer") -> int:
        size = super().write(part)
        self._budget.check(self._taken + self.tell())
        return size

    def take(self, quads: Iterator[Quad], syntax: RdfFormat) -> bytes:
        """Return the lines of some quads. Raise as `DocumentBudget.check` does."""
        serialize(quads, self, format=syntax)
        text = self.getvalue()
        self._taken += len(text)
        self.seek(0)
        self.truncate()
        return text


def bounded(parser: Iterator[Quad], budget: DocumentBudget) -> Iterator[Quad]:
    """Pass quads on, as long as the budget lasts. Raise as `DocumentBudget.check` does."""
    size = unchecked = 0
    for quad in parser:
        unchecked += len(str(quad))
        if unchecked > CHECKED_BYTES:
            size, unchecked = size + unchecked, 0
            budget.check(size)
        yield quad

"""Makes terms, gathers the statements of one document into batches, and bounds what a small one may say.

A syntax that names a term once and then points to it can say terabytes in a megabyte.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b
from itertools import groupby, islice
from operator import attrgetter

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

from tamias.analyse.limits import MIB, AnalyseLimits, RefusedError
from tamias.content.quad_lines import QuadLines
from tamias.model.document import Document, LimitExceeded
from tamias.model.finding import Finding, Problem, Quads

BATCH = 1000
BATCH_BYTES = 8 * MIB
FREE_GROWTH = 64 * MIB
MAX_GROWTH = 250
"""Bytes that may be said for each one read, beyond `FREE_GROWTH`."""

_MAX_MESSAGE = 500


class RdfStatements:
    """What one document says, and what is wrong with it."""

    def __init__(self, limits: AnalyseLimits) -> None:
        self._most_faults = limits.max_errors
        self._faults = 0
        self._said = 0
        self._batch: list[Quad] = []
        self._size = 0

    def say(self, quad: Quad, size: int) -> bool:
        """Takes a statement with the bytes of its terms; whether it is time to `take` a batch."""
        self._batch.append(quad)
        self._size += size
        return len(self._batch) >= BATCH or self._size >= BATCH_BYTES

    def take(self, read: int) -> Quads:
        """The batch. Raises `RefusedError` when too much was said for the bytes `read` so far."""
        self.grow(self._size, read)
        batch, self._batch, self._size = self._batch, [], 0
        return Quads(batch)

    def grow(self, size: int, read: int) -> None:
        """Counts bytes that are said. Raises `RefusedError`."""
        self._said += size
        if self._said > FREE_GROWTH + MAX_GROWTH * read:
            raise RefusedError(f"says more than {MAX_GROWTH} times the bytes it has, the rest was not read")

    def fault(self, what: str, line: int | None = None) -> Iterator[Problem]:
        """A problem, unless there were too many."""
        self._faults += 1
        if self._faults <= self._most_faults:
            yield Problem(what[:_MAX_MESSAGE], line)

    def rest(self) -> Iterator[Finding]:
        """What is left at the end."""
        if self._batch:
            yield Quads(self._batch)
        if self._faults > self._most_faults:
            yield Problem(f"{self._faults - self._most_faults} more errors (limit analyse.max_errors)")


class StatementAnalyser:
    """An analyser that reads a document statement by statement, up to where it is refused to read on."""

    def __init__(self, limits: AnalyseLimits | None = None) -> None:
        self._limits = limits or AnalyseLimits()

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


def written(parser: Iterator[Quad], *, has_graphs: bool) -> list[QuadLines]:
    """All quads of a parser that is not lenient, in their order. Its `SyntaxError` passes through."""
    if not has_graphs:
        return [QuadLines(text, _DEFAULT) for text in _texts(parser, RdfFormat.N_TRIPLES)]
    runs = groupby(parser, _GRAPH)
    return [QuadLines(text, graph) for graph, run in runs for text in _texts(run, RdfFormat.N_QUADS)]


def _texts(quads: Iterator[Quad], syntax: RdfFormat) -> Iterator[bytes]:
    while text := serialize(islice(quads, BATCH), format=syntax):
        yield text
        if text.count(b"\n") < BATCH:  # a line for each of them, so that was all
            return

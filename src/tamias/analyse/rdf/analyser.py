"""RDF in any of its syntaxes into quads, by pyoxigraph, exactly as read.

Memory does not grow with the document; of one with faults, what is beyond doubt is kept.

Of TriG with a fault in it, the graphs are read one by one, and of a bad graph the good statements. A lost
brace must not carry statements into another graph, so what stands next to one is left out.
"""

import re
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import BinaryIO

from pyoxigraph import Quad, RdfFormat, parse

from tamias.analyse.chunks import MIB, RefusedError, StreamStop, as_stream, read_chunks, utf8_chunks
from tamias.analyse.jsonld.contexts import Contexts, with_first_context, with_linked_context
from tamias.analyse.jsonld.reader import JsonLd
from tamias.analyse.rdf.rdf_xml import if_silent, rdf_xml_quads
from tamias.analyse.rdf.recover import Faults, Piece, Read, TextPlace, batched, read_on, taken_apart
from tamias.analyse.rdf.statements import JSON, TURTLE, XML, Nesting, written
from tamias.analyse.rdf.turtle import N3, StatementLines, Turtle, statements, valid_base
from tamias.analyse.xml.entities import flat_entities
from tamias.analyse.xml.literals import with_canonical_literals
from tamias.content.formats import read_by, syntax_of
from tamias.content.rdf_detection import BOUNDARY_OR_BRACE
from tamias.model.document import Document
from tamias.model.finding import Finding, Problem
from tamias.settings import AnalyseSettings

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


NESTED = {
    RdfFormat.TURTLE: TURTLE,
    RdfFormat.TRIG: TURTLE,
    RdfFormat.N3: TURTLE,
    RdfFormat.RDF_XML: XML,
    RdfFormat.JSON_LD: JSON,
}
AT_ONCE = 16 * MIB
"""Larger TriG, N3 and RDF/XML is read as a stream, in which a fault cannot be put right so well."""


class RdfAnalyser:
    """Reads N-Triples, N-Quads, Turtle, TriG, N3 without rules, RDF/XML and JSON-LD.

    `contexts` gives the remote JSON-LD contexts that are at hand.
    """

    media_types = read_by(__name__)

    def __init__(self, limits: AnalyseSettings | None = None, contexts: Contexts | None = None) -> None:
        self._limits = limits or AnalyseSettings()
        self._json_ld = JsonLd(self._limits, contexts)

    def analyse(self, document: Document) -> Iterator[Finding]:
        stop = StreamStop()
        syntax = syntax_of(document.media_type)
        assert syntax is not None, "the table of formats names a syntax for each type that is read here"
        nesting = Nesting(NESTED[syntax], self._limits) if syntax in NESTED else None
        stream = as_stream(stop.before(self._checked(document, syntax, nesting)))
        passed = document.position.offset if document.position else 0
        while passed:
            passed -= len(stream.read(min(passed, MIB))) or passed
        for finding in _without_giants(self._read(stream, syntax, document)):
            # Whatever the parser says of the place where its input was cut off, the reason is another.
            if not (stop.reason and isinstance(finding, Problem)):
                yield finding
        if isinstance(stop.reason, RefusedError):
            yield Problem(str(stop.reason))
        elif stop.reason:
            raise stop.reason
        elif syntax == RdfFormat.RDF_XML and nesting and nesting.depth:
            yield Problem(f"XML ends inside {nesting.depth} open elements")

    def _checked(self, document: Document, syntax: RdfFormat, nesting: Nesting | None) -> Iterator[bytes]:
        """The document's bytes in UTF-8, with nothing in them that a parser would choke on."""
        chunks = utf8_chunks(read_chunks(document.stream), document.charset)
        if syntax == RdfFormat.RDF_XML:
            chunks = flat_entities(chunks, self._limits.entity_bytes)
        return nesting.watched(chunks) if nesting else chunks

    def _read(self, stream: BinaryIO, syntax: RdfFormat, document: Document) -> Iterator[Finding]:
        base = valid_base(document.base)
        faults = Faults(self._limits.max_errors, document.budget)
        if syntax in (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS):
            found = StatementLines(syntax).found(stream, faults, document.position)
        elif syntax == RdfFormat.TURTLE:
            found = Turtle(base, faults.budget).found(stream, faults, document.position)
        elif syntax == RdfFormat.JSON_LD:
            found = self._of_json_ld(stream, base, faults, document.context)
        elif syntax == RdfFormat.RDF_XML:
            found = with_canonical_literals(_at_once(stream, syntax, base, faults))
        else:
            found = _at_once(stream, syntax, base, faults)
        yield from batched(found)
        yield from faults.summary()

    def _of_json_ld(
        self, stream: BinaryIO, base: str | None, faults: Faults, context: str | None
    ) -> Iterator[Read]:
        """Held in memory 17 times over, unless it is so large that it must be streaming JSON-LD."""
        head = stream.read(self._limits.jsonld_bytes)
        rest = stream.read(1)
        if not rest:
            head = with_linked_context(head, context) if context else head
            return self._json_ld.found(head, base, faults)
        if context:
            limit = f"{self._limits.jsonld_bytes} bytes (limit analyse.jsonld_bytes)"
            return faults.report(f"a context in the Link header and more than {limit}, not read")
        whole = as_stream(chain((with_first_context(head), rest), read_chunks(stream)))
        # Not lenient, which changes results. After a fault the parser does not know what it is in.
        parser = parse(whole, format=RdfFormat.STREAMING_JSON_LD, base_iri=base)
        return read_on(parser, faults, to_the_end=False)


def _without_giants(findings: Iterator[Finding]) -> Iterator[Finding]:
    """The parser holds a token in a buffer of 16 MiB, and calls a larger one a want of memory."""
    try:
        yield from findings
    except MemoryError as fault:
        if "buffer" not in str(fault):
            raise
        yield Problem("a term of more than 16 MiB, the rest was not read")


def _at_once(stream: BinaryIO, syntax: RdfFormat, base: str | None, faults: Faults) -> Iterator[Read]:
    """Holds the document, so that nothing need be said of it before all of it is known to be right."""
    text = stream.read(AT_ONCE)
    rest = stream.read(1)
    if rest:
        return _streamed(chain((text, rest), read_chunks(stream)), syntax, base, faults)
    if syntax == RdfFormat.N3:
        return N3(base, faults.budget).of(text, faults)
    return _held(text, syntax, base, faults)


def _streamed(chunks: Iterator[bytes], syntax: RdfFormat, base: str | None, faults: Faults) -> Iterator[Read]:
    if syntax == RdfFormat.N3:
        return N3(base, faults.budget).streamed(chunks, faults)
    # Lenient only means that IRIs are not validated: no data is lost or changed by it.
    parser = parse(as_stream(chunks), format=syntax, base_iri=base, lenient=True)
    return read_on(parser, faults, to_the_end=syntax == RdfFormat.RDF_XML)


def _held(text: bytes, syntax: RdfFormat, base: str | None, faults: Faults) -> Iterator[Read]:
    if syntax == RdfFormat.RDF_XML:
        yield from rdf_xml_quads(text, base, faults)
        return
    try:
        found = written(parse(text, format=syntax, base_iri=base), faults.budget, has_graphs=True)
    except SyntaxError as fault:
        yield from Trig(base, faults.budget).of(text, faults)
        yield from if_silent(fault, faults)
    else:
        yield from found

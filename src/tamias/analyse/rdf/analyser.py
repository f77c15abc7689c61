"""RDF in any of its syntaxes into quads, by pyoxigraph, exactly as read.

Memory does not grow with the document; of one with faults, what is beyond doubt is kept.
"""

from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from pyoxigraph import RdfFormat, parse

from tamias.analyse.chunks import MIB, RefusedError, StreamStop, as_stream, read_chunks, utf8_chunks
from tamias.analyse.jsonld.contexts import Contexts, with_first_context, with_linked_context
from tamias.analyse.jsonld.reader import JsonLd
from tamias.analyse.rdf.rdf_xml import if_silent, rdf_xml_quads
from tamias.analyse.rdf.recover import Faults, Read, batched, read_on
from tamias.analyse.rdf.statements import JSON, TURTLE, XML, Nesting, written
from tamias.analyse.rdf.trig import Trig
from tamias.analyse.rdf.turtle import N3, StatementLines, Turtle, valid_base
from tamias.analyse.xml.entities import flat_entities
from tamias.analyse.xml.literals import with_canonical_literals
from tamias.content.formats import read_by, syntax_of
from tamias.model.document import Document
from tamias.model.finding import Finding, Problem
from tamias.settings import AnalyseSettings

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

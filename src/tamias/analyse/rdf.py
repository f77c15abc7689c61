"""RDF in any of its syntaxes into quads, by pyoxigraph, exactly as read.

Memory does not grow with the document; faults are told and passed over where the syntax allows it.
"""

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import BinaryIO

from pyoxigraph import Quad, RdfFormat, parse

from tamias.analyse.chunks import Stop, as_stream, read_chunks, utf8_chunks
from tamias.analyse.entities import flat_entities
from tamias.analyse.limits import AnalyseLimits, RefusedError
from tamias.analyse.nesting import JSON, TURTLE, XML, Nesting
from tamias.model.document import Document
from tamias.model.finding import Finding, Problem, Quads

BATCH = 1000
MAX_MESSAGE = 500
FORMATS = {
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/n-quads": RdfFormat.N_QUADS,
    "text/turtle": RdfFormat.TURTLE,
    "application/trig": RdfFormat.TRIG,
    "text/n3": RdfFormat.N3,
    "application/rdf+xml": RdfFormat.RDF_XML,
    "application/ld+json": RdfFormat.JSON_LD,
}
NESTED = {
    RdfFormat.TURTLE: TURTLE,
    RdfFormat.TRIG: TURTLE,
    RdfFormat.N3: TURTLE,
    RdfFormat.RDF_XML: XML,
    RdfFormat.JSON_LD: JSON,
}
_REMOTE_CONTEXT = re.compile(
    rb'"@(?:context|import)"\s*:\s*(?:\[\s*(?:\{[^{}]*\}\s*,\s*)*)?"([^"\\]{1,2000})"'
)


class RdfAnalyser:
    """Reads N-Triples, N-Quads, Turtle, TriG, N3 without rules, RDF/XML and JSON-LD."""

    media_types = frozenset(FORMATS)

    def __init__(self, limits: AnalyseLimits | None = None) -> None:
        self._limits = limits or AnalyseLimits()

    def analyse(self, document: Document) -> Iterator[Finding]:
        stop = Stop()
        syntax = FORMATS[document.media_type]
        nesting = Nesting(NESTED[syntax], self._limits) if syntax in NESTED else None
        stream = as_stream(stop.before(self._checked(document, syntax, nesting)))
        read = self._json_ld if syntax == RdfFormat.JSON_LD else self._lenient
        for finding in read(stream, syntax, document.url):
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

    def _lenient(self, stream: BinaryIO, syntax: RdfFormat, base: str) -> Iterator[Finding]:
        """Lenient only means that IRIs are not validated: no data is lost or changed by it."""
        return self._quads(_parser(stream, syntax, base, lenient=True))

    def _json_ld(self, stream: BinaryIO, syntax: RdfFormat, base: str) -> Iterator[Finding]:
        """Not lenient, which changes results, and held in memory 17 times over unless it may be streamed."""
        head = stream.read(self._limits.jsonld_bytes)
        rest = stream.read(1)
        if rest:
            whole = as_stream(chain((head, rest), read_chunks(stream)))
            parser = _parser(whole, RdfFormat.STREAMING_JSON_LD, base, lenient=False)
        else:
            parser = _parser(head, syntax, base, lenient=False)
        for finding in self._quads(parser):
            if isinstance(finding, Problem) and "LoadDocumentCallback" in finding.what:
                yield Problem(_context_missing(head))
            else:
                yield finding

    def _quads(self, parser: Iterator[Quad]) -> Iterator[Finding]:
        """Batches of quads; after a fault the parser is asked to go on, as it can in every syntax."""
        faults = _Faults(self._limits.max_errors)
        batch: list[Quad] = []
        going_on = True
        while going_on:
            try:
                batch.extend(islice(parser, BATCH - len(batch)))
                going_on = len(batch) == BATCH
            except SyntaxError as fault:
                yield from faults.told(fault)
                going_on = not faults.are_hopeless(len(batch))
                if going_on:
                    continue
            if batch:
                faults.good += len(batch)
                yield Quads(batch)
                batch = []
        yield from faults.summary()


class _Faults:
    """Counts what is wrong with one document against what is right."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._given_up = False
        self.good = 0

    def told(self, fault: SyntaxError) -> Iterator[Problem]:
        self._count += 1
        if self._count <= self._most:
            yield Problem(fault.msg[:MAX_MESSAGE], fault.lineno)

    def are_hopeless(self, unsaid: int) -> bool:
        """Whether there are too many, and more than one for nine good statements."""
        self._given_up = self._count > self._most and self._count * 9 > self.good + unsaid
        return self._given_up

    def summary(self) -> Iterator[Problem]:
        if self._given_up:
            yield Problem(f"more than {self._most} errors (limit analyse.max_errors), not read on")
        elif self._count > self._most:
            yield Problem(f"{self._count - self._most} more errors (limit analyse.max_errors)")


def _parser(source: BinaryIO | bytes, syntax: RdfFormat, base: str, *, lenient: bool) -> Iterator[Quad]:
    try:
        return parse(source, format=syntax, base_iri=base, lenient=lenient)
    except ValueError:  # a URL that is no IRI; relative references become problems
        return parse(source, format=syntax, lenient=lenient)


def _context_missing(head: bytes) -> str:
    found = _REMOTE_CONTEXT.search(head)
    name = found[1].decode("utf-8", "replace") if found else "of unknown name"
    return f"remote JSON-LD context {name} is not at hand, document not read"

"""The rows of Jelly frames as statements. Apart from its analyser because pyjelly takes long to load."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from google.protobuf.message import DecodeError
from pyjelly.errors import JellyAssertionError, JellyConformanceError
from pyjelly.jelly import RdfStreamFrame
from pyjelly.parse.decode import Adapter, Decoder, ParserOptions, options_from_frame
from pyoxigraph import DefaultGraph, Quad, Triple

from tamias.analyse.rdf.statements import RdfStatements, blank_node, literal
from tamias.analyse.rdf.statements import iri as absolute
from tamias.model.finding import Finding

DAMAGE = (
    DecodeError,
    JellyConformanceError,
    JellyAssertionError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
)
"""What pyjelly raises for a stream that breaks its rules."""

Made = tuple[Any, int]
"""A term, or what is wrong with it as a text, and its bytes."""


class Rows:
    """Decodes the frames of one stream."""

    def __init__(self, statements: RdfStatements) -> None:
        self._statements = statements
        self._decoder: Any = None

    def said(self, data: bytes) -> Iterator[Finding]:
        """Yield the statements of a frame. Raises one of `DAMAGE`."""
        frame = RdfStreamFrame.FromString(data)
        if self._decoder is None and frame.rows:
            self._decoder = Decoder(_Terms(options_from_frame(frame, delimited=True)))
        for row in frame.rows:
            kind = row.WhichOneof("row")
            made: Any = self._decoder.decode_row(getattr(row, kind)) if kind else None
            if kind not in ("triple", "quad"):
                continue
            quad, size = made
            if isinstance(quad, str):
                yield from self._statements.fault(quad)
            elif self._statements.say(quad, size):
                yield self._statements.take()


class _Terms(Adapter):  # type: ignore[misc]
    """Makes terms for the decoder. Never raises: a bad term must be there when it is repeated."""

    def __init__(self, options: ParserOptions) -> None:
        super().__init__(options)
        self._graph: Made = self.default_graph()

    def iri(self, iri: str) -> Made:
        return _or_fault(absolute, iri)

    def bnode(self, bnode: str) -> Made:
        return blank_node(bnode), len(bnode)

    def default_graph(self) -> Made:
        return DefaultGraph(), 0

    def literal(self, lex: str, language: str | None = None, datatype: str | None = None) -> Made:
        return _or_fault(literal, lex, language, datatype)

    def triple(self, terms: Iterable[Made]) -> Made:
        return _combined(Quad, [*terms, self._graph])

    def quad(self, terms: Iterable[Made]) -> Made:
        return _combined(Quad, list(terms))

    def quoted_triple(self, terms: Iterable[Made]) -> Made:
        return _combined(Triple, list(terms))

    def graph_start(self, graph_id: Made) -> None:
        self._graph = graph_id

    def graph_end(self) -> None:
        self._graph = self.default_graph()

    def namespace_declaration(self, name: str, iri: Made) -> None:
        """A prefix says nothing."""


def _or_fault(make: Callable[..., object], text: str, *others: str | None) -> Made:
    try:
        return make(text, *others), len(text)
    except ValueError as error:
        return str(error), len(text)


def _combined(make: Callable[..., object], parts: list[Made]) -> Made:
    size = sum(size for _, size in parts)
    fault = next((part for part, _ in parts if isinstance(part, str)), None)
    if fault is not None:
        return fault, size
    try:
        return make(*(part for part, _ in parts)), size
    except (TypeError, ValueError) as error:
        return f"not RDF: {error}", size

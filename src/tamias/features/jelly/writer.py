"""Writes quads as a Jelly stream, frame by frame. Loaded only when asked for: pyjelly takes long to load."""

from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

from pyjelly.jelly import LOGICAL_STREAM_TYPE_FLAT_QUADS
from pyjelly.options import StreamParameters
from pyjelly.serialize.encode import Slot, TermEncoder
from pyjelly.serialize.ioutils import write_delimited
from pyjelly.serialize.streams import QuadStream, SerializerOptions
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Triple

from tamias.sinks.export import read_quads

Rows = Sequence[Any]


def write_jelly(chunks: Iterable[bytes], out: BinaryIO) -> int:
    """Write N-Quads with their graphs, which Jelly can express all. Memory does not grow with them."""
    options = SerializerOptions(
        logical_type=LOGICAL_STREAM_TYPE_FLAT_QUADS, params=StreamParameters(rdf_star=True)
    )
    stream = QuadStream(encoder=_JellyTerms(options.lookup_preset), options=options)
    stream.enroll()
    for quad in read_quads(chunks):
        if frame := stream.quad((quad.subject, quad.predicate, quad.object, quad.graph_name)):
            write_delimited(frame, out)
    if frame := stream.flow.to_stream_frame():
        write_delimited(frame, out)
    return 0


class _JellyTerms(TermEncoder):  # type: ignore[misc]
    """Puts the terms of pyoxigraph into the messages of pyjelly."""

    def encode_spo(self, term: object, slot: Any, statement: Any) -> Rows:
        if isinstance(term, NamedNode):
            return self._iri(term, self.get_iri_field(statement, slot))
        if isinstance(term, Literal):
            return self._literal(term, self.get_literal_field(statement, slot))
        if isinstance(term, Triple):
            return self._triple(term, self.get_triple_field(statement, slot))
        if isinstance(term, BlankNode):
            self.set_bnode_field(statement, slot, term.value)
        return ()

    def encode_graph(self, term: object, statement: Any) -> Rows:
        if isinstance(term, NamedNode):
            return self._iri(term, statement.g_iri)
        if isinstance(term, BlankNode):
            statement.g_bnode = term.value
        elif isinstance(term, DefaultGraph):
            self.encode_default_graph(statement.g_default_graph)
        return ()

    def _iri(self, term: NamedNode, field: Any) -> Rows:
        rows: Rows = self.encode_iri(term.value, field)
        return rows

    def _literal(self, term: Literal, field: Any) -> Rows:
        language = term.language
        if language and term.direction:
            language = f"{language}--{term.direction.value}"
        datatype = None if language else term.datatype.value
        rows: Rows = self.encode_literal(lex=term.value, language=language, datatype=datatype, literal=field)
        return rows

    def _triple(self, term: Triple, field: Any) -> Rows:
        parts = (term.subject, term.predicate, term.object)
        slots = (Slot.subject, Slot.predicate, Slot.object)
        return [
            row for part, slot in zip(parts, slots, strict=True) for row in self.encode_spo(part, slot, field)
        ]

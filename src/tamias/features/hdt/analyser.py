"""HDT into quads. The whole file and its dictionary are held in memory, both bounded."""

from collections.abc import Iterator

import numpy as np
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from tamias.analyse.chunks import MIB, RefusedError, read_chunks
from tamias.analyse.rdf.statements import RdfStatements, StatementAnalyser, blank_node, iri, literal
from tamias.content.formats import read_by
from tamias.features.hdt.reader import Hdt, HdtError, HdtTooLarge, Terms, Triples
from tamias.features.hdt.writer import Numbers
from tamias.model.document import Document
from tamias.model.finding import Finding

WINDOW = 16_384
"""Triples whose terms are made at once."""

Term = NamedNode | BlankNode | Literal


def _quads(hdt: Hdt, triples: Triples, statements: RdfStatements) -> Iterator[Finding]:
    columns = (
        _column(hdt.subjects, triples.subjects),
        _column(hdt.predicates, triples.predicates),
        _column(hdt.objects, triples.objects),
    )
    sizes = np.sum([sizes for _, sizes in columns], axis=0)
    for subject, predicate, value, size in zip(*(made for made, _ in columns), sizes.tolist(), strict=True):
        try:
            quad = Quad(subject, predicate, value)
        except TypeError as error:
            terms = (subject, predicate, value)
            yield from statements.fault(next((term for term in terms if isinstance(term, str)), str(error)))
            continue
        if statements.say(quad, size):
            yield statements.take()


def _column(terms: Terms, numbers: Numbers) -> tuple[list[Term | str], Numbers]:
    """The terms of one position, each made once, and their sizes; a bad one is a text that says why."""
    known, places = np.unique(numbers, return_inverse=True)
    strings = terms.strings(known)
    made = [_term(string) for string in strings]
    sizes = np.array([len(string) for string in strings], dtype=np.int64)
    return [made[place] for place in places.tolist()], sizes[places]


def _term(string: bytes) -> Term | str:
    text = string.decode("utf-8", "replace")
    try:
        if text.startswith('"'):
            return _literal(text)
        return blank_node(text[2:]) if text.startswith("_:") else iri(text)
    except ValueError as error:
        return str(error)


def _literal(text: str) -> Literal:
    end = text.rindex('"')
    value, suffix = text[1:end], text[end + 1 :]
    if end == 0 or (suffix and not suffix.startswith(("@", "^^"))):
        raise ValueError(f"{text[:200]!r} is not a literal")
    if suffix.startswith("@"):
        return literal(value, language=suffix[1:])
    return literal(value, datatype=suffix[2:].removeprefix("<").removesuffix(">"))


FREE_DICTIONARY = 64 * MIB
DICTIONARY_GROWTH = 64
"""Bytes that the terms may unfold to for each one of the file, beyond `FREE_DICTIONARY`; 16 are common."""


class HdtAnalyser(StatementAnalyser):
    """Reads HDT with four dictionary sections and bitmap triples, as every known writer makes it."""

    media_types = read_by(__name__)

    def _read(self, document: Document, statements: RdfStatements) -> Iterator[Finding]:
        data = self._whole(document)
        most = min(self._limits.hdt_dictionary, FREE_DICTIONARY + DICTIONARY_GROWTH * len(data))
        try:
            hdt = Hdt(data, most)
            for triples in hdt.batches(WINDOW):
                yield from _quads(hdt, triples, statements)
        except HdtError as error:
            yield from statements.fault(f"HDT is damaged: {error}")
        except HdtTooLarge:
            limit = f"HDT dictionary of more than {most} bytes (limit analyse.hdt_dictionary), not read"
            raise RefusedError(limit) from None

    def _whole(self, document: Document) -> bytes:
        data = bytearray()
        for chunk in read_chunks(document.stream):
            data += chunk
            if len(data) > (most := self._limits.hdt_bytes):
                raise RefusedError(f"HDT of more than {most} bytes (limit analyse.hdt_bytes), not read")
        return bytes(data)

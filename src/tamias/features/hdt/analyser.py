"""HDT into quads. The whole file and its dictionary are held in memory, both bounded."""

from collections.abc import Iterator

from tamias.analyse.chunks import read_chunks
from tamias.analyse.limits import MIB, RefusedError
from tamias.analyse.rdf.statements import RdfStatements, StatementAnalyser
from tamias.content.formats import read_by
from tamias.model.document import Document
from tamias.model.finding import Finding

FREE_DICTIONARY = 64 * MIB
DICTIONARY_GROWTH = 64
"""Bytes that the terms may unfold to for each one of the file, beyond `FREE_DICTIONARY`; 16 are common."""


class HdtAnalyser(StatementAnalyser):
    """Reads HDT with four dictionary sections and bitmap triples, as every known writer makes it."""

    media_types = read_by(__name__)

    def _read(self, document: Document, statements: RdfStatements) -> Iterator[Finding]:
        from tamias.features.hdt.parts import HdtError, HdtTooLarge
        from tamias.features.hdt.quads import said

        data = self._whole(document)
        most = min(self._limits.hdt_dictionary, FREE_DICTIONARY + DICTIONARY_GROWTH * len(data))
        try:
            yield from said(data, most, statements)
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

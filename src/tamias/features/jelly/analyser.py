"""Jelly, RDF in Protocol Buffers, into quads by pyjelly, one frame at a time."""

from collections.abc import Iterator
from io import BufferedReader
from typing import cast

from tamias.analyse.chunks import RefusedError, as_stream, read_chunks
from tamias.analyse.rdf.statements import RdfStatements, StatementAnalyser
from tamias.content.formats import read_by
from tamias.model.document import Document
from tamias.model.finding import Finding
from tamias.settings import AnalyseSettings

_MAX_VARINT = 5


class JellyAnalyser(StatementAnalyser):
    """Reads streams of triples, quads and graphs, in frames or as one."""

    media_types = read_by(__name__)

    def __init__(self, limits: AnalyseSettings | None = None) -> None:
        super().__init__(limits)
        self._most = self._limits.jelly_frame

    def _read(self, document: Document, statements: RdfStatements) -> Iterator[Finding]:
        from tamias.features.jelly.rows import DAMAGE, Rows

        rows = Rows(statements)
        try:
            for frame in self._frames(document):
                yield from rows.said(frame)
        except DAMAGE as damage:
            words = str(damage) if type(damage) is ValueError else repr(damage)
            yield from statements.fault(f"Jelly stream is damaged: {words}")

    def _frames(self, document: Document) -> Iterator[bytes]:
        stream = cast("BufferedReader", as_stream(read_chunks(document.stream)))
        if not _has_lengths(stream.peek(3)[:3]):
            whole = stream.read(self._most + 1)
            self._expect_room(len(whole))
            yield whole
            return
        while (size := _varint(stream)) is not None:
            self._expect_room(size)
            frame = stream.read(size)
            if len(frame) < size:
                raise ValueError("ends inside a frame")
            yield frame

    def _expect_room(self, size: int) -> None:
        if size > self._most:
            raise RefusedError(
                f"Jelly frame of more than {self._most} bytes (limit analyse.jelly_frame),"
                " the rest was not read"
            )


def _has_lengths(start: bytes) -> bool:
    """Return whether frames follow their lengths, rather than one frame without a length.

    >>> _has_lengths(b"\\x20\\n\\x0b"), _has_lengths(b"\\n\\n\\x08"), _has_lengths(b"\\n\\x0b\\n")
    (True, True, False)
    """
    return start[:1] != b"\n" or (start[1:2] == b"\n" and start[2:3] != b"\n")


def _varint(stream: BufferedReader) -> int | None:
    """The length of a frame; None at the end."""
    number = 0
    for place in range(_MAX_VARINT):
        byte = stream.read(1)
        if not byte and place == 0:
            return None
        if not byte:
            break
        number |= (byte[0] & 0x7F) << (7 * place)
        if byte[0] < 0x80:
            return number
    raise ValueError("unterminated length of a frame")

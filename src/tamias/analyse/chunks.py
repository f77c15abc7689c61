"""Chunks of bytes on their way into a parser: read, brought to UTF-8, and given back as a stream."""

import codecs
import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from tamias.model.document import LimitExceeded

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MIB = 1 << 20
CHUNK = 1 << 14
FEW = 1 << 11
"""Bytes that are counted before numpy would have begun."""


class RefusedError(Exception):
    """A document is not read on, because it would cost too much; the message names the limit."""


class _Chunked(io.RawIOBase):
    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        target = memoryview(buffer).cast("B")
        taken, self._rest = self._rest[: len(target)], self._rest[len(target) :]
        target[: len(taken)] = taken
        return len(taken)


class StreamStop:
    """Ends a stream where reading on is refused, so that a parser still delivers all it has been given."""

    reason: LimitExceeded | RefusedError | None = None

    def before(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks up to the one that raises; the exception is kept as the reason."""
        try:
            yield from chunks
        except (LimitExceeded, RefusedError) as reason:
            self.reason = reason


def as_stream(chunks: Iterable[bytes]) -> BinaryIO:
    """The chunks as one stream; what raises in them raises in its reader."""
    return io.BufferedReader(_Chunked(chunks), CHUNK)


def times(sign: bytes, text: bytes) -> int:
    """Return how often a byte occurs; `bytes.count` takes ten times as long where it is frequent."""
    if len(text) < FEW:
        return text.count(sign)
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == sign[0]))


def read_chunks(stream: BinaryIO) -> Iterator[bytes]:
    """A stream to its end, in chunks."""
    while data := stream.read(CHUNK):
        yield data


def utf8_chunks(chunks: Iterator[bytes], charset: str | None) -> Iterator[bytes]:
    """The same text in UTF-8 without a byte order mark; what cannot be decoded is U+FFFD."""
    if charset in (None, "utf-8", "utf8", "UTF-8"):
        first = next(chunks, b"")
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(charset or "utf-8")("replace")
    yield decoder.decode(next(chunks, b"")).removeprefix("\ufeff").encode()
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")

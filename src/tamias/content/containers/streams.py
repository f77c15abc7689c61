"""Streams over what is being unpacked: a decoded layer, and a section of an archive."""

import io
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, BinaryIO

from tamias.content.containers.codecs import ByteSource, DamageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD = 1 << 13
"""Bytes looked at to find the type of a stream."""

BUFFER = 1 << 16


class Unpacked(io.RawIOBase):
    """Decoded chunks as a stream. Damage ends it and is told; `LimitExceeded` passes through."""

    def __init__(
        self, chunks: Iterable[bytes], count: Callable[[int], None], damaged: Callable[[str], None]
    ) -> None:
        self._chunks = iter(chunks)
        self._count = count
        self._damaged = damaged
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        # Filled to the brim, so that a peek shows the whole head.
        target, filled = memoryview(buffer).cast("B"), 0
        while filled < len(target) and (self._rest or self._more()):
            taken = self._rest[: len(target) - filled]
            target[filled : filled + len(taken)] = taken
            self._rest = self._rest[len(taken) :]
            filled += len(taken)
        return filled

    def _more(self) -> bool:
        try:
            for chunk in self._chunks:
                if chunk:
                    self._count(len(chunk))
                    self._rest = memoryview(chunk)
                    return True
        except DamageError as damage:
            self._damaged(str(damage))
        return False


class Section(io.RawIOBase):
    """The next `size` bytes of a stream that is read forward only."""

    def __init__(self, source: ByteSource, size: int) -> None:
        self._source = source
        self.left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        target = memoryview(buffer).cast("B")
        data = self._source.read(min(len(target), self.left))
        target[: len(data)] = data
        self.left -= len(data)
        return len(data)


def buffered(raw: io.RawIOBase) -> BinaryIO:
    """A stream that can be peeked into."""
    return io.BufferedReader(raw, BUFFER)


def stream_of(chunks: Iterable[bytes]) -> io.BufferedReader:
    """Chunks as a stream that can be peeked into."""
    return io.BufferedReader(Unpacked(chunks, _ignore, _ignore), BUFFER)


def _ignore(_: object) -> None:
    """Do nothing."""


def head(stream: BinaryIO) -> bytes:
    """The first bytes of a stream, which stay to be read."""
    if isinstance(stream, io.BufferedReader) and not stream.seekable():
        return stream.peek(HEAD)[:HEAD]
    start = stream.read(HEAD)
    stream.seek(-len(start), io.SEEK_CUR)
    return start

"""Decoders for gzip, bzip2, xz, zstd, brotli, and streams over a decoded layer or a section of an archive.

They give chunks of bounded size from a stream nobody vouches for. Each delivers all it could read before it
raises `DamageError`.
"""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO, Protocol

import brotli

from tamias.content.formats import BROTLI, BZIP2, GZIP, XZ, ZSTD
from tamias.content.zstd import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK = 1 << 16
"""Bytes read at once, and the most that one step of a decoder may deliver."""

BROTLI_FEED = 1 << 12
"""When it fails it loses what the last feed would have delivered."""

Frame = Generator[bytes, None, bytes]
"""Yields what is decoded and returns the bytes read past the end of the frame."""


BlockDecoder = bz2.BZ2Decompressor | lzma.LZMADecompressor | zstd.ZstdDecompressor


class ByteSource(Protocol):
    """A source that can be read forward."""

    def read(self, size: int, /) -> bytes: ...


Decode = Callable[[ByteSource, int], Iterator[bytes]]


class DamageError(Exception):
    """Compressed data that ends early, is corrupt, or has something else behind it."""


def _brotli_chunks(source: ByteSource, _max_memory: int) -> Iterator[bytes]:
    """The content of a brotli stream, which nothing but its name tells from noise."""
    decoder = brotli.Decompressor()
    try:
        while not decoder.is_finished():
            data = source.read(BROTLI_FEED) if decoder.can_accept_more_data() else b""
            chunk = decoder.process(data, output_buffer_limit=CHUNK)
            if not data and not chunk and not decoder.is_finished():
                raise DamageError("brotli data is damaged: ends early")
            yield chunk
    except brotli.error as error:
        raise DamageError(f"brotli data is damaged: {error}") from None
    if source.read(1):
        raise DamageError("extra data after the end of the brotli data was left out")


def stored_chunks(source: ByteSource) -> Iterator[bytes]:
    """Yield uncompressed bytes in chunks."""
    while data := source.read(CHUNK):
        yield data


def _frames(
    source: ByteSource, word: str, magic: bytes | tuple[bytes, ...], frame: Callable[[bytes], Frame]
) -> Iterator[bytes]:
    data = source.read(CHUNK)
    while data:
        try:
            rest = yield from frame(data)
        except (EOFError, zlib.error, OSError, lzma.LZMAError, zstd.ZstdError) as error:
            raise DamageError(f"{word} data is damaged: {error}") from None
        data = _next_frame(rest, source)
        if data and not (data.startswith(magic) or data[1:].startswith(magic)):
            raise DamageError(f"extra data after the end of the {word} data was left out")


def _next_frame(rest: bytes, source: ByteSource) -> bytes:
    """Return what follows a frame, without padding and with enough bytes to be recognised."""
    rest = rest.lstrip(b"\0")
    while len(rest) < 16 and (more := source.read(CHUNK)):
        rest = (rest + more).lstrip(b"\0")
    return rest


def deflate_frame(data: bytes, source: ByteSource, wbits: int) -> Frame:
    """Unpack a deflate stream, raw or in a gzip or zlib wrapper as `wbits` says."""
    decoder = zlib.decompressobj(wbits)
    while not decoder.eof:
        data = data or source.read(CHUNK)
        if not data:
            yield decoder.flush()
            raise EOFError("ends early")
        before = decoder.copy()
        try:
            chunk = decoder.decompress(data, CHUNK)
        except zlib.error:
            yield _up_to_the_fault(before, data)
            raise
        data = decoder.unconsumed_tail
        yield chunk
    return decoder.unused_data


def _up_to_the_fault(decoder: "zlib._Decompress", data: bytes) -> bytes:
    """Return what is before the fault: zlib throws a whole step away, even for a bad checksum."""
    whole = bytearray()
    try:
        for position in range(len(data)):
            whole += decoder.decompress(data[position : position + 1])
    except zlib.error:
        pass
    return bytes(whole)


def _block_frame(
    data: bytes,
    source: ByteSource,
    decoder: BlockDecoder,
) -> Frame:
    while not decoder.eof:
        if decoder.needs_input:
            data = data or source.read(CHUNK)
            if not data:
                raise EOFError("ends early")
        yield decoder.decompress(data, CHUNK)
        data = b""
    return decoder.unused_data


def _zstd_decoder(max_memory: int) -> zstd.ZstdDecompressor:
    window = zstd.DecompressionParameter.window_log_max
    return zstd.ZstdDecompressor(options={window: max(10, max_memory.bit_length() - 1)})


def _in_blocks(word: str, magic: bytes | tuple[bytes, ...], decoder: Callable[[int], BlockDecoder]) -> Decode:
    """Return what decodes every frame of a file; `decoder` makes what decodes one within some memory."""
    return lambda source, max_memory: _frames(
        source, word, magic, lambda data: _block_frame(data, source, decoder(max_memory))
    )


def _gzip_chunks(source: ByteSource, _max_memory: int) -> Iterator[bytes]:
    return _frames(source, "gzip", b"\x1f\x8b", lambda data: deflate_frame(data, source, zlib.MAX_WBITS | 16))


CODECS: dict[str, Decode] = {
    GZIP: _gzip_chunks,
    BZIP2: _in_blocks("bzip2", b"BZh", lambda _max_memory: bz2.BZ2Decompressor()),
    XZ: _in_blocks("xz", b"\xfd7zXZ", lambda most: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=most)),
    ZSTD: _in_blocks("zstd", (b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"), _zstd_decoder),
    BROTLI: _brotli_chunks,
}
"""What decodes a file, within some memory; gzip, bzip2 and brotli never need much."""


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

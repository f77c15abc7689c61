"""Payloads that the zstd tool can read: plain frames, frames that continue a base, and raw bytes.

Only `backports.zstd` compresses with a base and long-distance matching; `zstandard` unpacks faster.
A body on its way out is a `Text`, whatever its codec; only that of rows needs numpy, and loads it.
"""

from typing import TYPE_CHECKING

import zstandard

from tamias.content.zstd import zstd

if TYPE_CHECKING:
    from tamias.archive.blobs.lines import Numbers


LEVEL = 3
_DELTA_LEVEL = 1
"""Faster than 3 and no larger: nearly all is found by long-distance matching."""
_BEST_LEVEL = 19
_SHORT_BYTES = 128 * 1024
"""Base and body together: what one table of hashes covers without long-distance matching."""
_MAX_WINDOW_LOG = 30
_MAX_WINDOW = 2**31
LEAST_BASE = 8
"""The library takes no shorter one."""
_PIECE = 1024 * 1024

RAW_MAGIC = (0x184D2A5B).to_bytes(4, "little")
"""A skippable frame: the zstd tool passes over it."""
ERASED_MAGIC = (0x184D2A5E).to_bytes(4, "little")
"""A skippable frame of zeros, in the place of what was erased."""
FRAME_HEADER = 8


class PayloadError(ValueError):
    """A payload does not give back what was put into it."""


def skippable(magic: bytes, content: bytes) -> bytes:
    """A frame that holds any bytes."""
    return magic + len(content).to_bytes(4, "little") + content


def raw(body: bytes) -> bytes:
    """The body as it is, in a skippable frame."""
    return skippable(RAW_MAGIC, body)


def unpack_raw(payload: bytes) -> bytes:
    """The inverse of `raw`."""
    body = payload[FRAME_HEADER:]
    if payload[:4] != RAW_MAGIC or int.from_bytes(payload[4:8], "little") != len(body):
        raise PayloadError("its frame has a wrong beginning")
    return body


def compress(body: bytes, level: int = LEVEL) -> bytes:
    """Return one frame with size and checksum."""
    options: dict[int, int] = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.checksum_flag: 1,
    }
    compressor = zstd.ZstdCompressor(options=options)
    compressor.set_pledged_input_size(len(body))
    return compressor.compress(body, zstd.ZstdCompressor.FLUSH_FRAME)


def compress_best(body: bytes, base: bytes | None = None) -> bytes:
    """Compress as far as possible, however long it takes. A base has `LEAST_BASE` bytes or more."""
    return _compressor(_BEST_LEVEL, body, base).compress(body, zstd.ZstdCompressor.FLUSH_FRAME)


def compress_delta(body: bytes, base: bytes, most: int) -> bytes | None:
    """Return one frame that refers to the base; None as soon as it has more than `most` bytes."""
    if len(base) < LEAST_BASE:
        return None
    compressor = _compressor(_DELTA_LEVEL, body, base)
    payload = bytearray()
    rest = memoryview(body)
    while len(rest) > _PIECE:
        payload += compressor.compress(rest[:_PIECE])
        rest = rest[_PIECE:]
        if len(payload) > most:
            return None
    payload += compressor.compress(rest, zstd.ZstdCompressor.FLUSH_FRAME)
    return bytes(payload) if len(payload) <= most else None


def _compressor(level: int, body: bytes, base: bytes | None) -> zstd.ZstdCompressor:
    """Return the compressor of a body that looks for repetitions in all of it and its base."""
    both = len(body) + len(base or b"")
    options: dict[int, int] = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.checksum_flag: 1,
        zstd.CompressionParameter.window_log: min(_MAX_WINDOW_LOG, max(10, both.bit_length())),
        zstd.CompressionParameter.enable_long_distance_matching: int(both > _SHORT_BYTES),
    }
    prefix = zstd.ZstdDict(base, is_raw=True).as_prefix if base else None
    compressor = zstd.ZstdCompressor(options=options, zstd_dict=prefix)
    compressor.set_pledged_input_size(len(body))
    return compressor


def decompress(payload: bytes, most: int, base: bytes | None = None) -> bytes:
    """The content of one frame, of at most so many bytes."""
    dictionary = None
    if base is not None:
        _expect_base(base)
        dictionary = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    try:
        size = zstandard.frame_content_size(payload)
        if not 0 <= size <= most:
            raise PayloadError(f"it says that it holds {size} bytes, not {most} at the most")
        return zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=_MAX_WINDOW).decompress(
            payload, max_output_size=size, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise PayloadError(f"zstd says: {error}") from error


def _expect_base(base: bytes) -> None:
    if len(base) < LEAST_BASE:
        raise PayloadError("its base is too short for one")


_BREAK = b"\n"


class Text:
    """A body as bytes, or as lines of a pool in some order: whichever it came as.

    A chain of `rows` shares one pool, so that only the last body is put together.
    """

    def __init__(
        self, content: bytes | None = None, pool: list[bytes] | None = None, order: "Numbers | None" = None
    ) -> None:
        self._content = content
        self._pool = pool
        self._order = order

    @property
    def content(self) -> bytes:
        """Return the content as bytes."""
        if self._content is None:
            pool, order = self.in_lines()
            self._content = _BREAK.join(map(pool.__getitem__, order.tolist()))
        return self._content

    def in_lines(self) -> "tuple[list[bytes], Numbers]":
        """A pool of lines, to which others may be added, and the places of this body's lines in it."""
        if self._pool is None or self._order is None:
            import numpy as np

            self._pool = self.content.split(_BREAK)
            self._order = np.arange(len(self._pool), dtype=np.uint32)
        return self._pool, self._order

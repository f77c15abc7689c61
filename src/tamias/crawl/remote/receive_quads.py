"""Documents that arrive packed: unpacked within limits, and written to the service's own segments."""

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import BinaryIO

import zstandard

from tamias.crawl.commit.segment_pool import SegmentPool
from tamias.database.threads import run_uncancelled
from tamias.model.capture import Extent
from tamias.model.errors import TamiasError
from tamias.protocols import DocumentSink

SMALL = 256 * 1024
"""Packed bytes up to which a document is unpacked at once."""
SMALL_PLAIN = 16 << 20
_STEP = 64 * 1024
_WINDOW = 1 << 27


class Damaged(TamiasError):
    """What a worker sent is not what it says."""


class QuadReceiver:
    """Gives each document its place."""

    def __init__(self, segments: SegmentPool, most: int) -> None:
        """`most` is the largest document, unpacked, in bytes."""
        self._segments = segments
        self._most = most

    async def receive(self, packed: BinaryIO) -> Extent | None:
        """Where the document stands now; None for one without quads. Raises `Damaged`."""
        size = packed.seek(0, os.SEEK_END)
        if size == 0:
            return None
        if size <= SMALL and (plain := self._small(packed)) is not None:
            return _written(self._segments.small_document(), [plain])
        async with self._segments.one_large_at_a_time:
            return await run_uncancelled(partial(self._large, packed))

    def _small(self, packed: BinaryIO) -> bytes | None:
        """All of it; None if it is not small after all."""
        plain = bytearray()
        for chunk in self._unpacked(packed):
            plain += chunk
            if len(plain) > SMALL_PLAIN:
                return None
        return bytes(plain)

    def _large(self, packed: BinaryIO) -> Extent:
        return _written(self._segments.large_document(), self._unpacked(packed))

    def _unpacked(self, packed: BinaryIO) -> Iterator[bytes]:
        packed.seek(0)
        unpacking = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
        length = 0
        try:
            while piece := packed.read(_STEP):
                chunk = unpacking.decompress(piece)
                length += len(chunk)
                if length > self._most:
                    raise Damaged(f"a document has more than {self._most} bytes (open.max_unpacked)")
                yield chunk
        except zstandard.ZstdError as error:
            raise Damaged(f"a document's quads cannot be unpacked: {error}") from error
        if not unpacking.eof:
            raise Damaged("a document's quads are cut off")


def _written(place: AbstractContextManager[DocumentSink], chunks: Iterable[bytes]) -> Extent:
    last = b""
    with place as document:
        for chunk in chunks:
            document.write(chunk)
            last = chunk[-1:] or last
        if last != b"\n":
            raise Damaged("the last of a document's quads is cut off")
        return document.extent

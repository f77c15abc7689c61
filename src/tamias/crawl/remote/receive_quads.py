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
from tamias.sinks.segments.naming import Naming, quads_in, whole_lines

SMALL = 256 * 1024
"""Packed bytes up to which a document is unpacked at once."""
SMALL_PLAIN = 16 << 20
_STEP = 4096
"""Packed bytes at a time: each may become ten thousand."""
_WINDOW = 1 << 27


class Damaged(TamiasError):
    """What a worker sent is not what it says."""


class QuadReceiver:
    """Gives each document its place."""

    def __init__(self, segments: SegmentPool, most: int) -> None:
        """`most` is the largest document, unpacked, in bytes."""
        self._segments = segments
        self._most = most

    async def receive(self, packed: BinaryIO, naming: Naming) -> tuple[Extent | None, int]:
        """Where the document stands now, and its quads; None for one without any. Raises `Damaged`.

        It must be N-Quads, in graphs that the document may have by its naming.
        """
        size = packed.seek(0, os.SEEK_END)
        if size == 0:
            return None, 0
        if size <= SMALL and (plain := self._small(packed)) is not None:
            return _written(self._segments.small_document(), [plain], naming)
        async with self._segments.one_large_at_a_time:
            return await run_uncancelled(partial(self._large, packed, naming))

    def _small(self, packed: BinaryIO) -> bytes | None:
        """All of it; None if it is not small after all."""
        plain = bytearray()
        for chunk in self._unpacked(packed):
            plain += chunk
            if len(plain) > SMALL_PLAIN:
                return None
        return bytes(plain)

    def _large(self, packed: BinaryIO, naming: Naming) -> tuple[Extent, int]:
        return _written(self._segments.large_document(), self._unpacked(packed), naming)

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


def _written(
    place: AbstractContextManager[DocumentSink], chunks: Iterable[bytes], naming: Naming
) -> tuple[Extent, int]:
    quads = 0
    try:
        with place as document:
            for lines in whole_lines(chunks):
                count, graphs = quads_in(lines)
                if others := [graph for graph in graphs if not graph or not naming.keeps(graph)]:
                    raise Damaged(f"a document has no right to the graph '{others[0][:200]}'")
                document.write(lines)
                quads += count
            return document.extent, quads
    except ValueError as error:
        raise Damaged(f"a document's quads are no N-Quads: {error}") from error

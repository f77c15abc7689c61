"""The spool of quads that a worker without segments has not delivered yet."""

import asyncio
import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

import zstandard

from tamias.crawl.commit.segment_pool import SegmentPool
from tamias.database.threads import run_uncancelled
from tamias.model.capture import Extent
from tamias.model.errors import TamiasError
from tamias.protocols import DocumentSink
from tamias.sinks.graphs import whole_lines
from tamias.sinks.segments.naming import Naming, quads_in

LONGEST_LINE = 64 << 20
PIECE = 1 << 20
"""Bytes of a message."""


class PackedQuads:
    """The N-Quads of one document, packed: in memory, or in a file of the scratch folder."""

    def __init__(self, number: int, path: Path | None) -> None:
        self._number = number
        self._path = path
        self._packing = zstandard.ZstdCompressor(level=3, write_checksum=True).compressobj()
        self._data = bytearray()
        self._length = 0
        self._file = path.open("wb") if path else None

    @property
    def extent(self) -> Extent:
        """Stands for the document until the service has given it its place."""
        return Extent(self._number, 0, 0, self._length)

    @property
    def in_memory(self) -> int:
        """Bytes that it takes there."""
        return len(self._data)

    def write(self, chunk: bytes) -> None:
        """Appends plain N-Quads."""
        self._length += len(chunk)
        self._keep(self._packing.compress(chunk))

    def seal(self) -> None:
        """Finish the packing."""
        self._keep(self._packing.flush())
        if self._file is not None:
            self._file.close()

    def pieces(self) -> Iterator[bytes]:
        """Yield the packed bytes piece by piece."""
        if self._path is None:
            for start in range(0, len(self._data), PIECE):
                yield bytes(self._data[start : start + PIECE])
            return
        with self._path.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece

    def discard(self) -> None:
        """Delete the quads."""
        if self._file is not None:
            self._file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _keep(self, packed: bytes) -> None:
        if self._file is None:
            self._data += packed
        else:
            self._file.write(packed)


class QuadSpool:
    """A `QuadStore` of packed documents, instead of segments."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        self._folder = folder
        self._numbers = itertools.count(1)
        self._packets: dict[int, PackedQuads] = {}
        self.one_large_at_a_time = asyncio.Lock()
        """To be held, in the event loop, by whoever writes a large document."""

    def small_document(self) -> AbstractContextManager[PackedQuads]:
        """A document that fits into memory."""
        return self._document(None)

    def large_document(self) -> AbstractContextManager[PackedQuads]:
        """A document that may not."""
        return self._document(self._folder)

    def take(self, extent: Extent | None) -> PackedQuads | None:
        """The packet of a document that was read to its end."""
        return None if extent is None else self._packets.pop(extent.segment)

    @contextmanager
    def _document(self, folder: Path | None) -> Iterator[PackedQuads]:
        number = next(self._numbers)
        packet = PackedQuads(number, folder / f"{number}.nq.zst" if folder else None)
        try:
            yield packet
        except BaseException:
            packet.discard()
            raise
        packet.seal()
        if packet.extent.length:
            self._packets[number] = packet
        else:
            packet.discard()


SMALL = 256 * 1024
"""Packed bytes up to which a document is unpacked at once."""
SMALL_PLAIN = 16 << 20
_STEP = 4096
"""Packed bytes at a time: each may become ten thousand."""
_WINDOW = 1 << 27


class Damaged(TamiasError):
    """A worker has sent something else than it declared."""


class QuadReceiver:
    """Gives each document its place."""

    def __init__(self, segments: SegmentPool, most: int) -> None:
        """Accept documents of at most `most` bytes unpacked."""
        self._segments = segments
        self._most = most

    async def receive(self, packed: BinaryIO, naming: Naming) -> tuple[Extent | None, int]:
        """Write a document; return its place (None without quads) and count of quads. Raises `Damaged`.

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
        """Return the unpacked document; None if it is not small."""
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
            for lines in whole_lines(chunks, LONGEST_LINE):
                count, graphs = quads_in(lines)
                if others := [graph for graph in graphs if not graph or not naming.keeps(graph)]:
                    raise Damaged(f"a document has no right to the graph '{others[0][:200]}'")
                document.write(lines)
                quads += count
            return document.extent, quads
    except ValueError as error:
        raise Damaged(f"a document's quads are no N-Quads: {error}") from error

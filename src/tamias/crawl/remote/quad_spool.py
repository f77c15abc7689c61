"""Where a worker without segments keeps the quads of documents until they are delivered."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import zstandard

from tamias.model.capture import Extent

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
        """It is complete."""
        self._keep(self._packing.flush())
        if self._file is not None:
            self._file.close()

    def pieces(self) -> Iterator[bytes]:
        """What is sent, piece by piece."""
        if self._path is None:
            for start in range(0, len(self._data), PIECE):
                yield bytes(self._data[start : start + PIECE])
            return
        with self._path.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece

    def discard(self) -> None:
        """It is not needed any more."""
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

    @contextmanager
    def small_document(self) -> Iterator[PackedQuads]:
        """A document that fits into memory."""
        with self._document(None) as packet:
            yield packet

    @contextmanager
    def large_document(self) -> Iterator[PackedQuads]:
        """A document that may not."""
        with self._document(self._folder) as packet:
            yield packet

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

"""The content of one version: bytes, text or table, read from its blob and checked against its digest."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from tamias.archive.reader.tables import Table, read_table
from tamias.content.charsets import decoded, encoding_of
from tamias.content.formats import type_with_charset
from tamias.model.resource import Resource, Version


class BodyReader(Protocol):
    """Gives out bytes by their SHA-256."""

    def pieces(self, digest: str, /) -> Iterator[bytes]:
        """In pieces; the digest is checked before the last of them is given."""
        ...

    def read(self, digest: str, /) -> bytes:
        """All at once."""
        ...


class Content:
    """What a version holds, read when it is asked for. Raises `BlobDamaged` where it is not what it was."""

    def __init__(self, resource: Resource, version: Version, reader: BodyReader) -> None:
        self.resource = resource
        self.version = version
        self.reader = reader

    def __repr__(self) -> str:
        return f"<version {self.version.number} of {self.resource.url}: {self.version.byte_size} bytes>"

    def pieces(self) -> Iterator[bytes]:
        """The exact bytes, in pieces; the digest is checked before the last of them is given."""
        return self.reader.pieces(self.version.sha256)

    def bytes(self) -> bytes:
        """The exact bytes."""
        return self.reader.read(self.version.sha256)

    def open(self) -> BinaryIO:
        """The same as a stream; a very large body is not held in memory."""
        return io.BufferedReader(_Pieces(self.pieces()))

    def text(self, encoding: str | None = None) -> str:
        """The text, in the encoding given or found."""
        content = self.bytes()
        return decoded(content, encoding or encoding_of(content, self.version.told_type))

    @property
    def text_type(self) -> str | None:
        """The type as found, with the charset that the server declares."""
        return type_with_charset(self.version.media_type, self.version.told_type)

    def table(self) -> Table:
        """The rows of CSV, JSON, Parquet or the first sheet of a workbook. Raises `NoTable` otherwise."""
        return read_table(self.text_type, self.spooled)

    def spooled(self, folder: Path) -> Path:
        """The exact bytes in a new file of a folder."""
        path = folder / self.version.id
        with path.open("wb") as file:
            file.writelines(self.pieces())
        return path


class _Pieces(io.RawIOBase):
    """Pieces as a stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

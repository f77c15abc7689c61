"""The content of one version: bytes, text or table, read from its blob and checked against its digest."""

import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from tamias.archive.reader.tables import Table, read_table
from tamias.content.charsets import decoded, encoding_of
from tamias.content.formats import Form, form_of
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
        self._reader = reader

    def __repr__(self) -> str:
        return f"<version {self.version.number} of {self.resource.url}: {self.version.byte_size} bytes>"

    def pieces(self) -> Iterator[bytes]:
        """The exact bytes, in pieces; the digest is checked before the last of them is given."""
        return self._reader.pieces(self.version.sha256)

    def bytes(self) -> bytes:
        """The exact bytes."""
        return self._reader.read(self.version.sha256)

    def open(self) -> BinaryIO:
        """The same as a stream; a very large body is not held in memory."""
        return io.BufferedReader(_Pieces(self.pieces()))

    def text(self, encoding: str | None = None) -> str:
        """The text, in the encoding given or found."""
        content = self.bytes()
        return "".join(decoded([content], encoding or encoding_of([content], self.version.told_type)))

    def table(self) -> Table:
        """The rows of CSV, JSON or Parquet. Raises `NoTable` for what is none."""
        return read_table(self.version.media_type, self.spooled_table)

    def spooled_table(self, folder: Path) -> Path:
        """The content in a new file of a folder, as tables are read: text in UTF-8."""
        is_text = form_of(self.version.media_type) is not Form.BYTES
        return self._spooled_text(folder) if is_text else self.spooled(folder)

    def spooled(self, folder: Path) -> Path:
        """The exact bytes in a new file of a folder."""
        path = folder / self.version.id
        with path.open("wb") as file:
            file.writelines(self.pieces())
        return path

    def _spooled_text(self, folder: Path) -> Path:
        """The same, and in UTF-8."""
        path = self.spooled(folder)
        encoding = encoding_of(_file_pieces(path), self.version.told_type)
        copy = path.with_name(path.name + ".utf-8")
        with copy.open("w", encoding="utf-8", errors="replace", newline="") as file:
            file.writelines(decoded(_file_pieces(path), encoding))
        path.unlink()
        return copy


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


def _file_pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(partial(file.read, 1 << 20), b"")

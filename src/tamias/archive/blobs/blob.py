"""A blob: one body that is kept, how it is coded, where it stands, and its record in a pack."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Annotated
from uuid import UUID
from zlib import crc32

import msgspec

from tamias.archive.blobs.frames import ERASED_MAGIC, FRAME_HEADER, skippable
from tamias.model.capture import Column
from tamias.model.errors import TamiasError


class Codec(StrEnum):
    """The way a body is stored; `docs/blobs.md` says how to read each without Tamias."""

    RAW = "raw"
    """As it is."""
    ZSTD = "zstd"
    """One zstd frame."""
    ZDELTA = "zdelta"
    """One zstd frame that refers to the base as if it stood before it (`zstd --patch-from`)."""
    ROWS = "rows"
    """The lines that the base does not have, and where those stand that it has."""
    CHUNKS = "chunks"
    """Blobs in a row; the base is their list."""
    GROUP = "group"
    """Several bodies in one frame, behind their list."""
    PART = "part"
    """One body of a group, which is the base. It has no record of its own."""


class BlobPlace(msgspec.Struct, frozen=True):
    """The place of a record."""

    pack: Annotated[UUID, Column("uuid")]
    start: Annotated[int, Column("int8")]
    length: Annotated[int, Column("int8")]

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.start + self.length


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """The row of a stored body. Digests are SHA-256 in hexadecimal."""

    sha256: Annotated[str, Column("bytea")]
    size: Annotated[int, Column("int8")]
    codec: Annotated[Codec, Column("text")]
    base: Annotated[str | None, Column("bytea")] = None
    depth: Annotated[int, Column("int2")] = 0
    stored: Annotated[int, Column("int8")]
    place: BlobPlace


def part_row(group: Blob, sha256: str, size: int) -> Blob:
    """A body that is part of a group: it stands in the record of the group, and takes nothing besides."""
    return Blob(
        sha256=sha256, size=size, codec=Codec.PART, base=group.sha256, depth=group.depth + 1, stored=0,
        place=BlobPlace(group.place.pack, group.place.start, 0),
    )  # fmt: skip


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A body whose bytes are written, and the rows that will make it true."""

    sha256: str
    size: int
    blobs: tuple[Blob, ...] = ()
    """Those whose rows are not known to be there: all that it needs of what was prepared and not settled."""
    relies_on: tuple[str, ...] = ()
    """Those with rows, which must still be there when the new ones are written."""
    written: int = 0
    """Bytes that were added to packs for it."""


class BlobMissing(TamiasError):
    """Raised for a blob that does not exist."""


class BlobDamaged(TamiasError):
    """The stored bytes of a blob do not give its body back; `sha256` is the one that is broken."""

    def __init__(self, sha256: str, problem: str) -> None:
        super().__init__(f"blob {sha256} is damaged: {problem}; 'tamias check --repair' may repair it")
        self.sha256 = sha256
        self.problem = problem


class BlobLost(TamiasError):
    """Raised when the base of a prepared body was collected meanwhile; prepare it again."""

    retry_can_help = True


MAGIC = (0x184D2A5D).to_bytes(4, "little")
_BEGINNING = b'{"sha256":"'
_HEADER = 8
_CHECK = 8
_MOST_DESCRIPTION = 1024
_WINDOW = 1024 * 1024

ReadPack = Callable[[int, int], bytes]
"""Bytes of a pack from a place on, up to a number of them; fewer at its end."""


class Description(msgspec.Struct, frozen=True, omit_defaults=True):
    """The description of a blob that stands before its payload."""

    sha256: str
    size: int
    codec: Codec
    payload: int
    """Bytes of the payload, which follows."""
    base: str | None = None
    depth: int = 0

    def blob(self, place: BlobPlace) -> Blob:
        """The blob, once it is known where its record stands."""
        return Blob(
            sha256=self.sha256, size=self.size, codec=self.codec, base=self.base, depth=self.depth,
            stored=self.payload, place=place,
        )  # fmt: skip


class BlobRecord(msgspec.Struct, frozen=True):
    """A description, and where its record stands."""

    start: int
    length: int
    description: Description


def description_frame(description: Description) -> bytes:
    """Return what stands before the payload: JSON, and its CRC-32 in eight hexadecimal digits."""
    encoded = msgspec.json.encode(description)
    return skippable(MAGIC, encoded + b"%08x" % crc32(encoded))


def described(record: bytes) -> Description | None:
    """Return what a record says of itself; None where that cannot be read."""
    length = int.from_bytes(record[4:_HEADER], "little")
    if record[:4] != MAGIC or length > _MOST_DESCRIPTION:
        return None
    encoded, check = record[_HEADER : _HEADER + length - _CHECK], record[_HEADER + length - _CHECK :][:_CHECK]
    if check != b"%08x" % crc32(encoded):
        return None
    return msgspec.json.decode(encoded, type=Description)


def scan(read: ReadPack, length: int) -> Iterator[BlobRecord]:
    """Yield all records of a pack of that length. What cannot be read is passed over up to the next one."""
    window = _Window(read)
    at = 0
    while at < length:
        head = window.at(at, _HEADER + _MOST_DESCRIPTION)
        description = described(head)
        size = _HEADER + int.from_bytes(head[4:_HEADER], "little") if description else 0
        if description and 0 <= description.payload <= length - at - size:
            yield BlobRecord(at, size + description.payload, description)
            at += size + description.payload
        elif head[:4] == ERASED_MAGIC:
            at += FRAME_HEADER + int.from_bytes(head[4:_HEADER], "little")
        else:
            at = _next_record(window, at + 1, length)


class _Window:
    """Reads ahead, so that many small records cost few reads."""

    def __init__(self, read: ReadPack) -> None:
        self._read = read
        self._start = 0
        self._content = b""

    def at(self, start: int, length: int) -> bytes:
        skip = start - self._start
        if not 0 <= skip <= len(self._content) - length:
            self._start, self._content, skip = start, self._read(start, max(_WINDOW, length)), 0
        return self._content[skip : skip + length]


def _next_record(window: _Window, at: int, length: int) -> int:
    """Return where a description seems to begin; the end if none does."""
    overlap = _HEADER + len(_BEGINNING)
    while at < length:
        content = window.at(at, min(_WINDOW, length - at))
        found = content.find(MAGIC)
        while found >= 0:
            if content[found + _HEADER : found + overlap] == _BEGINNING:
                return at + found
            found = content.find(MAGIC, found + 1)
        if len(content) <= overlap or at + len(content) >= length:
            return length
        at += len(content) - overlap
    return length

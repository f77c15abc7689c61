"""How a blob stands in a pack: a description in a skippable zstd frame, then the payload.

A pack is records one after another and nothing else, so all rows can be made anew from the packs.
"""

from collections.abc import Callable, Iterator
from zlib import crc32

import msgspec

from tamias.archive.blobs.blob import Codec
from tamias.archive.blobs.frames import skippable

MAGIC = (0x184D2A5D).to_bytes(4, "little")
_BEGINNING = b'{"sha256":"'
_HEADER = 8
_CHECK = 8
_MOST_DESCRIPTION = 1024
_WINDOW = 1024 * 1024

ReadPack = Callable[[int, int], bytes]
"""Bytes of a pack from a place on, up to a number of them; fewer at its end."""


class Description(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is told of a blob beside its payload."""

    sha256: str
    size: int
    codec: Codec
    payload: int
    """Bytes of the payload, which follows."""
    base: str | None = None
    depth: int = 0


class BlobRecord(msgspec.Struct, frozen=True):
    """A description, and where its record stands."""

    start: int
    length: int
    description: Description


def description_frame(description: Description) -> bytes:
    """What stands before the payload: JSON, and its CRC-32 in eight hexadecimal digits."""
    told = msgspec.json.encode(description)
    return skippable(MAGIC, told + b"%08x" % crc32(told))


def described(record: bytes) -> Description | None:
    """What a record says of itself; None where that cannot be read."""
    length = int.from_bytes(record[4:_HEADER], "little")
    if record[:4] != MAGIC or length > _MOST_DESCRIPTION:
        return None
    told, check = record[_HEADER : _HEADER + length - _CHECK], record[_HEADER + length - _CHECK :][:_CHECK]
    if check != b"%08x" % crc32(told):
        return None
    return msgspec.json.decode(told, type=Description)


def scan(read: ReadPack, length: int) -> Iterator[BlobRecord]:
    """All records of a pack of that length. What cannot be read is passed over up to the next one."""
    window = _Window(read)
    at = 0
    while at < length:
        head = window.at(at, _HEADER + _MOST_DESCRIPTION)
        description = described(head)
        size = _HEADER + int.from_bytes(head[4:_HEADER], "little") if description else 0
        if description and 0 <= description.payload <= length - at - size:
            yield BlobRecord(at, size + description.payload, description)
            at += size + description.payload
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
    """Where a description seems to begin; the end if none does."""
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

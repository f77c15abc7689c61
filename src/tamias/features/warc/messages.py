"""The HTTP message in a record: its head, and its body without transfer and content coding. Bounded.

Many crawlers keep the headers of a coding that they have undone: a body is decoded only if it is coded.
"""

import hashlib
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO

import brotli
import msgspec

from tamias.archive.blobs import BlobDamaged
from tamias.content.containers.codecs import (
    CODECS,
    ByteSource,
    DamageError,
    deflate_frame,
)
from tamias.content.formats import BROTLI, GZIP, ZSTD
from tamias.features.warc.index import WarcExtent
from tamias.features.warc.records import DamagedRecord, WarcBlock, digests_of, is_digest, warc_blocks

MOST_HEADERS = 1000
LONGEST_HEADER = 65_536
_PIECE = 256 * 1024
_MEMORY = 128 << 20
_TRIED = 1024
_STATUS = re.compile(rb"(?:HTTP/[0-9.]{1,8}|ICY) ([1-9][0-9]{2})(?:[ \r\n]|$)")
_CHUNK_LINE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,12})[ \t]*(?:;.*)?\r?\n", re.DOTALL)
_CODED: dict[str, tuple[str, tuple[bytes, ...]]] = {
    "gzip": (GZIP, (b"\x1f\x8b",)),
    "x-gzip": (GZIP, (b"\x1f\x8b",)),
    "zstd": (ZSTD, (b"\x28\xb5\x2f\xfd",)),
    "br": (BROTLI, ()),
}


class BadMessage(Exception):
    """The block is no HTTP message, or its body cannot be decoded."""


class MessageHead(msgspec.Struct, frozen=True):
    """The status and the headers of a response."""

    status: int
    headers: tuple[tuple[str, str], ...]

    def header(self, name: str) -> str:
        """The first value of a header; empty where there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")


def read_head(block: WarcBlock) -> MessageHead:
    """The head of the response in a block, which is left at its body. Raises `BadMessage`."""
    found = _STATUS.match(block.readline(LONGEST_HEADER))
    if found is None:
        raise BadMessage("the record holds no HTTP response")
    headers: list[tuple[str, str]] = []
    for _ in range(MOST_HEADERS):
        line = block.readline(LONGEST_HEADER)
        if not line.strip():
            return MessageHead(int(found[1]), tuple(headers))
        text = _text(line).rstrip("\r\n")
        if text[0] in " \t" and headers:
            name, value = headers[-1]
            headers[-1] = name, f"{value} {text.strip()}"[:LONGEST_HEADER]
            continue
        name, colon, value = text.partition(":")
        if colon and name.strip():
            headers.append((name.strip(), value.strip()))
    raise BadMessage(f"the HTTP head has more than {MOST_HEADERS} lines")


def stored_head(block: WarcBlock) -> MessageHead:
    """The head of a response, also of a record without one. Raises `BadMessage`."""
    kind = block.fields.get("warc-type", "").lower()
    declared = block.fields.get("content-type", "")
    if kind == "resource":
        return MessageHead(200, (("Content-Type", declared),) if declared else ())
    if kind == "revisit" and not block.length:
        return MessageHead(200, ())
    if declared and "http" not in declared.lower():
        raise BadMessage("the record holds no HTTP response")
    return read_head(block)


class MessageBody:
    """The body of a message, decoded while it is read; and whether it is what its digest says."""

    def __init__(self, block: WarcBlock, head: MessageHead | None) -> None:
        """Read a message; without a head the block is the body."""
        self._block = block
        self._head = head
        if block.fields.get("warc-type", "").lower() == "resource":
            self._head = None
        declared = block.fields.get("warc-payload-digest", "")
        self._as_stored, self._unchunked = digests_of(declared), digests_of(declared)

    def pieces(self) -> Iterator[bytes]:
        """Yield all of it. Raises `BadMessage`, and `DamagedRecord` where the file is damaged."""
        stored = _ByteStream(self._observed(iter(lambda: self._block.read(_PIECE), b""), self._as_stored))
        if self._head is None:
            yield from iter(lambda: stored.read(_PIECE), b"")
            return
        plain = stored
        is_chunked = self._head.header("transfer-encoding").lower() == "chunked"
        if is_chunked and _CHUNK_LINE.match(stored.peek(64)):
            plain = _ByteStream(self._observed(_unchunked(stored), self._unchunked))
        try:
            yield from _decoded(plain, self._head.header("content-encoding").lower().strip())
        except DamageError as error:
            raise BadMessage(f"the content coding cannot be undone: {error}") from None
        while stored.read(_PIECE):  # what stands behind the last chunk belongs to the digest
            continue

    def damage(self, size: int) -> str | None:
        """Return why it is not what the server sent, if the record says so; once it is read, of this size."""
        fields, head = self._block.fields, self._head or MessageHead(200, ())
        length = head.header("content-length")
        is_coded = head.header("transfer-encoding") or head.header("content-encoding")
        if self._block.cut:
            return "the record is cut"
        if truncated := fields.get("warc-truncated", ""):
            return f"the crawler cut the body: {truncated[:100]}"
        if not is_coded and length.isascii() and length.isdigit() and size < int(length[:16]):
            return f"the body has {size} of the {length[:16]} bytes that its Content-Length says"
        declared = fields.get("warc-payload-digest", "")
        made = [*self._as_stored, *self._unchunked]
        if made and not any(is_digest(declared, each.digest()) for each in made):
            return f"the payload has another digest than the record says ({declared[:100]})"
        if not made and self._block.is_damaged():
            return "the block has another digest than the record says"
        return None

    @staticmethod
    def _observed(pieces: Iterator[bytes], digests: "list[hashlib._Hash]") -> Iterator[bytes]:
        for piece in pieces:
            for digest in digests:
                digest.update(piece)
            yield piece


class _ByteStream:
    """Pieces as something that is read forward, with a look ahead."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay."""
        while len(self._rest) < size and (piece := next(self._pieces, b"")):
            self._rest += piece
        return self._rest[:size]

    def read(self, size: int, /) -> bytes:
        """Read at least one byte, unless there is none."""
        if not self._rest:
            self._rest = next(self._pieces, b"")
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece

    def readline(self, limit: int) -> bytes:
        """A line, as far as the limit allows."""
        line = self.peek(limit)
        line = line[: line.find(b"\n") + 1] or line
        self._rest = self._rest[len(line) :]
        return line


def _unchunked(stored: _ByteStream) -> Iterator[bytes]:
    while True:
        found = _CHUNK_LINE.fullmatch(stored.readline(1024))
        if found is None:
            raise BadMessage("the chunked body is damaged or cut")
        left = int(found[1], 16)
        if not left:
            return
        while left:
            piece = stored.read(min(left, _PIECE))
            if not piece:
                raise BadMessage("the chunked body is cut")
            left -= len(piece)
            yield piece
        if stored.peek(1) in (b"\r", b"\n"):
            stored.readline(2)


def _decoded(plain: _ByteStream, coding: str) -> Iterator[bytes]:
    if coding == "deflate" and plain.peek(2):
        return _inflated(plain)
    if coding in _CODED:
        codec, magic = _CODED[coding]
        start = plain.peek(_TRIED)
        if start.startswith(magic) if magic else _is_brotli(start):
            return CODECS[codec](plain, _MEMORY)
    return iter(lambda: plain.read(_PIECE), b"")


def _is_brotli(start: bytes) -> bool:
    """Return whether the first bytes can be decoded as Brotli, which has no mark."""
    try:
        brotli.Decompressor().process(start, output_buffer_limit=_PIECE)
    except brotli.error:
        return False
    return bool(start)


def _inflated(plain: ByteSource) -> Iterator[bytes]:
    """Inflate with or without the wrapper of zlib, as servers send both."""
    data = plain.read(_PIECE)
    wrapped = data[0] & 15 == 8 and int.from_bytes(data[:2].ljust(2), "big") % 31 == 0
    try:
        yield from deflate_frame(data, plain, zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
    except (zlib.error, EOFError) as error:
        raise DamageError(str(error)) from None


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def read_response(
    file: BinaryIO, extent: WarcExtent, write: Callable[[bytes], object], *, with_body: bool = True
) -> MessageHead:
    """Gives the body to `write`, piece by piece; returns the head. Raises `BlobDamaged`, at the end too."""
    wanted, digest = extent.sha256 or "", hashlib.sha256()
    place = f"the record at byte {extent.position} of {extent.file}"
    try:
        block = next(warc_blocks(file, lambda _offset, _problem: None, extent.position), None)
        if block is None:
            raise BlobDamaged(wanted, f"there is no record at byte {extent.position} of {extent.file}")
        head = stored_head(block)
        with suppress(BadMessage):  # as far as it could be read when it was indexed
            for piece in MessageBody(block, head).pieces() if with_body else ():
                digest.update(piece)
                write(piece)
    except (DamagedRecord, BadMessage) as error:
        raise BlobDamaged(wanted, f"{place}: {error}") from None
    if with_body and digest.hexdigest() != wanted:
        raise BlobDamaged(wanted, f"{place} holds another")
    return head

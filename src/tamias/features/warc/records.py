"""Reads the records of WARC files that nobody vouches for, packed or not: bounded, and as far as they go.

What is damaged is reported and passed over: reading goes on at the next record that can be found.
"""

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

LONGEST_LINE = 65_536
MOST_LINES = 200
"""Of the head of a record."""
MOST_PASSED = 64 << 20
"""Of a packed record that is unpacked only to be passed over; behind it the next is searched for."""
_PIECE = 256 * 1024
_READ = 64 * 1024
_GZIP = b"\x1f\x8b\x08"
_MARK = b"WARC/"
_TRIED = 4096
"""Packed bytes that are looked at to see whether a record begins there."""

Report = Callable[[int, str], None]
"""Is told where a problem is, and what."""


class DamagedRecord(Exception):
    """Raised where there is no whole record."""


class WarcBlock:
    """A record: its head, and its block as a file that is read forward once."""

    def __init__(self, source: "_Source", offset: int, fields: dict[str, str], length: int) -> None:
        self.offset = offset
        """Where it begins in the file."""
        self.fields = fields
        """The first value of each field, by its name in lower case."""
        self.length = length
        """As its head says."""
        self.cut = False
        """Whether the file, or the member of gzip, ended before the block did."""
        self.left = length
        self._source = source
        named = "" if "warc-payload-digest" in fields else fields.get("warc-block-digest", "")
        self._digests = digests_of(named)

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes of the block, at least one unless it ends. Raises `DamagedRecord`."""
        wanted = min(self.left, _PIECE if size < 0 else size)
        piece = self._source.read(wanted, in_block=True) if wanted else b""
        return self._count(piece)

    def readline(self, limit: int) -> bytes:
        """The next line, or the rest of the block. Raises `DamagedRecord`."""
        return self._count(self._source.readline(min(limit, self.left), in_block=True) if self.left else b"")

    def is_damaged(self) -> bool:
        """Return whether it has another digest than its head says; once all of it is read."""
        named = self.fields.get("warc-block-digest", "")
        return not self.left and not all(is_digest(named, each.digest()) for each in self._digests)

    def _count(self, piece: bytes) -> bytes:
        self.cut |= bool(self.left) and not piece
        self.left = self.left - len(piece) if piece else 0
        for each in self._digests:
            each.update(piece)
        return piece


_ENCODINGS: tuple[Callable[[bytes], str], ...] = (
    lambda digest: base64.b32encode(digest).decode().rstrip("=").lower(),
    lambda digest: digest.hex(),
    lambda digest: base64.b64encode(digest).decode().lower(),
)


def digests_of(named: str) -> "list[hashlib._Hash]":
    """Return what computes a digest of the kind that a record names, or nothing."""
    name = named.partition(":")[0].strip().lower().replace("-", "")
    return [hashlib.new(name)] if name in ("sha1", "sha256", "sha512", "md5") else []


def is_digest(named: str, digest: bytes) -> bool:
    """Return whether a record names this digest."""
    text = named.partition(":")[2].strip().lower()
    return any(text.rstrip("=") == each(digest).rstrip("=") for each in _ENCODINGS)


def warc_blocks(file: BinaryIO, report: Report, start: int = 0) -> Iterator[WarcBlock]:
    """The records of a file that can be sought in, from a record's start on; each until the next is asked."""
    file.seek(start)
    packed = file.read(3) == _GZIP
    source: _Source = _PackedSource(file, start) if packed else _PlainSource(file, start)
    while True:
        try:
            block = _next(source)
            if block is None:
                return
        except DamagedRecord as error:
            report(source.offset, str(error))
            if not source.find_next():
                return
            continue
        try:
            yield block
            _pass_over(source, block)
        except DamagedRecord as error:
            report(block.offset, str(error))
            if not source.find_next():
                return
            continue
        if block.cut:
            report(block.offset, f"the record ends before its length of {block.length} bytes")


def _next(source: "_Source") -> WarcBlock | None:
    line = source.readline(LONGEST_LINE)
    while line in (b"\r\n", b"\n"):
        line = source.readline(LONGEST_LINE)
    if not line:
        return None
    if not line.startswith(_MARK):
        raise DamagedRecord("no record begins here: the length of the one before is wrong, or it is damaged")
    offset = source.record_offset(len(line))
    fields = _fields(source)
    length = fields.get("content-length", "")
    if not (length.isascii() and length.isdigit() and len(length) < 16):
        raise DamagedRecord("the record has no Content-Length")
    return WarcBlock(source, offset, fields, int(length))


def _fields(source: "_Source") -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for _ in range(MOST_LINES):
        line = source.readline(LONGEST_LINE)
        if not line:
            raise DamagedRecord("the file ends in the head of a record")
        text = line.decode("utf-8", "replace")
        if not text.strip():
            return fields
        if text[0] in " \t" and name:  # a folded line
            fields[name] = f"{fields[name]} {text.strip()}"[:LONGEST_LINE]
            continue
        name, _, value = text.partition(":")
        name = name.strip().lower()
        fields.setdefault(name, value.strip())
    raise DamagedRecord(f"the head of a record has more than {MOST_LINES} lines")


def _pass_over(source: "_Source", block: WarcBlock) -> None:
    if block.left > MOST_PASSED:
        if source.skip(block.left):
            block.left = 0
            return
        raise DamagedRecord(f"the rest of a record of {block.length} bytes was not unpacked")
    while block.left and block.read():
        continue


class _Source:
    """The plain bytes of a file, and where they stand in it."""

    mark: bytes
    """What shows that a record may begin there."""

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self._file = file
        self.offset = offset
        """Of the record, or member, that is being read."""
        self._buffer, self._at, self._end = b"", 0, offset
        self._go_to(offset)

    def read(self, size: int, *, in_block: bool = False) -> bytes:
        """The next bytes, at least one unless there is none."""
        if self._at == len(self._buffer) and not self._fill(in_block=in_block):
            return b""
        piece = self._buffer[self._at : self._at + size]
        self._at += len(piece)
        return piece

    def readline(self, limit: int, *, in_block: bool = False) -> bytes:
        """The next line, as far as the limit allows. Raises `DamagedRecord` where it is a limit of heads."""
        line = b""
        while True:
            if self._at == len(self._buffer) and not self._fill(in_block=in_block):
                return line
            end = self._buffer.find(b"\n", self._at)
            stop = len(self._buffer) if end < 0 else end + 1
            stop = min(stop, self._at + limit - len(line))
            line += self._buffer[self._at : stop]
            self._at = stop
            if line.endswith(b"\n"):
                return line
            if len(line) >= limit:
                if in_block:
                    return line
                raise DamagedRecord(f"a line of more than {limit} bytes in the head of a record")

    def record_offset(self, read: int) -> int:
        """Return where a record begins of which so many bytes were read, if it has a place of its own."""
        del read
        return self.offset

    def skip(self, size: int) -> bool:
        """Passes over many bytes at no cost, if it can."""
        del size
        return False

    def find_next(self) -> bool:
        """Goes to the next place where a record begins, behind the one that is being read."""
        at = self.offset + 1
        while True:
            self._file.seek(at)
            piece = self._file.read(_PIECE)
            found = piece.find(self.mark)
            while found >= 0:
                if (place := self._record_at(at + found)) is not None:
                    self._go_to(place)
                    self.offset = place
                    return True
                found = piece.find(self.mark, found + 1)
            if len(piece) < _PIECE:
                return False
            at += len(piece) - len(self.mark) + 1

    def _record_at(self, place: int) -> int | None:
        """Return where a record begins at a mark, if one does."""
        raise NotImplementedError

    def _go_to(self, place: int) -> None:
        self._file.seek(place)
        self._buffer, self._at, self._end = b"", 0, place

    def _fill(self, *, in_block: bool) -> bool:
        raise NotImplementedError


class _PlainSource(_Source):
    """A file that is not packed."""

    mark = b"\n" + _MARK

    def record_offset(self, read: int) -> int:
        self.offset = self._end - len(self._buffer) + self._at - read
        return self.offset

    def skip(self, size: int) -> bool:
        here = self._end - len(self._buffer) + self._at
        length = self._file.seek(0, 2)
        self._go_to(min(here + size, length))
        return True

    def _record_at(self, place: int) -> int:
        return place + 1

    def _fill(self, *, in_block: bool) -> bool:
        del in_block
        self._buffer, self._at = self._file.read(_PIECE), 0
        self._end += len(self._buffer)
        return bool(self._buffer)


class _PackedSource(_Source):
    """Members of gzip, one after another; as a rule each is a record."""

    mark = _GZIP

    def _record_at(self, place: int) -> int | None:
        self._file.seek(place)
        return place if _begins_record(self._file.read(_TRIED)) else None

    def _go_to(self, place: int) -> None:
        super()._go_to(place)
        self._packed = b""
        self._damage = ""
        self._member = zlib.decompressobj(31)

    def _fill(self, *, in_block: bool) -> bool:
        """Raises `DamagedRecord`."""
        if self._damage:
            raise DamagedRecord(self._damage)
        while True:
            if self._member.eof and not self._begin_member(in_block):
                return False
            if not self._packed:
                self._packed = self._file.read(_READ)
                self._end += len(self._packed)
                if not self._packed:
                    return False  # the member is cut
            try:
                plain = self._member.decompress(self._packed, _PIECE)
            except zlib.error as error:
                self._damage = f"the gzip data is damaged: {error}"
                raise DamagedRecord(self._damage) from None
            self._packed = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if plain:
                self._buffer, self._at = plain, 0
                return True

    def _begin_member(self, in_block: bool) -> bool:
        """The next member; not where a block goes on and the member is a record of its own."""
        while len(self._packed) < _TRIED and (more := self._file.read(_READ)):
            self._packed += more
            self._end += len(more)
        if not self._packed.startswith(_GZIP):
            if self._packed.strip(b"\0"):
                raise DamagedRecord("something that is not gzip stands between members")
            return False
        place = self._end - len(self._packed)
        if in_block and _begins_record(self._packed[:_TRIED]):
            return False
        self._member = zlib.decompressobj(31)
        self.offset = place
        return True


def _begins_record(packed: bytes) -> bool:
    try:
        return zlib.decompressobj(31).decompress(packed, len(_MARK)) == _MARK
    except zlib.error:
        return False

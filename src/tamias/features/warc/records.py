"""Reads the records of WARC and ARC files that nobody vouches for, packed or not: bounded, as far as they go.

What is damaged is reported and passed over: reading goes on at the next record that can be found. A record of
an ARC file is given as the WARC record that says the same.
"""

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO
from uuid import NAMESPACE_URL, uuid5

from tamias.content.zstd import zstd

LONGEST_LINE = 65_536
MOST_LINES = 200
"""Of the head of a record."""
MOST_PASSED = 64 << 20
"""Of a packed record that is unpacked only to be passed over; behind it the next is searched for."""
_PIECE = 256 * 1024
_READ = 64 * 1024
_GZIP = b"\x1f\x8b\x08"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_LONGEST_DICTIONARY = 16 << 20
_ZSTD_WINDOW = 27
"""The logarithm of the memory that a frame may ask for."""
_MARK = b"WARC/"
_ARC = re.compile(
    rb"([a-zA-Z][a-zA-Z0-9+.-]*:[^\r\n]*?) ([0-9A-Fa-f.:]+|-) ([0-9]{14})[0-9]* "
    rb"(\S+)(?: [^\r\n]*)? ([0-9]{1,15})\r?\n"
)
"""Address, IP address, time, type and length: with other fields between in the second version of ARC."""
_LONGEST_ARC_LINE = 8192
_TRIED = 4096
"""Packed bytes that are looked at to see whether a record begins there."""

Report = Callable[[int, str], None]
"""Is told where a problem is, and what."""


class DamagedRecord(Exception):
    """Raised where there is no whole record."""


class WarcBlock:
    """A record: its head, and its block as a file that is read forward once."""

    def __init__(
        self, source: "_Source", offset: int, head: bytes, fields: dict[str, str], length: int
    ) -> None:
        self.offset = offset
        """Where it begins in the file."""
        self.head = head
        """As it stands there."""
        self.copy: Callable[[bytes], object] | None = None
        """Is given all of the block that is read."""
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
        if self.copy is not None:
            self.copy(piece)
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
    magic = file.read(4)
    source: _Source
    if magic.startswith(_GZIP):
        source = _PackedSource(file, start)
    elif magic == _ZSTD or _SKIPPABLE.match(magic):
        source = _ZstdSource(file, start)
    else:
        source = _PlainSource(file, start)
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
    arc = _ARC.fullmatch(line) if len(line) <= _LONGEST_ARC_LINE else None
    if arc is None and not line.startswith(_MARK):
        raise DamagedRecord("no record begins here: the length of the one before is wrong, or it is damaged")
    offset = source.record_offset(len(line))
    head = _head_of_arc(line, *arc.groups()) if arc else line + _read_head(source)
    fields = _fields(head)
    length = fields.get("content-length", "")
    if not (length.isascii() and length.isdigit() and len(length) < 16):
        raise DamagedRecord("the record has no Content-Length")
    return WarcBlock(source, offset, head, fields, int(length))


def _head_of_arc(
    line: bytes, url: bytes, address: bytes, time: bytes, declared: bytes, length: bytes
) -> bytes:
    """Return the head of the WARC record that says what a line of an ARC file says."""
    kind, block = b"response", b"application/http; msgtype=response"
    if url.startswith(b"filedesc:"):
        kind, block = b"warcinfo", b"text/plain"
    elif not url.lower().startswith((b"http:", b"https:")):
        kind, block = b"resource", declared
    date = b"%b-%b-%bT%b:%b:%bZ" % (time[:4], *(time[at : at + 2] for at in range(4, 14, 2)))
    name = b"<urn:uuid:%b>" % str(uuid5(NAMESPACE_URL, line.decode("latin-1"))).encode()
    known = [(b"Type", kind), (b"Record-ID", name), (b"Date", date), (b"Target-URI", url)]
    if address not in (b"-", b"0.0.0.0") and kind != b"warcinfo":
        known.append((b"IP-Address", address))
    lines = b"".join(b"WARC-%b: %b\r\n" % each for each in known)
    return b"WARC/1.0\r\n%bContent-Type: %b\r\nContent-Length: %b\r\n\r\n" % (lines, block, length)


def _read_head(source: "_Source") -> bytes:
    """The lines of a head behind its first."""
    lines: list[bytes] = []
    for _ in range(MOST_LINES):
        lines.append(source.readline(LONGEST_LINE))
        if not lines[-1]:
            raise DamagedRecord("the file ends in the head of a record")
        if not lines[-1].strip():
            return b"".join(lines)
    raise DamagedRecord(f"the head of a record has more than {MOST_LINES} lines")


def _fields(head: bytes) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in head.split(b"\n")[1:]:
        text = line.decode("utf-8", "replace")
        if not text.strip():
            return fields
        if text[0] in " \t" and name:  # a folded line
            fields[name] = f"{fields[name]} {text.strip()}"[:LONGEST_LINE]
            continue
        name, _, value = text.partition(":")
        name = name.strip().lower()
        fields.setdefault(name, value.strip())
    return fields


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
    kind = "gzip"

    def _record_at(self, place: int) -> int | None:
        self._file.seek(place)
        return place if self._begins_record(self._file.read(_TRIED)) else None

    def _go_to(self, place: int) -> None:
        super()._go_to(place)
        self._packed = b""
        self._damage = ""
        self._member = self._new_member()

    def _new_member(self) -> Any:
        """Return what unpacks a member."""
        return zlib.decompressobj(31)

    def _holds_back(self) -> bool:
        """Return whether the member has more to give before it is fed again."""
        return False

    def _pass_empty(self) -> None:
        """Passes over what is packed and holds nothing."""

    def _fill(self, *, in_block: bool) -> bool:
        """Raises `DamagedRecord`."""
        if self._damage:
            raise DamagedRecord(self._damage)
        while True:
            if self._member.eof and not self._begin_member(in_block):
                return False
            if not self._packed and not self._holds_back():
                self._packed = self._file.read(_READ)
                self._end += len(self._packed)
                if not self._packed:
                    return False  # the member is cut
            try:
                plain, self._packed = self._unpack(self._packed)
            except (zlib.error, zstd.ZstdError) as error:
                self._damage = f"the {self.kind} data is damaged: {error}"
                raise DamagedRecord(self._damage) from None
            if plain:
                self._buffer, self._at = plain, 0
                return True

    def _unpack(self, packed: bytes) -> tuple[bytes, bytes]:
        """Return some plain bytes, and what is still packed."""
        plain = self._member.decompress(packed, _PIECE)
        return plain, self._member.unused_data if self._member.eof else self._member.unconsumed_tail

    def _begin_member(self, in_block: bool) -> bool:
        """The next member; not where a block goes on and the member is a record of its own."""
        self._look_ahead()
        self._pass_empty()
        if not self._packed.startswith(self.mark):
            if self._packed.strip(b"\0"):
                raise DamagedRecord(f"something that is not {self.kind} stands between members")
            return False
        place = self._end - len(self._packed)
        if in_block and self._begins_record(self._packed[:_TRIED]):
            return False
        self._member = self._new_member()
        self.offset = place
        return True

    def _look_ahead(self) -> None:
        while len(self._packed) < _TRIED and (more := self._file.read(_READ)):
            self._packed += more
            self._end += len(more)

    def _begins_record(self, packed: bytes) -> bool:
        try:
            plain = self._new_member().decompress(packed, LONGEST_LINE)
        except (zlib.error, zstd.ZstdError):
            return False
        return plain.startswith(_MARK) or _ARC.match(plain[:_LONGEST_ARC_LINE]) is not None


class _ZstdSource(_PackedSource):
    """Frames of zstd; the first of a file may be skippable, and hold the dictionary of the others."""

    mark = _ZSTD
    kind = "zstd"

    def __init__(self, file: BinaryIO, offset: int) -> None:
        file.seek(0)
        self._dictionary = _read_dictionary(file)
        super().__init__(file, offset)
        self._look_ahead()
        self._pass_empty()
        self.offset = self._end - len(self._packed)

    def _new_member(self) -> Any:
        limits: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW}
        return zstd.ZstdDecompressor(zstd_dict=self._dictionary, options=limits)

    def _unpack(self, packed: bytes) -> tuple[bytes, bytes]:
        plain = self._member.decompress(packed, _PIECE)
        return plain, self._member.unused_data if self._member.eof else b""

    def _holds_back(self) -> bool:
        return not (self._member.needs_input or self._member.eof)

    def _pass_empty(self) -> None:
        at = 0
        while _SKIPPABLE.match(self._packed, at) and len(self._packed) >= at + 8:
            at += 8 + int.from_bytes(self._packed[at + 4 : at + 8], "little")
            if at + _TRIED > len(self._packed):
                self._end += at - len(self._packed)
                self._file.seek(self._end)
                self._packed, at = b"", 0
                self._look_ahead()
        self._packed = self._packed[at:]


def _read_dictionary(file: BinaryIO) -> "zstd.ZstdDict | None":
    """Return the dictionary that a file begins with: plain, or packed itself."""
    start = file.read(8)
    size = int.from_bytes(start[4:], "little")
    if not start.startswith(b"\x5d\x2a\x4d\x18") or size > _LONGEST_DICTIONARY:
        return None
    content = file.read(size)
    try:
        if content.startswith(_ZSTD):
            content = zstd.ZstdDecompressor().decompress(content, _LONGEST_DICTIONARY)
        return zstd.ZstdDict(content)
    except (zstd.ZstdError, ValueError):
        return None

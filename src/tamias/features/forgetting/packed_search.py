"""Looks for marks in a stream of bytes: as they are, and in every compressed stream that begins in them.

What is unpacked is searched in the same way, so that a gzip member in a zstd frame is seen, too. Memory is
bounded whatever the stream unpacks to.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from tamias.content.zstd import zstd
from tamias.features.forgetting.marks import WINDOW, MarkSearch

_DEPTH = 3
"""Compressed streams within each other."""
_PLAIN = 1 << 20
_STEP = 16 << 10
"""Compressed bytes that are unpacked at once; what follows the end of a stream among them is copied."""
MOST_UNPACKED = 16 << 30
"""Bytes of one stream, with all that is in it."""
_LONGEST_START = 6
_ZIP_HEAD = 30
_DEFLATED = 8
_ERRORS = (zlib.error, zstd.ZstdError, lzma.LZMAError, OSError, EOFError, ValueError)


class PackedSearch:
    """Looks at one stream. `found` has the marks in it, each with the number of its body."""

    def __init__(self, marks: MarkSearch) -> None:
        self.found: set[tuple[int, bytes]] = set()
        self._marks = marks
        self._level = _Level(self, _DEPTH)
        self._left = MOST_UNPACKED

    @property
    def is_complete(self) -> bool:
        """Return whether the whole unpacked stream was searched."""
        return self._left > 0

    def feed(self, piece: bytes) -> None:
        """The next bytes."""
        self._level.feed(piece)

    def close(self) -> None:
        """End the search: there are no more bytes."""
        self._level.close()

    def look(self, content: bytes) -> None:
        """Search plain bytes."""
        self.found.update((number, mark) for number, _, mark in self._marks.find(content))

    def spend(self, unpacked: int) -> bool:
        """Return whether so many unpacked bytes may still be searched."""
        self._left -= unpacked
        return self._left > 0


class _Level:
    """A stream, or what a part of it unpacks to."""

    def __init__(self, search: PackedSearch, depth: int) -> None:
        self._search = search
        self._depth = depth
        self._plain = bytearray()
        self._carried = b""
        self._unpacking: _Packed | None = None
        self._inner: _Level | None = None

    def feed(self, piece: bytes) -> None:
        self._plain += piece
        if len(self._plain) >= _PLAIN:
            self._search.look(bytes(self._plain))
            del self._plain[: 1 - WINDOW]
        if self._depth and self._search.is_complete:
            self._scan(self._carried + piece)

    def close(self) -> None:
        self._search.look(bytes(self._plain))
        self._end_inner()

    def _scan(self, content: bytes) -> None:
        at, tried, next_at = 0, -1, dict.fromkeys(_STARTS, -1)
        self._carried = b""
        while at < len(content):
            if self._unpacking is None:
                begin = max(at, tried + 1)
                for start, known in next_at.items():
                    if known < begin:
                        found = content.find(start, begin)
                        next_at[start] = found if found >= 0 else len(content)
                first = min(next_at, key=next_at.__getitem__)
                if next_at[first] >= len(content):
                    self._carried = content[max(begin, len(content) - _LONGEST_START + 1) :]
                    return
                at = tried = next_at[first]
                self._unpacking = _STARTS[first]()
                self._inner = _Level(self._search, self._depth - 1)
            at = self._unpack(content, at)

    def _unpack(self, content: bytes, at: int) -> int:
        """Returns where the compressed stream ends; if this is none, from where it was tried."""
        assert self._unpacking is not None
        assert self._inner is not None
        try:
            for step in range(at, len(content), _STEP):
                for plain in self._unpacking.unpack(content[step : step + _STEP]):
                    if not self._search.spend(len(plain)):
                        return len(content)
                    self._inner.feed(plain)
                if self._unpacking.eof:
                    end = min(step + _STEP, len(content)) - len(self._unpacking.unused_data)
                    self._end_inner()
                    return end
        except _ERRORS:
            self._end_inner()
            return at
        return len(content)

    def _end_inner(self) -> None:
        if self._inner is not None:
            self._inner.close()
        self._unpacking = self._inner = None


class _Packed:
    """A compressed stream: gzip, bzip2, xz or zstd, whose decompressors are nearly alike."""

    def __init__(self, unpacking: Any) -> None:
        self._unpacking = unpacking

    @property
    def eof(self) -> bool:
        """Return whether the stream has ended."""
        return bool(self._unpacking.eof)

    @property
    def unused_data(self) -> bytes:
        """Return the bytes after the stream."""
        return bytes(self._unpacking.unused_data)

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        """Yield what the next bytes unpack to, piece by piece. Raises one of `_ERRORS`."""
        yield self._unpacking.decompress(packed, _PLAIN)
        while not self.eof and (left := self._left()) is not None:
            yield self._unpacking.decompress(left, _PLAIN)

    def _left(self) -> bytes | None:
        """Return what to go on with; None where more bytes are needed."""
        if hasattr(self._unpacking, "needs_input"):
            return None if self._unpacking.needs_input else b""
        return self._unpacking.unconsumed_tail or None


class _ZipMember(_Packed):
    """The content of a member. One that is not deflated is searched as it is."""

    def __init__(self) -> None:
        super().__init__(zlib.decompressobj(-15))
        self._head: bytes | None = b""

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        if self._head is not None:
            self._head += packed
            if len(self._head) < _ZIP_HEAD:
                return
            method, name, extra = (int.from_bytes(self._head[at : at + 2], "little") for at in (8, 26, 28))
            if method != _DEFLATED:
                raise ValueError("it is not deflated")
            if len(self._head) <= _ZIP_HEAD + name + extra:
                return
            packed, self._head = self._head[_ZIP_HEAD + name + extra :], None
        yield from super().unpack(packed)


_STARTS: dict[bytes, Callable[[], _Packed]] = {
    b"\x28\xb5\x2f\xfd": lambda: _Packed(zstd.ZstdDecompressor()),
    b"\x1f\x8b\x08": lambda: _Packed(zlib.decompressobj(31)),
    b"BZh": lambda: _Packed(bz2.BZ2Decompressor()),
    b"\xfd7zXZ\x00": lambda: _Packed(lzma.LZMADecompressor()),
    b"PK\x03\x04": _ZipMember,
}

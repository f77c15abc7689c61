"""Marks: keyed hashes of a few windows of a body, by which its bytes are found again without being stored.

A window is found at any place by a rolling hash, and proven by a keyed one. Both tell nothing of its bytes.
"""

import bz2
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tamias.content.zstd import zstd

WINDOW = 64
MOST_MARKS = 32
"""Of a body, or of each part of a long one."""
_ROLLING = 8
_PROOF = 16
MARK_BYTES = _ROLLING + _PROOF
_LEAST_SIGNS = 12
"""Different bytes in a window: others, such as rows of zeros, are everywhere."""
_LEAST_APART = 4
"""Bytes: what is special may be a line of a table."""
_BLOCK = 1 << 18
_ALL_BYTES = 8 << 20
"""Of a body up to this size every window is looked at; of a larger one, so many spread over it."""
_PART_BYTES = 16 << 20
_END_OF_LINE = ord("\n")
_MULTIPLIER = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_TABLE_BITS = 20

Hashes = npt.NDArray[np.uint64]


def mark_pieces(
    key: bytes, pieces: Iterable[bytes], others: Callable[[], Iterable[bytes]], *, lines: bool = False
) -> bytes:
    """Marks of a body of any length, which others do not have, so many for each part of it.

    `others` gives them in pieces, as often as it is called. `lines`: no mark goes beyond the end of a line.
    """
    return b"".join(make_marks(key, part, overlapping(others()), lines=lines) for part in _parts(pieces))


def _parts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    part = bytearray()
    for piece in pieces:
        part += piece
        while len(part) >= _PART_BYTES:
            yield bytes(part[:_PART_BYTES])
            del part[: _PART_BYTES - WINDOW + 1]
    yield bytes(part)


def overlapping(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each piece with the end of the one before, so that no window is missed."""
    tail = b""
    for piece in pieces:
        content = tail + piece
        yield content
        tail = content[-(WINDOW - 1) :]


def make_marks(key: bytes, body: bytes, others: Iterable[bytes] = (), *, lines: bool = False) -> bytes:
    """Marks of a body that none of the others has, one behind the other; empty where there are none."""
    starts = _starts(body)
    hashes = np.concatenate([_rolling(body[at : at + size + WINDOW - 1]) for at, size in starts] or [_none()])
    places = np.concatenate([np.arange(at, at + size) for at, size in starts] or [np.arange(0)])
    hashes, first = np.unique(hashes, return_index=True)
    places = places[first]
    taken = np.zeros(len(hashes), dtype=bool)
    for other in others:
        for block in _blocks(other):
            taken |= np.isin(hashes, _rolling(block))
    own = np.sort(places[~taken])
    if lines:
        ends = np.append(np.flatnonzero(np.frombuffer(body, dtype=np.uint8) == _END_OF_LINE), len(body))
        within = own[ends[np.searchsorted(ends, own)] - own >= WINDOW]
        own = within if len(within) else own
    return b"".join(_mark(key, body[at : at + WINDOW]) for at in _chosen(body, own))


def _chosen(body: bytes, places: Any) -> list[int]:
    """Return some places, far apart if possible, whose windows have several kinds of characters."""
    apart = max(_LEAST_APART, min(WINDOW, len(places) // MOST_MARKS))
    chosen: list[int] = []
    for share in np.array_split(places, MOST_MARKS):
        for at in share[: 4 * WINDOW : _LEAST_APART].tolist():
            if chosen and at < chosen[-1] + apart:
                continue
            if len(set(body[at : at + WINDOW])) >= _LEAST_SIGNS:
                chosen.append(at)
                break
    return chosen


def _starts(body: bytes) -> list[tuple[int, int]]:
    """Return the places of windows, and how many are behind each."""
    count = len(body) - WINDOW + 1
    if count <= 0:
        return []
    if count <= _ALL_BYTES:
        return [(at, min(_BLOCK, count - at)) for at in range(0, count, _BLOCK)]
    parts = _ALL_BYTES // _BLOCK
    return [(part * (count - _BLOCK) // (parts - 1), _BLOCK) for part in range(parts)]


def _blocks(content: bytes) -> Iterator[bytes]:
    for at in range(0, max(1, len(content) - WINDOW + 1), _BLOCK):
        yield content[at : at + _BLOCK + WINDOW - 1]


def _none() -> Hashes:
    return np.zeros(0, dtype=np.uint64)


def _rolling(content: bytes) -> Hashes:
    """The hashes of all windows: of 2, 4, 8, … bytes, each made of two of half the length."""
    hashes = np.frombuffer(content, dtype=np.uint8).astype(np.uint64) + np.uint64(1)
    length, power = 1, _MULTIPLIER
    while length < WINDOW:
        if len(hashes) <= length:
            return _none()
        hashes = hashes[:-length] * np.uint64(power) + hashes[length:]
        length, power = 2 * length, power * power & _MASK
    return hashes


def _mark(key: bytes, window: bytes) -> bytes:
    return int(_rolling(window)[0]).to_bytes(_ROLLING, "big") + _proof(key, window)


def _proof(key: bytes, window: bytes) -> bytes:
    return hashlib.blake2b(window, digest_size=_PROOF, key=key).digest()


class MarkSearch:
    """Looks for the bytes of many bodies at once."""

    def __init__(self, key: bytes, marks: Iterable[tuple[int, bytes]]) -> None:
        """`marks` of bodies, with the numbers by which they are told."""
        self._key = key
        self._proofs: dict[int, list[tuple[bytes, int]]] = {}
        for number, packed in marks:
            for at in range(0, len(packed), MARK_BYTES):
                rolling = int.from_bytes(packed[at : at + _ROLLING], "big")
                proof = packed[at + _ROLLING : at + MARK_BYTES]
                self._proofs.setdefault(rolling, []).append((proof, number))
        self._index()

    def _index(self) -> None:
        self._wanted = np.array(sorted(self._proofs), dtype=np.uint64)
        self._table = np.zeros(1 << _TABLE_BITS, dtype=bool)
        self._table[self._wanted >> np.uint64(64 - _TABLE_BITS)] = True

    def __bool__(self) -> bool:
        return bool(self._proofs)

    def find(self, content: bytes) -> Iterator[tuple[int, int, bytes]]:
        """The numbers of bodies whose bytes are there, where, and by which mark; of each window one."""
        if not self._proofs:
            return
        for block_at, block in zip(range(0, len(content), _BLOCK), _blocks(content), strict=False):
            hashes = _rolling(block)
            likely = np.flatnonzero(self._table[hashes >> np.uint64(64 - _TABLE_BITS)])
            for at in likely[np.isin(hashes[likely], self._wanted)].tolist():
                proof = _proof(self._key, block[at : at + WINDOW])
                for expected, number in self._proofs[int(hashes[at])]:
                    if proof == expected:
                        yield number, block_at + at, proof

    def only(self, found: Iterable[tuple[int, bytes]]) -> "MarkSearch":
        """The same for some marks, each with the number of its body."""
        wanted = set(found)
        some = MarkSearch(self._key, ())
        for rolling, proofs in self._proofs.items():
            wanted_proofs = [(proof, number) for proof, number in proofs if (number, proof) in wanted]
            if wanted_proofs:
                some._proofs[rolling] = wanted_proofs
        some._index()
        return some


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

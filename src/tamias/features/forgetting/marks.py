"""Marks: keyed hashes of a few windows of a body, by which its bytes are found again without being stored.

A window is found at any place by a rolling hash, and proven by a keyed one. Both tell nothing of its bytes.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

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

"""Sketches of columns: the smallest hashes of their values, by which `joins` finds what contains what."""

import struct
from collections.abc import Iterable
from hashlib import md5

SIZE = 512
"""Hashes of one sketch. A column of fewer different values is in it as a whole."""

HASH_SQL = "md5_number_lower(lower({v}))"
"""64 bits, in DuckDB's words."""


def hash_of(value: str) -> int:
    """The same in Python's."""
    digest = md5(value.lower().encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "little")


def packed(hashes: Iterable[int]) -> bytes:
    """The smallest hashes, ascending, 8 bytes each."""
    kept = sorted(set(hashes))[:SIZE]
    return struct.pack(f"<{len(kept)}Q", *kept)

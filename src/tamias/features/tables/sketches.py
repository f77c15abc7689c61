"""Sketches of columns: the smallest hashes of their values, by which `joins` finds what contains what."""

import struct
from collections.abc import Collection, Iterable, Sequence
from hashlib import md5

SIZE = 512
"""Hashes of one sketch. A column of fewer different values is in it as a whole."""

HASH_SQL = "md5_number_lower(lower({v}))"
"""64 bits, in DuckDB's words."""


def hashes_of(values: Collection[str]) -> Sequence[int]:
    """The same in Python's, of many values at once."""
    lowered = "\n".join(values).lower().encode().split(b"\n")
    if len(lowered) != len(values):  # some have line ends of their own
        lowered = [value.lower().encode() for value in values]
    digests = b"".join([md5(each, usedforsecurity=False).digest() for each in lowered])
    return struct.unpack(f"<{2 * len(lowered)}Q", digests)[1::2]


def packed(hashes: Iterable[int]) -> bytes:
    """The smallest hashes, ascending, 8 bytes each."""
    smallest = sorted(set(hashes))[:SIZE]
    return struct.pack(f"<{len(smallest)}Q", *smallest)

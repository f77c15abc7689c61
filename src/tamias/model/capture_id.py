"""Time-ordered ids for captures (UUID version 7)."""

import os
from uuid import UUID


def new_capture_id(milliseconds: int) -> UUID:
    """A fresh id that sorts by time.

    >>> new_capture_id(0x0123456789AB).hex[:13]
    '0123456789ab7'
    """
    random = int.from_bytes(os.urandom(10), "big")
    number = (milliseconds & (1 << 48) - 1) << 80 | 7 << 76 | (random >> 68 & 0xFFF) << 64
    return UUID(int=number | 0b10 << 62 | random & (1 << 62) - 1)

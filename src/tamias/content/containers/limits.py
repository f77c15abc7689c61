"""Limits of unpacking a body, and the meter that all its layers share."""

from collections.abc import Callable

import msgspec

from tamias.model.document import LimitExceeded, Overblown

MIB = 1 << 20

MAX_DIRECTORY = 32 * MIB
"""Of the directory of a zip or 7z archive; their readers take any into memory."""

MAX_ENTRIES = 200_000
"""What a 7z directory may list; py7zr takes some 500 bytes of memory for each."""


class OpenLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on unpacking one body, as set in `[open]`; `max_bytes` is `max_unpacked` there.

    A dump of repetitive RDF packed 17:1 with zstd at its highest level; zeros pack 1000:1 with gzip and
    far more with the others. 100:1 lies between; up to `ratio_after` a bomb costs too little to matter.
    """

    max_bytes: int = 2048 * MIB
    max_ratio: int = 100
    ratio_after: int = 16 * MIB
    max_members: int = 100_000
    max_layers: int = 4
    """Codecs and archives inside each other; a `tar.gz` has two."""
    max_archives: int = 2
    max_memory: int = 128 * MIB
    """What one decoder may ask for as its window."""


class Meter:
    """Counts what comes out of one body, over all layers and members."""

    def __init__(self, limits: OpenLimits, position: Callable[[], int]) -> None:
        """`position` tells how much of the body was read: so a large bomb is known by its first part."""
        self._limits = limits
        self._position = position
        self._bytes = 0
        self._members = 0

    def unpacked(self, count: int) -> None:
        """Counts decoded bytes. Raises `LimitExceeded`."""
        self._bytes += count
        if self._bytes > self._limits.max_bytes:
            raise LimitExceeded(
                f"unpacks to more than {self._limits.max_bytes} bytes (limit open.max_unpacked)"
            )
        if self._bytes > self._limits.ratio_after and self._bytes > self._limits.max_ratio * self._position():
            ratio = self._limits.max_ratio
            raise Overblown(f"unpacks to more than {ratio} times its size (limit open.max_ratio)")

    def member(self) -> None:
        """Counts one member of an archive. Raises `LimitExceeded`."""
        self._members += 1
        self.check_members(self._members)

    def check_members(self, count: int) -> None:
        """Raises `LimitExceeded` when an archive claims more members than are allowed."""
        if count > self._limits.max_members:
            raise LimitExceeded(
                f"archive of more than {self._limits.max_members} members (limit open.max_members)"
            )

"""Limits of a profile, and the work on one body within them."""

import time
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tamias.features.tables.scratch import ScratchFolder

KIB = 1 << 10
MIB = 1 << 20


class ProfileLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the profile of one body. The field names are the setting words of `[profile]`."""

    seconds: float = 60.0
    """For all of it; what is known by then counts."""
    bytes: int = 512 * MIB
    """Of text, tables, JSON, XML and RDF that are read; the rest is not looked at."""
    memory: int = 256 * MIB
    """For the database that a table is read into; beyond that it uses the disk. Few tables need all of it."""
    disk: int = 4096 * MIB
    """For copies in the scratch folder."""
    line: int = 2 * MIB
    """The longest line, in bytes, of a table."""
    rows: int = 20_000_000
    columns: int = 500
    """Columns of a table that are profiled; the rest are only counted."""
    sheets: int = 50
    top_values: int = 10
    value: int = 100
    """Characters of a value that is shown."""
    exact_rows: int = 1_000_000
    """Distinct values are counted in tables of up to so many rows, and estimated in larger ones."""
    item: int = 16 * MIB
    """Bytes of JSON that are held at once: a document, a line, or one element of a large array."""
    paths: int = 500
    """Different places of JSON or XML."""
    depth: int = 250
    members: int = 1000
    usages: int = 200
    """Classes and properties that are listed of RDF."""
    problems: int = 50


class ProfileLimit(Exception):
    """Reading stops here; the message names the limit and its setting. What was read before it counts."""


class MemoryLimit(ProfileLimit):
    """A profile needed more memory or temporary disk space than is allowed."""


class ProfileRun:
    """The work on one body: its limits, the time that is left, a folder for copies, and what goes wrong."""

    def __init__(self, limits: ProfileLimits, folder: "ScratchFolder") -> None:
        self.limits = limits
        self.folder = folder
        self.problems: list[str] = []
        self._end = time.monotonic() + limits.seconds

    @property
    def left(self) -> float:
        """Seconds, never less than 0."""
        return max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """Raises `ProfileLimit` when the time is over."""
        if time.monotonic() > self._end:
            raise self.over()

    def over(self) -> ProfileLimit:
        """Return the error that says that the time is over."""
        return ProfileLimit(f"not read on after {self.limits.seconds:g} s (limit profile.seconds)")

    def beyond_bytes(self) -> ProfileLimit:
        """Return the error that says that a body is longer than what is read of it."""
        return ProfileLimit(f"not read beyond {self.limits.bytes} bytes (limit profile.bytes)")

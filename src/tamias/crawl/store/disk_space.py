"""Room on the disks that a crawl writes to: how much must stay free, and waiting until there is more."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tamias.model.errors import DiskFull

_FOLDERS = ("", "blobs", "rdf", "pg", "spool", "warc")
"""Of the data directory; each may be a disk of its own."""
_MEGABYTE = 1_000_000
FULL_BYTES = _MEGABYTE
"""With less than this any trouble is taken for that of a full disk."""
FIRST_WAIT = 1.0
LONGEST_WAIT = 5.0


class DiskSpace:
    """The free space where a crawl writes; a check takes a few microseconds."""

    def __init__(self, data: Path, megabytes: float) -> None:
        self._places = [data / folder for folder in _FOLDERS]
        self.least = int(megabytes * _MEGABYTE)

    def check(self) -> None:
        """Raises `DiskFull` when less is free than must be."""
        if (lacking := self.lacking(self.least)) is not None:
            raise DiskFull(lacking)

    def lacking(self, wanted: int) -> str | None:
        """Return a sentence that names a place without so many free bytes; None if there is none."""
        for place, free in self._free():
            if free < wanted:
                return (
                    f"no disk space left at {place}: {_in_mb(free)} are free and {_in_mb(wanted)} are needed "
                    "(crawl.room); free some space"
                )
        return None

    def _free(self) -> Iterator[tuple[Path, int]]:
        seen = set()
        for place in self._places:
            try:
                device, disk = os.stat(place).st_dev, os.statvfs(place)
            except OSError:
                continue  # not there yet
            if device not in seen:
                seen.add(device)
                yield place, disk.f_bavail * disk.f_frsize


class Pause:
    """A crawl that waits for room, looking less and less often. Shared by its workers."""

    def __init__(self, space: DiskSpace, longest: float | None) -> None:
        """`longest` in seconds, without end if None."""
        self._space = space
        self._longest = longest
        self._since: float | None = None
        self._wait = FIRST_WAIT
        self._waiting = 0
        self._why = ""

    @property
    def why(self) -> str | None:
        """Return the reason for waiting, while somebody waits."""
        return self._why if self._waiting else None

    def is_to_blame(self, exit_code: int) -> bool:
        """Tell if a worker with this exit code ended because the disk was full."""
        full = exit_code == DiskFull.exit_code
        return full or (exit_code != 0 and self._space.lacking(FULL_BYTES) is not None)

    async def over(self, why: str, stopping: "asyncio.Future[Any]", *, progress: bool) -> bool:
        """Waits until it is worth another try; `progress` is whether the last one brought anything.

        False when there was no room for too long.
        """
        if progress or self._since is None:
            self._since, self._wait = time.monotonic(), FIRST_WAIT
        self._why = why
        self._waiting += 1
        try:
            while not stopping.done():
                left = self._left(self._since)
                if left <= 0:
                    return False
                await asyncio.wait([stopping], timeout=min(self._wait, left))
                self._wait = min(LONGEST_WAIT, 2 * self._wait)
                if self._space.lacking(2 * self._space.least) is None:
                    return True
        finally:
            self._waiting -= 1
        return True

    def _left(self, since: float) -> float:
        return float("inf") if self._longest is None else since + self._longest - time.monotonic()


def _in_mb(count: int) -> str:
    return f"{count / _MEGABYTE:,.0f} MB"

"""File locks, by which the processes that share a data directory know of each other.

A lock ends with its last holder, however that one ends. What is locked is never deleted.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tamias.model.errors import DataInUse


def opened(path: Path) -> IO[bytes]:
    """The lock's file, made if need be."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0)


def shared(path: Path) -> IO[bytes]:
    """Held together with others until closed; waits while somebody holds it alone."""
    handle = opened(path)
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


@contextmanager
def alone(path: Path, seconds: float) -> Iterator[IO[bytes]]:
    """Held by nobody else, and afterwards still by the children that were given the descriptor."""
    deadline = time.monotonic() + seconds
    with opened(path) as handle:
        while not try_alone(handle):
            if time.monotonic() > deadline:
                raise DataInUse(
                    f"{path.parent} is held by a process that does not end; 'fuser {path}' shows which"
                )
            time.sleep(0.02)
        yield handle


def try_alone(handle: IO[bytes]) -> bool:
    """Return whether the lock could be had alone at this moment; if so, it is held."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_free(path: Path) -> bool:
    """Return whether nobody holds the lock."""
    with opened(path) as handle:
        return try_alone(handle)


def is_shared(path: Path) -> bool:
    """Return whether somebody holds the lock together with others: it cannot be had alone, but shared."""
    with opened(path) as handle:
        if try_alone(handle):
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

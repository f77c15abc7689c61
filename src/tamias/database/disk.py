"""Files that last, what a disk refuses, and the locks by which processes that share data know of each other.

A lock ends with its last holder, however that one ends. What is locked is never deleted.
"""

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tamias.model.errors import DatabaseError, DataInUse, DiskFull, TamiasError


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


_FULL = {errno.ENOSPC, errno.EDQUOT}
_FOLDERS = ("blobs", "rdf", "warc", "log", "spool", "catalogue", "walks", "workers", "pending-seeds")
_LEAST_ROOM = 16 << 20  # one segment of PostgreSQL's log of changes


def make_data_folder(data: Path) -> None:
    """Make a data directory that others cannot list; one that is there already stays as it is.

    Root's may be passed through, because the account that its server runs under may have to. So its folders
    are closed to others one by one, also those that an earlier version left open.
    """
    try:
        data.mkdir(parents=True, mode=0o711 if os.geteuid() == 0 else 0o700, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(data)) from None
    for folder in (data / name for name in _FOLDERS):
        with suppress(OSError):  # not there yet, or somebody else's
            if folder.stat().st_mode & 0o077:
                folder.chmod(0o700)


def private(path: str, flags: int) -> int:
    """An opener of files that others cannot read."""
    return os.open(path, flags, 0o600)


def write_all(file: int, content: bytes | memoryview) -> None:
    """Write all bytes, in as many steps as it takes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def write_hashed(pieces: Iterable[bytes], write: Callable[[bytes], object]) -> tuple[int, str]:
    """Write all pieces; return how many bytes they are, and their SHA-256."""
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        write(piece)
    return size, digest.hexdigest()


def sync_path(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def write_errors(place: object, kind: type[TamiasError] = TamiasError) -> Iterator[None]:
    """Raise errors of the system, while something is written, as `DiskFull` or as an error of a kind."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"no disk space left to write {place}; free some space and continue") from error
        raise kind(f"cannot write {place}: {error.strerror}") from error


@contextmanager
def refusals(place: Path) -> Iterator[None]:
    """Turn the system's errors into ours."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise no_room(place) from error
        raise DatabaseError(
            f"cannot keep the database at {place}: {error.strerror or error}; choose another --data"
        ) from error


def no_room(place: Path) -> DiskFull:
    """The error for a full disk."""
    return DiskFull(f"no disk space left for the database at {place}; free some space and try again")


def tells_of_no_room(output: str) -> bool:
    """Return whether a program's words are about a full disk."""
    return any(os.strerror(number) in output for number in _FULL)


def is_full(place: Path) -> bool:
    """Return whether a server could not work here: on a full disk even its log may be silent."""
    room = os.statvfs(place)
    return room.f_bavail * room.f_frsize < _LEAST_ROOM

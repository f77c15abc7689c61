"""Where a body goes while it arrives: memory first, a private file once it is large."""

import contextlib
import errno
import hashlib
import os
import tempfile
from typing import BinaryIO

from tamias.model.capture import Body
from tamias.model.errors import DiskFull

_BUFFER_BYTES = 256 * 1024
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class Spool:
    """One body. Ends with either `body` or `discard`; both leave no open file."""

    def __init__(self, folder: str, memory_bytes: int) -> None:
        self._folder = folder
        self._memory_bytes = memory_bytes
        self._chunks: list[bytes] = []
        self._size = 0
        self._file: BinaryIO | None = None
        self._path: str | None = None

    def write(self, chunk: bytes) -> None:
        """Adds a chunk. Raises `OSError` when the file cannot be written."""
        self._size += len(chunk)
        if self._file is not None:
            self._digest.update(chunk)
            self._file.write(chunk)
            return
        self._chunks.append(chunk)
        if self._size > self._memory_bytes:
            self._move_to_file()

    def _move_to_file(self) -> None:
        descriptor, self._path = tempfile.mkstemp(prefix="body-", dir=self._folder)
        self._file = os.fdopen(descriptor, "wb", _BUFFER_BYTES)
        start = b"".join(self._chunks)
        self._chunks.clear()
        self._digest = hashlib.sha256(start)
        self._file.write(start)

    def body(self) -> Body:
        """The finished body; its file now belongs to the caller. Raises `OSError` as `write` does."""
        if self._file is None:
            data = b"".join(self._chunks)
            return Body(size=self._size, sha256=hashlib.sha256(data).hexdigest(), data=data)
        self._file.close()
        path, self._path = self._path, None
        return Body(size=self._size, sha256=self._digest.hexdigest(), path=path)

    def discard(self) -> None:
        """Forgets the body and removes its file, unless `body` has handed it over."""
        self._chunks.clear()
        if self._file is not None:
            with contextlib.suppress(OSError):  # closing flushes, and the disk may be full
                self._file.close()
        if self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
            self._path = None


def disk_error(error: OSError, folder: str) -> Exception:
    """What to raise when a body cannot be written to its spool."""
    if error.errno in _NO_ROOM:
        return DiskFull(f"no room for a body in {folder} (spool_dir)")
    return error

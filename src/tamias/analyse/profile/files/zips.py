"""Opens zip archives whose directory is of bearable size; Python's own reader takes any into memory."""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tamias.analyse.profile.limits import MIB, LimitReached

MOST_DIRECTORY = 32 * MIB
FAULTS = (
    zipfile.BadZipFile,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""What a damaged archive makes Python's reader raise."""

_MEDIA_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,100}")


class _Bounded:
    """The file, as the reader of its directory sees it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek = file.seek
        self.tell = file.tell
        self.seekable = file.seekable
        self.close = file.close

    def read(self, size: int = -1) -> bytes:
        if size > MOST_DIRECTORY:
            raise LimitReached(f"a zip directory of more than {MOST_DIRECTORY} bytes, not read")
        return self._file.read(size)


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """An archive; raises `LimitReached`, or one of `FAULTS`."""
    with path.open("rb") as file, zipfile.ZipFile(_Bounded(file)) as archive:
        yield archive


def spoken_type(archive: zipfile.ZipFile) -> str | None:
    """The media type that an archive gives itself in a member called `mimetype`, as OpenDocument has it."""
    if "mimetype" not in archive.namelist() or archive.getinfo("mimetype").file_size > 200:
        return None
    found = _MEDIA_TYPE.fullmatch(archive.read("mimetype").decode("ascii", "replace").strip())
    return found[0] if found else None

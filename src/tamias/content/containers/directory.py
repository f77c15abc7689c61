"""The members of a zip archive as its directory tells them: names, sizes and checksums, nothing unpacked."""

import contextlib
import zipfile
from pathlib import Path
from typing import BinaryIO

import msgspec

from tamias.content.canonical.faults import Unreadable

MAX_DIRECTORY = 32 << 20
_ENCRYPTED = 0x1
_RECORDS_OF_SAVING = frozenset({"docProps/core.xml", "docProps/app.xml", "meta.xml"})
"""Where office files keep who saved them and when."""


class Member(msgspec.Struct, frozen=True):
    """One file of an archive."""

    name: str
    crc: int
    size: int
    encrypted: bool

    @property
    def tells_of_saving(self) -> bool:
        """Whether it changes whenever an office file is saved."""
        return self.name in _RECORDS_OF_SAVING


def members(path: Path) -> list[Member]:
    """The members in the order of the directory, without folders. Raises `Unreadable`."""
    with path.open("rb") as file:
        try:
            return [_member(entry) for entry in _entries(file) if not entry.is_dir()]
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError, EOFError) as fault:
            raise Unreadable(f"no readable zip directory ({fault})") from fault


def _entries(file: BinaryIO) -> list[zipfile.ZipInfo]:
    guarded = _Guard(file)
    with contextlib.closing(zipfile.ZipFile(guarded)) as archive:
        return archive.infolist()


def _member(entry: zipfile.ZipInfo) -> Member:
    return Member(entry.filename, entry.CRC, entry.file_size, bool(entry.flag_bits & _ENCRYPTED))


class _Guard:
    """Stands between zipfile and the file, since zipfile reads a directory of any size into memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek = file.seek
        self.tell = file.tell
        self.seekable = file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > MAX_DIRECTORY:
            raise Unreadable(f"zip directory of more than {MAX_DIRECTORY} bytes")
        return self._file.read(size)

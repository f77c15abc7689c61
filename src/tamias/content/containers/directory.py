"""The members of a zip archive as its directory tells them: names, sizes and checksums, nothing unpacked."""

import zipfile
from collections.abc import Callable
from typing import BinaryIO

import msgspec

from tamias.content.canonical import Unreadable
from tamias.content.canonical.text import Source, open_source
from tamias.content.containers.limits import MAX_DIRECTORY
from tamias.model.document import LimitExceeded

_ENCRYPTED = 0x1
_FAULTS = (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError, EOFError, LimitExceeded)
_RECORDS_OF_SAVING = frozenset({"docProps/core.xml", "docProps/app.xml", "meta.xml"})
"""Where office files keep who saved them and when."""


class ZipEntry(msgspec.Struct, frozen=True):
    """One file of an archive."""

    name: str
    crc: int
    size: int
    encrypted: bool

    @property
    def tells_of_saving(self) -> bool:
        """Whether it changes whenever an office file is saved."""
        return self.name in _RECORDS_OF_SAVING


class _BoundedDirectory:
    """Stands between zipfile and the file, since zipfile reads a directory of any size into memory."""

    def __init__(self, file: BinaryIO, look: Callable[[bytes], None]) -> None:
        self._file = file
        self._look = look
        self.seek = file.seek
        self.tell = file.tell
        self.seekable = file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > MAX_DIRECTORY:
            raise LimitExceeded(f"zip directory of more than {MAX_DIRECTORY} bytes")
        data = self._file.read(size)
        self._look(data)
        return data


def bounded_zip(file: BinaryIO, look: Callable[[bytes], None] = lambda _data: None) -> zipfile.ZipFile:
    """The archive in a seekable file, to be closed. Raises `LimitExceeded`, or what `look` does.

    `look` sees the directory before it becomes objects.
    """
    return zipfile.ZipFile(_BoundedDirectory(file, look))


def members(source: Source) -> list[ZipEntry]:
    """The members in the order of the directory, without folders. Raises `Unreadable`."""
    with open_source(source) as file:
        try:
            return [_member(entry) for entry in _entries(file) if not entry.is_dir()]
        except _FAULTS as fault:
            raise Unreadable(f"no readable zip directory ({fault})") from fault


def _entries(file: BinaryIO) -> list[zipfile.ZipInfo]:
    with bounded_zip(file) as archive:
        return archive.infolist()


def _member(entry: zipfile.ZipInfo) -> ZipEntry:
    return ZipEntry(entry.filename, entry.CRC, entry.file_size, bool(entry.flag_bits & _ENCRYPTED))

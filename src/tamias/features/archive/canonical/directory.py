"""The members of an archive: names, sizes and checksums, nothing extracted and no link followed.

A zip archive tells them in its directory; a tar archive is read to its end.
"""

import tarfile
import zipfile
import zlib
from typing import BinaryIO

import msgspec

from tamias.content.containers.archives import bounded_zip
from tamias.content.containers.codecs import DamageError
from tamias.content.containers.limits import MAX_DIRECTORY, MAX_ENTRIES
from tamias.content.containers.tar import BLOCK, TarEntry, is_tar, tar_entries
from tamias.features.archive.canonical.text import CHUNK, Source, open_source, size_of
from tamias.model.document import LimitExceeded, Unreadable

_ENCRYPTED = 0x1
_FAULTS = (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError, EOFError, LimitExceeded)
_RECORDS_OF_SAVING = {"docProps/core.xml": None, "docProps/app.xml": None, "meta.xml": "content.xml"}
"""Where office files keep who saved them and when; `meta.xml` only beside the other, as in OpenDocument."""


_ZIP = b"PK"
MOST_TAR = 1 << 30
"""Bytes of a tar archive that is read for its checksums."""
_SPECIAL = {
    tarfile.SYMTYPE: "symbolic link to {link}",
    tarfile.LNKTYPE: "link to {link}, which is not in the archive",
    tarfile.CHRTYPE: "character device {device[0]}, {device[1]}",
    tarfile.BLKTYPE: "block device {device[0]}, {device[1]}",
    tarfile.FIFOTYPE: "named pipe",
}


class ArchiveEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A file of an archive."""

    name: str
    crc: int
    size: int
    encrypted: bool = False
    tells_of_saving: bool = False
    """Whether it changes whenever an office file is saved."""
    special: str | None = None
    """What it is, if it is no file: a link, a device. Of a link to a file of the archive, it is that file."""


def members(source: Source, most_bytes: int = MOST_TAR) -> list[ArchiveEntry]:
    """The members in their order, without folders; of a tar archive of at most so many bytes.

    Raises `Unreadable`.
    """
    with open_source(source) as file:
        head = file.read(BLOCK)
        file.seek(0)
        if not head.startswith(_ZIP) and is_tar(head):
            if size_of(source) > most_bytes:
                raise Unreadable(f"a tar archive of more than {most_bytes} bytes")
            return _of_tar(file)
        return _of_zip(file)


def _of_zip(file: BinaryIO) -> list[ArchiveEntry]:
    try:
        with bounded_zip(file) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    except _FAULTS as fault:
        raise Unreadable(f"no readable zip directory ({fault})") from fault
    names = {None, *(entry.filename for entry in entries)}
    saving = {name for name, beside in _RECORDS_OF_SAVING.items() if beside in names}
    return [_zip_entry(entry, saving) for entry in entries]


def _zip_entry(entry: zipfile.ZipInfo, saving: set[str]) -> ArchiveEntry:
    return ArchiveEntry(
        name=entry.filename,
        crc=entry.CRC,
        size=entry.file_size,
        encrypted=bool(entry.flag_bits & _ENCRYPTED),
        tells_of_saving=entry.filename in saving,
    )


def _of_tar(file: BinaryIO) -> list[ArchiveEntry]:
    found: list[ArchiveEntry] = []
    by_name: dict[str, ArchiveEntry] = {}
    names = 0
    try:
        for count, entry in enumerate(tar_entries(file), 1):
            names += len(entry.name) + len(entry.link)
            if count > MAX_ENTRIES or names > MAX_DIRECTORY:
                raise Unreadable(f"a tar archive of more than {MAX_ENTRIES} entries, or too long names")
            if entry.type != tarfile.DIRTYPE:
                found.append(_tar_entry(entry, by_name))
                by_name[found[-1].name] = found[-1]
        if any(chunk.strip(b"\0") for chunk in iter(lambda: file.read(CHUNK), b"")):
            raise Unreadable("the tar archive ends, and something else comes after its end")
    except DamageError as fault:
        raise Unreadable(str(fault)) from fault
    return found


def _tar_entry(entry: TarEntry, before: dict[str, ArchiveEntry]) -> ArchiveEntry:
    name = _tar_name(entry.name)
    if entry.is_sparse:
        raise Unreadable(f"{name[:200]} is a sparse file, of which tar archives hold only pieces")
    crc, size = 0, 0
    for chunk in entry.chunks():
        crc, size = zlib.crc32(chunk, crc), size + len(chunk)
    if entry.is_file:
        return ArchiveEntry(name=name, crc=crc, size=size)
    target = before.get(_tar_name(entry.link)) if entry.type == tarfile.LNKTYPE else None
    if target is not None:
        return msgspec.structs.replace(target, name=name)
    words = {"link": _tar_name(entry.link), "device": entry.device, "type": entry.type}
    special = _SPECIAL.get(entry.type, "entry of the type {type}").format(**words)
    return ArchiveEntry(name=name, crc=crc, size=size, special=special)


def _tar_name(name: str) -> str:
    """Return a name without a meaningless beginning, in characters that can be written."""
    return name.removeprefix("./").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

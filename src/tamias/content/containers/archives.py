"""Members of zip and tar archives, read one after the other and never extracted by name."""

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

import msgspec

from tamias.content.containers.codecs import CODECS, ByteSource, DamageError, deflate_frame, stored_chunks
from tamias.content.containers.limits import MAX_DIRECTORY, Meter
from tamias.content.containers.streams import Section
from tamias.content.containers.tar import tar_entries
from tamias.content.formats import BZIP2, ZSTD
from tamias.model.document import LimitExceeded

MAX_NAME = 1000
ENTRY = b"PK\x01\x02"
LOCAL_HEADER = struct.Struct("<4s22xHH")
ENCRYPTED = 0x1
ZIP_CODECS = {12: BZIP2, 93: ZSTD}


class Member(msgspec.Struct, frozen=True):
    """A file of an archive: its content, or the reason why it is not read."""

    name: str
    chunks: Iterable[bytes] = ()
    skipped: str | None = None
    packed: bool = True
    """Whether the chunks are more bytes than were read for them."""


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


def zip_members(file: BinaryIO, meter: Meter, max_memory: int) -> Iterator[Member]:
    """The members of a zip archive in a seekable file. `DamageError`: no usable directory."""
    for entry in _zip_entries(file, meter):
        if entry.filename.endswith("/"):  # `is_dir` does not take an empty name
            continue
        meter.member()
        name = entry.filename[:MAX_NAME]
        if entry.flag_bits & ENCRYPTED:
            yield Member(name, skipped="encrypted")
        elif entry.compress_type not in (0, 8, *ZIP_CODECS):
            yield Member(name, skipped=f"compressed by zip method {entry.compress_type}, which is not read")
        else:
            yield Member(name, _zip_content(file, entry, max_memory))


def _zip_entries(file: BinaryIO, meter: Meter) -> list[zipfile.ZipInfo]:
    try:
        with bounded_zip(file, lambda data: meter.check_members(data.count(ENTRY))) as archive:
            entries, end = archive.infolist(), archive.start_dir
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        ValueError,
        OverflowError,
        OSError,
        struct.error,
    ) as error:
        raise DamageError(f"zip directory cannot be read: {error}") from None
    _refuse_overlap(entries, end)
    return entries


def _refuse_overlap(entries: list[zipfile.ZipInfo], directory: int) -> None:
    """Entries that share bytes are how a small zip unpacks to a thousand times what it should."""
    free = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < free:
            raise DamageError(f"zip member {entry.filename[:MAX_NAME]!r} overlaps another: archive refused")
        free = entry.header_offset + 30 + len(entry.orig_filename) + entry.compress_size
    if free > directory:
        raise DamageError("zip member overlaps the directory: archive refused")


def _zip_content(file: BinaryIO, entry: zipfile.ZipInfo, max_memory: int) -> Iterator[bytes]:
    file.seek(entry.header_offset)
    header = file.read(LOCAL_HEADER.size)
    if len(header) < LOCAL_HEADER.size or not header.startswith(b"PK\x03\x04"):
        raise DamageError("zip member is not where the directory says")
    _, name_size, extra_size = LOCAL_HEADER.unpack(header)
    file.seek(name_size + extra_size, 1)
    checksum = 0
    for chunk in _zip_decoded(Section(file, entry.compress_size), entry.compress_type, max_memory):
        checksum = zlib.crc32(chunk, checksum)
        yield chunk
    if checksum != entry.CRC:
        raise DamageError("zip member does not match its checksum")


def _zip_decoded(packed: ByteSource, method: int, max_memory: int) -> Iterator[bytes]:
    if method == 0:
        return stored_chunks(packed)
    if method == 8:
        return _deflated(packed)
    return CODECS[ZIP_CODECS[method]](packed, max_memory)


def _deflated(packed: ByteSource) -> Iterator[bytes]:
    try:
        yield from deflate_frame(b"", packed, -zlib.MAX_WBITS)
    except (EOFError, zlib.error) as error:
        raise DamageError(f"zip member is damaged: {error}") from None


def tar_members(stream: BinaryIO, meter: Meter) -> Iterator[Member]:
    """The regular files of a tar archive, read forward; links, devices and directories are passed over."""
    for entry in tar_entries(stream):
        if entry.is_file:
            meter.member()
            yield Member(entry.name[:MAX_NAME], entry.chunks(), packed=False)

"""Members of zip and tar archives, read one after the other and never extracted by name."""

import contextlib
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import msgspec

from tamias.content.containers.codecs import CODECS, ByteSource, DamageError, deflate_frame, stored_chunks
from tamias.content.containers.directory import bounded_zip
from tamias.content.containers.limits import MIB, Meter
from tamias.content.containers.streams import Section
from tamias.content.formats import BZIP2, ZSTD

MAX_TAR_NAMES = MIB
MAX_NAME = 1000
BLOCK = 512
ENTRY = b"PK\x01\x02"
LOCAL_HEADER = struct.Struct("<4s22xHH")
ENCRYPTED = 0x1
ZIP_CODECS = {12: BZIP2, 93: ZSTD}


class Member(msgspec.Struct, frozen=True):
    """One file of an archive: its content, or the reason why it is not read."""

    name: str
    chunks: Iterable[bytes] = ()
    skipped: str | None = None
    packed: bool = True
    """Whether the chunks are more bytes than were read for them."""


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
    """The regular files of a tar archive, read forward; links, devices and directories are passed over.

    The headers are walked here because tarfile reads an extended header of any size into memory.
    """
    long_name = None
    while header := _tar_header(stream):
        size = header.size if header.type not in (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE) else 0
        content = Section(stream, size)
        if header.type in (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE):
            long_name = _tar_long_name(header.type, content) or long_name
        elif header.isreg() and header.type != tarfile.GNUTYPE_SPARSE:
            meter.member()
            yield Member((long_name or header.name)[:MAX_NAME], _tar_content(content), packed=False)
        if header.type not in (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGLINK):
            long_name = None
        _pass_over(stream, content.left + -size % BLOCK)


def _tar_header(stream: BinaryIO) -> tarfile.TarInfo | None:
    block = stream.read(BLOCK)
    if not block.strip(b"\0"):
        return None
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError as error:
        raise DamageError(f"tar header is damaged: {error}") from None


def _tar_content(content: Section) -> Iterator[bytes]:
    yield from stored_chunks(content)
    if content.left:
        raise DamageError("tar archive ends early")


def _tar_long_name(kind: bytes, content: Section) -> str | None:
    if content.left > MAX_TAR_NAMES:
        raise DamageError(f"tar header of more than {MAX_TAR_NAMES} bytes")
    text = b"".join(stored_chunks(content))
    if kind == tarfile.GNUTYPE_LONGNAME:
        return text.rstrip(b"\0").decode("utf-8", "replace")
    return _pax_path(text.split(b"\n"))


def _pax_path(records: Iterable[bytes]) -> str | None:
    for record in records:
        key, _, value = record.partition(b" ")[2].partition(b"=")
        if key == b"path":
            return value.decode("utf-8", "replace")
    return None


def _pass_over(stream: BinaryIO, count: int) -> None:
    if stream.seekable():
        stream.seek(count, 1)
        return
    with contextlib.suppress(DamageError):
        for _ in stored_chunks(Section(stream, count)):
            pass

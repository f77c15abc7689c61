"""Members of zip, tar and 7z archives, read one after the other and never extracted by name.

Of 7z archives py7zr reads the directory and builds the decoders.
"""

import contextlib
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from tamias.content.containers.codecs import (
    CHUNK,
    CODECS,
    ByteSource,
    DamageError,
    Section,
    deflate_frame,
    stored_chunks,
)
from tamias.content.containers.limits import MAX_DIRECTORY, MAX_ENTRIES, Meter
from tamias.content.containers.tar import tar_entries
from tamias.content.formats import BZIP2, ZSTD
from tamias.model.document import LimitExceeded

if TYPE_CHECKING:
    from py7zr import SevenZipFile

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


FEED = 1 << 14
"""Packed bytes at once, since some of its decoders have no bound on what they make of them."""

_COPY, _DELTA, _X86, _LZMA2 = b"\x00", b"\x03", (b"\x04", b"\x03\x03\x01\x03"), b"\x21"
_LZMA, _PPMD, _BZIP2, _DEFLATE = b"\x03\x01\x01", b"\x03\x04\x01", b"\x04\x02\x02", b"\x04\x01\x08"
_METHODS = {_COPY, _DELTA, *_X86, _LZMA2, _LZMA, _PPMD, _BZIP2, _DEFLATE}
_AES = b"\x06\xf1\x07\x01"
_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    zlib.error,
)
"""What py7zr lets through, beside its own, when an archive is damaged."""


def sevenzip_members(file: BinaryIO, meter: Meter, max_memory: int) -> Iterator[Member]:
    """The files of a 7z archive in a seekable file; directories, links and devices are passed over."""
    try:
        yield from _members(file, meter, max_memory)
    except (DamageError, LimitExceeded):
        raise
    except _faults() as error:  # py7zr takes a directory for read in which half is missing
        raise DamageError(f"7z directory is invalid: {error or type(error).__name__}") from None


def _members(file: BinaryIO, meter: Meter, max_memory: int) -> Iterator[Member]:
    archive = _opened(file)
    meter.check_members(len(archive.files))
    places, stream = _places(archive), None
    for entry in archive.files:
        if not entry.emptystream and (stream is None or stream.folder is not entry.folder):
            stream = _Folder(file, entry.folder, *places[id(entry.folder)], meter, max_memory)
        if entry.is_directory or entry.is_symlink or entry.is_junction or entry.is_socket:
            if stream and not entry.emptystream and not stream.refusal:
                _pass_over(stream.content(entry.uncompressed, None))
            continue
        meter.member()
        name = entry.filename[:MAX_NAME]
        if entry.emptystream or stream is None:
            yield Member(name)
        elif stream.refusal:
            yield Member(name, skipped=stream.refusal)
        else:
            content = stream.content(entry.uncompressed, entry.crc32)
            yield Member(name, content, packed=False)
            _pass_over(content)


class _Folder:
    """A folder of files that were packed together and come out one after the other."""

    def __init__(
        self, file: BinaryIO, folder: Any, start: int, size: int, meter: Meter, max_memory: int
    ) -> None:
        self.folder = folder
        self.refusal = _refusal(folder, max_memory)
        self._file = file
        self._meter = meter
        if self.refusal is None:
            self._begin(start, size)

    def _begin(self, start: int, size: int) -> None:
        from py7zr.compressor import SevenZipDecompressor

        coders, sizes, crc = self.folder.coders, self.folder.unpacksizes, self.folder.crc
        try:
            self._decoder = SevenZipDecompressor(coders, size, sizes, crc, blocksize=FEED)
            self._file.seek(start)
        except _faults() as error:
            self.refusal = f"cannot be decoded ({error or type(error).__name__})"

    def content(self, size: int, checksum: int | None) -> Iterator[bytes]:
        """The next file. Counts what it unpacks, read or passed over, in the meter."""
        found = 0
        while size > 0:
            chunk = self._chunk(min(size, CHUNK))
            size -= len(chunk)
            found = zlib.crc32(chunk, found)
            yield chunk
        if checksum is not None and found != checksum:
            raise DamageError("7z member does not match its checksum")

    def _chunk(self, size: int) -> bytes:
        before = self._file.tell()
        try:
            chunk = bytes(self._decoder.decompress(self._file, size))
        except _faults() as error:
            self.refusal = "behind damaged data"
            raise DamageError(f"7z data is damaged: {error or type(error).__name__}") from None
        if not chunk and self._file.tell() == before:
            self.refusal = "behind damaged data"
            raise DamageError("7z data is damaged: ends early")
        self._meter.unpacked(len(chunk))
        return chunk


def _opened(file: BinaryIO) -> "SevenZipFile":
    from py7zr.exceptions import PasswordRequired

    file.seek(0)
    try:
        return bounded_sevenzip(file)
    except PasswordRequired:
        raise DamageError("7z directory is encrypted") from None
    except _faults() as error:
        raise DamageError(f"7z directory cannot be read: {error or type(error).__name__}") from None


def bounded_sevenzip(file: BinaryIO) -> "SevenZipFile":
    """The archive in a seekable file, whatever py7zr makes of it; its directory is bounded."""
    import py7zr
    from py7zr import archiveinfo

    # py7zr's own bounds, drawn tighter: with them a directory takes 4 GB of memory.
    archiveinfo.MAX_HEADER_SIZE = MAX_DIRECTORY
    archiveinfo.MAX_NUMFILES = archiveinfo.MAX_SUBSTREAMS = MAX_ENTRIES
    archiveinfo.MAX_NUMFOLDERS = archiveinfo.MAX_NUMSTREAMS
    return py7zr.SevenZipFile(file)


def _faults() -> tuple[type[Exception], ...]:
    from py7zr.exceptions import ArchiveError

    return (ArchiveError, *_FAULTS)


def _places(archive: "SevenZipFile") -> dict[int, tuple[int, int]]:
    """Return start and size of the packed data of each folder, by the folder's identity."""
    streams = getattr(archive.header, "main_streams", None)
    places: dict[int, tuple[int, int]] = {}
    if streams is None:
        return places
    info, stream = streams.packinfo, 0
    for folder in streams.unpackinfo.folders:
        if stream >= len(info.packsizes):
            raise DamageError("7z directory names packed data that is not there")
        start = archive.afterheader + info.packpos + info.packpositions[stream]
        places[id(folder)] = start, info.packsizes[stream]
        stream += max(1, len(folder.packed_indices))
    return places


def _refusal(folder: Any, max_memory: int) -> str | None:
    methods = [coder["method"] for coder in folder.coders]
    if _AES in methods:
        return "encrypted"
    if unknown := next((method for method in methods if method not in _METHODS), None):
        return f"compressed by 7z method {unknown.hex()}, which is not read"
    if max(map(_memory, folder.coders)) > max_memory:
        return f"asks for more than {max_memory} bytes of memory (limit open.max_memory)"
    return None


def _memory(coder: dict[str, Any]) -> int:
    """Return the memory that a decoder needs, by its properties."""
    method, properties = coder["method"], coder["properties"] or b""
    if method in (_LZMA, _PPMD):
        return int.from_bytes(properties[1:5], "little")
    if method == _LZMA2 and properties:
        return (2 | properties[0] & 1) << (properties[0] // 2 + 11)
    return 0


def _pass_over(content: Iterator[bytes]) -> None:
    with contextlib.suppress(DamageError):
        for _ in content:
            pass

"""The entries of a tar archive, read forward: nothing is extracted, and no link is followed.

The headers are walked here because tarfile reads an extended header of any size into memory.
"""

import contextlib
import tarfile
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from tamias.content.containers.codecs import DamageError, Section, stored_chunks
from tamias.content.containers.limits import MIB

MAX_TAR_NAMES = MIB
MAX_TAR_FILE = 1 << 40
"""Bytes of one file; what says more cannot even be passed over, for files on disk have no such places."""
BLOCK = 512
_NO_CONTENT = frozenset({tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE})
_EXTENDED = frozenset({tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE})
_GNU_NAMES = {tarfile.GNUTYPE_LONGNAME: "path", tarfile.GNUTYPE_LONGLINK: "linkpath"}
_SPARSE = "GNU.sparse."
_USED = frozenset({"path", "linkpath", "size"})
"""Keys of extended headers; others, of which there may be any number before an entry, are not kept."""


class TarEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry: a file, a link, a device or a directory."""

    name: str
    type: bytes
    """As tarfile names it."""
    link: str
    """What a link points to."""
    device: tuple[int, int]
    content: Section
    is_sparse: bool
    """Whether its content is a list of pieces with gaps between them, as GNU tar writes it."""

    @property
    def is_file(self) -> bool:
        """Return whether it is a file."""
        return self.type in tarfile.REGULAR_TYPES and self.type != tarfile.GNUTYPE_SPARSE

    def chunks(self) -> Iterator[bytes]:
        """The content. Raises `DamageError` where the archive ends before it does."""
        yield from stored_chunks(self.content)
        if self.content.left:
            raise DamageError("tar archive ends early")


def is_tar(head: bytes) -> bool:
    """Return whether a file begins with a header of tar, of any dialect."""
    try:
        tarfile.TarInfo.frombuf(head[:BLOCK], "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def tar_entries(stream: BinaryIO) -> Iterator[TarEntry]:
    """The entries in order, each to be read before the next is asked for. Raises `DamageError`."""
    extended: dict[str, str] = {}
    while header := _header(stream):
        size = 0 if header.type in _NO_CONTENT else _size(header, extended)
        content = Section(stream, size)
        if header.type in _EXTENDED:
            extended |= _extended(header.type, content)
        elif header.type != tarfile.XGLTYPE:
            yield _entry(header, extended, content)
            extended = {}
        _pass_over(stream, content.left + -size % BLOCK)


def _header(stream: BinaryIO) -> tarfile.TarInfo | None:
    block = stream.read(BLOCK)
    if not block.strip(b"\0"):
        return None
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError as error:
        raise DamageError(f"tar header is damaged: {error}") from None


def _size(header: tarfile.TarInfo, extended: dict[str, str]) -> int:
    size = header.size
    if header.type not in _EXTENDED and extended.get("size", "").isdecimal():
        size = int(extended["size"][:20])
    if not 0 <= size <= MAX_TAR_FILE:
        raise DamageError("tar header is damaged: a size that no file has")
    return size


def _entry(header: tarfile.TarInfo, extended: dict[str, str], content: Section) -> TarEntry:
    return TarEntry(
        name=extended.get("path") or header.name,
        type=header.type,
        link=extended.get("linkpath") or header.linkname,
        device=(header.devmajor, header.devminor),
        content=content,
        is_sparse=header.type == tarfile.GNUTYPE_SPARSE or _SPARSE in extended,
    )


def _extended(kind: bytes, content: Section) -> dict[str, str]:
    """Return what an extended header says of its entry."""
    if content.left > MAX_TAR_NAMES:
        raise DamageError(f"tar header of more than {MAX_TAR_NAMES} bytes")
    text = b"".join(stored_chunks(content))
    if kind in _GNU_NAMES:
        return {_GNU_NAMES[kind]: text.rstrip(b"\0").decode("utf-8", "replace")}
    return dict(_pax_records(text))


def _pax_records(text: bytes) -> Iterator[tuple[str, str]]:
    """Yield the used records `LENGTH KEY=VALUE`, up to the first bad one."""
    start = 0
    while start < len(text):
        length, _, _ = text[start : start + 20].partition(b" ")
        if not length.isdigit() or int(length) <= len(length) + 1:
            return
        name, _, value = text[start + len(length) + 1 : start + int(length) - 1].partition(b"=")
        key = name.decode("utf-8", "replace")
        if key in _USED:
            yield key, value.decode("utf-8", "replace")
        elif key.startswith(_SPARSE):
            yield _SPARSE, ""
        start += int(length)


def _pass_over(stream: BinaryIO, count: int) -> None:
    if stream.seekable():
        stream.seek(count, 1)
        return
    with contextlib.suppress(DamageError):
        for _ in stored_chunks(Section(stream, count)):
            pass

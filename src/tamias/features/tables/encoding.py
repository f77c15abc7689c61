"""Text brought to UTF-8 with plain line ends, in memory or in a copy."""

import codecs
import io
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tamias.content.charsets import Encoding, found_encoding
from tamias.features.tables.limits import KIB, MIB, ProfileRun, ScratchFolder

CHUNK = MIB
SMALL = 64 * KIB
"""Bytes of a file whose text stays in memory."""


class Utf8Text(msgspec.Struct, frozen=True, kw_only=True):
    """A file brought to UTF-8. A small one stays in memory until somebody asks for the file."""

    folder: ScratchFolder
    name: str
    """Of the file in the folder."""
    content: bytes | None
    """All of it, if it is small."""
    encoding: Encoding
    lines: int
    longest: int
    """Bytes of the longest line."""
    complete: bool
    """False where the file is longer than the limit; the last line is then left out."""

    def file(self) -> Path:
        """Return the path of the text, after writing a small one to it."""
        path = self.folder.path / self.name
        if self.content is not None:
            path.write_bytes(self.content)
        return path


def encoding_in(path: Path, declared: str | None, most: int) -> Encoding:
    """The encoding of the first `most` bytes of a file."""
    with path.open("rb") as file:
        return found_encoding(file, declared, most)


def as_utf8(path: Path, run: ProfileRun, name: str, declared: str | None) -> Utf8Text:
    """Copies a file as UTF-8 without mark or NULs, with plain line ends; may raise `ProfileLimit`."""
    size, most = path.stat().st_size, run.limits.bytes
    complete = size <= most
    if complete and size <= SMALL:
        return small_text(path.read_bytes(), declared, run.folder, name)
    encoding = encoding_in(path, declared, most)
    lines, longest, begun, last = 0, 0, 0, b""
    with (run.folder.path / name).open("wb") as copy:
        for chunk in _decoded(path, encoding, most):
            run.check()
            copy.write(chunk)
            pieces = chunk.split(b"\n")
            longest = max(longest, begun + len(pieces[0]), *map(len, pieces[1:-1]), 0)
            begun = len(pieces[-1]) + (begun if len(pieces) == 1 else 0)
            lines += len(pieces) - 1
            last = chunk or last
        if not complete:
            copy.truncate(copy.tell() - begun)
    unended = complete and bool(last) and not last.endswith(b"\n")
    return Utf8Text(
        folder=run.folder,
        name=name,
        content=None,
        encoding=encoding,
        lines=lines + unended,
        longest=max(longest, begun),
        complete=complete,
    )


def small_text(content: bytes, declared: str | None, folder: ScratchFolder, name: str) -> Utf8Text:
    """The same of a small file in memory."""
    encoding = found_encoding(io.BytesIO(content), declared)
    plain = _plain(content[encoding.mark :].decode(encoding.name, "backslashreplace"))
    lines = plain.split(b"\n")
    return Utf8Text(
        folder=folder,
        name=name,
        content=plain,
        encoding=encoding,
        lines=len(lines) - (not lines[-1]),
        longest=max(map(len, lines)),
        complete=True,
    )


def _decoded(path: Path, encoding: Encoding, most: int) -> Iterator[bytes]:
    """UTF-8 in chunks. A line end is one byte, so that a carriage return is never half of one."""
    decoder = codecs.getincrementaldecoder(encoding.name)("backslashreplace")
    held, left = "", most - encoding.mark
    with path.open("rb") as file:
        file.seek(encoding.mark)
        while left > 0 and (chunk := file.read(min(CHUNK, left))):
            left -= len(chunk)
            text = held + decoder.decode(chunk)
            held = "\r" if text.endswith("\r") else ""
            yield _plain(text[: len(text) - len(held)])
    yield _plain(held + decoder.decode(b"", final=True))


def _plain(text: str) -> bytes:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return text.encode("utf-8", "replace")

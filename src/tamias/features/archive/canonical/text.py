"""Text of whatever encoding: as UTF-8 piece by piece, or as lines."""

import codecs
import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

import msgspec

from tamias.content.charsets import found_encoding, marked_encoding
from tamias.content.containers.codecs import CODECS, HEAD, DamageError
from tamias.content.containers.tar import is_tar
from tamias.content.formats import CSV, GZIP, PLAIN, TAR
from tamias.content.sniff import found_type, signed_type
from tamias.model.document import Unreadable

CHUNK = 1 << 20
MOST_MEMORY = 128 << 20
"""Of a decoder; what xz -9 and zstd --ultra have written needs as much."""

LONGEST_LINE = 8 * CHUNK

Source = Path | bytes
"""Where a content is: in a file, or at hand."""


def open_source(source: Source) -> BinaryIO:
    """The bytes from their beginning."""
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def size_of(source: Source) -> int:
    """Return the size in bytes."""
    return len(source) if isinstance(source, bytes) else source.stat().st_size


def marked_chunks(source: Source) -> Iterator[bytes]:
    """The text without its mark: UTF-16 and UTF-32 as UTF-8, what has no mark as it is."""
    with open_source(source) as file:
        encoding, length = marked_encoding(file.read(4))
        file.seek(length)
        raw = iter(lambda: file.read(CHUNK), b"")
        yield from raw if encoding in {None, "utf-8"} else _recoded(raw, str(encoding))


def _recoded(raw: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in raw:
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", final=True).encode()


class FoundText(msgspec.Struct, frozen=True):
    """A content that has been found to be text, and how it is written."""

    source: Source
    encoding: str
    mark: int = 0

    def opened(self) -> TextIO:
        """The text from its beginning, with line feeds only. What cannot be decoded is shown as `\\xNN`."""
        file = io.TextIOWrapper(
            open_source(self.source), encoding=self.encoding, errors="backslashreplace", newline=None
        )
        if self.mark:
            file.read(1)
        return file

    def sample(self, size: int) -> str:
        """The first lines, whole ones, of about so many characters."""
        with self.opened() as file:
            text = file.read(size)
        return text if len(text) < size else text[: text.rfind("\n") + 1]


def found_text(source: Source, most_bytes: int, content_type: str | None = None) -> FoundText:
    """Find the encoding of a text; `content_type` may declare a charset. Raises `Unreadable`."""
    size = size_of(source)
    if size > most_bytes:
        raise Unreadable(f"{size} bytes, more than the {most_bytes} that are read")
    with open_source(source) as file:
        found = found_encoding(file, content_type)
        if not found.name.startswith(("utf-16", "utf-32")):
            file.seek(0)
            _check_lines(file)
    return FoundText(source, found.name, found.mark)


def _check_lines(file: BinaryIO) -> None:
    """Raises `Unreadable` for what no text has."""
    unbroken = 0
    while chunk := file.read(CHUNK):
        unbroken = 0 if b"\n" in chunk or b"\r" in chunk else unbroken + len(chunk)
        if b"\0" in chunk:
            raise Unreadable("not text: it has zero bytes")
        if unbroken > LONGEST_LINE:
            raise Unreadable(f"a line of more than {LONGEST_LINE} bytes")


def unpack(source: Source, target: Path, most_bytes: int) -> None:
    """Unpacks a compressed file. Raises `Unreadable`."""
    size = 0
    with open_source(source) as raw, target.open("wb") as file:
        codec = CODECS.get(signed_type(raw.read(HEAD), ()) or GZIP, CODECS[GZIP])
        raw.seek(0)
        try:
            for chunk in codec(raw, MOST_MEMORY):
                size += len(chunk)
                if size > most_bytes:
                    raise Unreadable(f"unpacks to more than {most_bytes} bytes")
                file.write(chunk)
        except DamageError as fault:
            raise Unreadable(str(fault)) from fault


def looked_at(source: Source) -> str | None:
    """Return the media type that a file seems to have; any text as CSV. None for what is not text."""
    head = next(marked_chunks(source), b"")[:HEAD]
    found = TAR if b"\0" in head and is_tar(head) else found_type(head, None, "")
    return CSV if found == PLAIN else None if found == "application/octet-stream" else found

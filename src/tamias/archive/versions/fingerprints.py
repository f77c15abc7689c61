"""The fingerprint of a content: the same for bodies that differ in bytes only, such as in order or times."""

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from tamias.content.canonical import Unreadable
from tamias.content.canonical.blank_nodes import canonical_lines
from tamias.content.canonical.canonical_json import canonical, canonical_pieces, value_of
from tamias.content.canonical.statements import statement_lines
from tamias.content.canonical.text import CHUNK, marked_chunks, plain_line_ends
from tamias.content.containers.directory import members
from tamias.content.formats import Form, bare_type, form_of

MOST_BYTES = 64 << 20
STREAMED = 16
"""What need not be held in memory may be this many times larger."""


def fingerprint(path: Path, media_type: str | None, *, most_bytes: int = MOST_BYTES) -> str | None:
    """The digest of what a file says; None when its type has no such digest, or it is broken or too large.

    Tables: the rows in any order. RDF: the statements. JSON: the value. Zip and office files: names, sizes
    and checksums of the members. Gzip: what is packed.
    """
    form = form_of(media_type)
    if form not in _DIGESTS:
        return None
    try:
        content = _DIGESTS[form](path, media_type, most_bytes)
    except (Unreadable, RecursionError):
        return None
    return sha256(form.value.encode() + b"\0" + content).hexdigest()


def _of_rows(path: Path, _media_type: str | None, most_bytes: int) -> bytes:
    rows = _Rows()
    for chunk in plain_line_ends(_bounded(marked_chunks(path), STREAMED * most_bytes)):
        rows.read(chunk)
    return rows.digest()


class _Rows:
    """A multiset of rows, kept as the sum of their digests. A row goes on over line ends inside quotes."""

    def __init__(self) -> None:
        self._sum = 0
        self._count = 0
        self._row = sha256()
        self._quoted = False
        self._begun = False

    def read(self, text: bytes) -> None:
        first, *others = text.split(b"\n")
        self._go_on(first)
        for line in others:
            self._end_line()
            self._go_on(line)

    def _go_on(self, piece: bytes) -> None:
        if piece:
            self._row.update(piece)
            self._begun = True
            self._quoted ^= bool(piece.count(b'"') & 1)

    def _end_line(self) -> None:
        if self._quoted:
            self._row.update(b"\n")
        elif self._begun:
            self._end_row()

    def _end_row(self) -> None:
        self._sum += int.from_bytes(self._row.digest(), "big")
        self._count += 1
        self._row = sha256()
        self._begun = False

    def digest(self) -> bytes:
        if self._begun:
            self._end_row()
        return b"%d %d" % (self._count, self._sum)


def _of_json_lines(path: Path, _media_type: str | None, most_bytes: int) -> bytes:
    """The values in any order, as rows are."""
    total = count = 0
    with path.open("rb") as file:
        while line := file.readline(most_bytes + 1):
            if len(line) > most_bytes or file.tell() > STREAMED * most_bytes:
                raise Unreadable(f"more than {most_bytes} bytes in a line, or {STREAMED} times that in all")
            if text := line.removeprefix(b"\xef\xbb\xbf").strip():
                total += int.from_bytes(sha256(canonical(value_of(text))).digest(), "big")
                count += 1
    return b"%d %d" % (count, total)


def _of_json(path: Path, _media_type: str | None, most_bytes: int) -> bytes:
    text = b"".join(_bounded(marked_chunks(path), most_bytes)).strip()
    return _digest(canonical_pieces(text))


def _of_statements(path: Path, media_type: str | None, most_bytes: int) -> bytes:
    try:
        lines = statement_lines(path, media_type or "", most_bytes)
    except Unreadable:
        if not bare_type(media_type).endswith("json"):
            raise
        return _of_json(path, media_type, most_bytes)  # its context may be elsewhere
    return _digest(line + b"\n" for line in canonical_lines(lines))


def _of_members(path: Path, _media_type: str | None, _most_bytes: int) -> bytes:
    found = members(path)
    if any(member.encrypted for member in found):
        raise Unreadable("encrypted members have no checksum that can be relied on")
    told = sorted((each.name, each.crc, each.size) for each in found if not each.tells_of_saving)
    return _digest(repr(each).encode() for each in told)


def _of_gzip(path: Path, _media_type: str | None, most_bytes: int) -> bytes:
    with gzip.open(path, "rb") as file:
        try:
            return _digest(_bounded(iter(lambda: file.read(CHUNK), b""), STREAMED * most_bytes))
        except (OSError, EOFError, zlib.error) as fault:
            raise Unreadable(f"not gzip: {fault}") from fault


def _bounded(chunks: Iterator[bytes], most_bytes: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most_bytes:
            raise Unreadable(f"more than {most_bytes} bytes")
        yield chunk


def _digest(pieces: Iterable[bytes]) -> bytes:
    whole = sha256()
    for piece in pieces:
        whole.update(piece)
    return whole.digest()


_DIGESTS: dict[Form, Callable[[Path, str | None, int], bytes]] = {
    Form.ROWS: _of_rows,
    Form.STATEMENTS: _of_statements,
    Form.JSON: _of_json,
    Form.JSON_LINES: _of_json_lines,
    Form.MEMBERS: _of_members,
    Form.GZIP: _of_gzip,
}

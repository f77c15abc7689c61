"""Digest of the content of a file apart from its bytes, and the difference of two files of equal content.

The digest decides both whether a new version is noise and whether a diff is empty, so that the two agree.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from tamias.content.blank_nodes import canonical_lines
from tamias.content.formats import TAR, Form, bare_type, form_of
from tamias.features.archive.canonical.canonical_json import canonical, value_of
from tamias.features.archive.canonical.directory import members
from tamias.features.archive.canonical.json_digest import Regard, json_digest, json_text
from tamias.features.archive.canonical.statements import statement_lines
from tamias.features.archive.canonical.tables import FileTable, Row, found_table
from tamias.features.archive.canonical.text import (
    CHUNK,
    FoundText,
    Source,
    found_text,
    looked_at,
    marked_chunks,
    open_source,
    size_of,
    unpack,
)
from tamias.features.archive.canonical.workbooks import beside_cells, opened_workbook
from tamias.model.document import Unreadable

MOST_BYTES = 64 << 20
STREAMED = 16
"""What need not be held in memory may be this many times larger."""
LARGE_JSON = 4
"""JSON, which takes longer to read, may be this many times larger; a value in it may not."""
_RARELY = 20
"""A cell that one row in so many lacks is missing there; more often, it is left out on purpose."""
_UNKNOWN = frozenset({"", "application/octet-stream"})

SCHEME = "07"
"""The rules by which contents were compared when a fingerprint was made; earlier ones have no such mark."""
_LENGTH = len(SCHEME) + 64


class ContentDigest(msgspec.Struct, frozen=True):
    """The digest of a file's content: equal for two files if and only if their contents are equal."""

    form: Form
    digest: bytes
    items: int | None
    """How much it says: rows, statements, items of JSON, files; None where not read as its type says."""


def fingerprint_of(content: ContentDigest | None) -> str | None:
    """Return the fingerprint as it is stored; None when only bytes can be compared."""
    return None if content is None else SCHEME + content.digest.hex()


def is_comparable(fingerprint: str | None) -> bool:
    """Return whether a stored fingerprint was made by the present rules."""
    return fingerprint is not None and len(fingerprint) == _LENGTH and fingerprint.startswith(SCHEME)


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A content, and what it is said to be."""

    source: Source
    media_type: str | None
    """Of text with the charset that is declared (`type_with_charset`)."""
    base: str | None = None
    """Resolves the relative IRIs of RDF."""
    most_bytes: int = MOST_BYTES
    unpacked_bytes: int = 4 * MOST_BYTES


def type_to_compare(source: Source, media_type: str | None) -> str | None:
    """Return the declared type, or the one that the content seems to have where none is declared."""
    return looked_at(source) if bare_type(media_type) in _UNKNOWN else media_type


def ways(media_type: str | None) -> list[Form]:
    """The forms in which a type is compared, the best first; the next where a content is not of that form."""
    form = form_of(media_type)
    if form is Form.STATEMENTS:
        return [form, *([Form.JSON] if bare_type(media_type).endswith("json") else []), Form.TEXT]
    if form in (Form.JSON, Form.JSON_LINES, Form.ROWS):
        return [form, Form.TEXT]
    if form is Form.SHEETS:
        return [form, Form.MEMBERS]
    return [] if form is Form.BYTES else [form]


def content_digest(stored: Stored) -> ContentDigest | None:
    """The digest in the first form in which the content can be read; None where only its bytes can."""
    media_type = type_to_compare(stored.source, stored.media_type)
    for form in (forms := ways(media_type)):
        try:
            content, items = _DIGESTS[form](msgspec.structs.replace(stored, media_type=media_type))
        except (Unreadable, RecursionError):
            continue
        digest = sha256(form.value.encode() + b"\0" + content).digest()
        return ContentDigest(form, digest, items if form is forms[0] else None)
    return None


class _Multiset:
    """Texts in any order, kept as the sum of their digests."""

    def __init__(self) -> None:
        self._sum = 0
        self.count = 0

    def add(self, text: bytes) -> None:
        self._sum += int.from_bytes(sha256(text).digest(), "big")
        self.count += 1

    def remove(self, text: bytes) -> None:
        """Remove a text that was added before."""
        self._sum -= int.from_bytes(sha256(text).digest(), "big")
        self.count -= 1

    def plus(self, other: "_Multiset") -> "_Multiset":
        """The texts of both."""
        both = _Multiset()
        both._sum, both.count = self._sum + other._sum, self.count + other.count
        return both

    def digest(self) -> bytes:
        return b"%d %d" % (self.count, self._sum)


def text_of(stored: Stored, most_bytes: int) -> FoundText:
    """The text in a content. Raises `Unreadable`."""
    return found_text(stored.source, most_bytes, stored.media_type)


def table_of(stored: Stored, most_bytes: int | None = None) -> FileTable:
    """The table in a content. Raises `Unreadable`."""
    return found_table(
        stored.source, most_bytes or STREAMED * stored.most_bytes, content_type=stored.media_type
    )


def _of_rows(stored: Stored) -> tuple[bytes, int]:
    table = table_of(stored)
    try:
        found = _rows_of(table)
    except Unreadable:
        found = _rows_of(table.without_quotes())
    return found.digest(), max(0, found.count - table.rows_above)


class _RowGroup:
    """A row and those below it that begin with more empty cells than it does, in any order."""

    def __init__(self, row: Row, empty: int) -> None:
        self.empty = empty
        self._row = row
        self._below = _Multiset()

    def add(self, group: "_RowGroup") -> None:
        self._below.add(group.packed())

    def packed(self) -> bytes:
        return _packed([self._row, self._below.digest()] if self._below.count else self._row)


class _Rows:
    """Rows in any order; in theirs in a list, and where titles stand between them.

    A row without a first cell belongs to the row above it: both may go elsewhere, but only together, with all
    that belong to that row. So it is within groups, where a row begins with more empty cells than the one
    above it. If hardly any row lacks the cell, it is only missing.
    """

    def __init__(self, table: FileTable) -> None:
        self._any_order = table.width > 1
        self._rows_above = table.rows_above
        self._list = sha256()
        self._alone = _Multiset()
        """Rows that are in no group."""
        self._members = _Multiset()
        """Rows that are in one, each by itself."""
        self._groups = _Multiset()
        self._open: list[_RowGroup] = []
        """The group that the last row is in, and those within it."""
        self._last: Row = ()
        self._lacking = 0

    def add(self, row: Row) -> None:
        text = _packed(row)
        self._list.update(text)
        if row and not row[0]:
            self._add_lacking(row, text)
            return
        if len(row) == 1 and self.count >= self._rows_above:
            self._any_order = False
        self._alone.add(text)
        if row:  # an empty one ends no group
            self._close(0)
            self._last = row

    def _add_lacking(self, row: Row, text: bytes) -> None:
        self._lacking += self.count >= self._rows_above
        if not self._open and self._last:
            above = _packed(self._last)
            self._alone.remove(above)
            self._members.add(above)
            self._open = [_RowGroup(self._last, 0)]
        self._members.add(text)
        empty = next(place for place, cell in enumerate(row) if cell)
        self._close(empty)
        self._open.append(_RowGroup(row, empty))

    def _close(self, empty: int) -> None:
        """Ends the groups that a row with so many empty cells is not in."""
        while self._open and self._open[-1].empty >= empty:
            group = self._open.pop()
            if self._open:
                self._open[-1].add(group)
            else:
                self._groups.add(group.packed())

    @property
    def count(self) -> int:
        return self._alone.count + self._members.count

    def digest(self) -> bytes:
        if not self._any_order:
            return b"in order " + self._list.digest()
        if self._lacking * _RARELY <= self.count - self._rows_above:
            return self._alone.plus(self._members).digest()
        self._close(0)
        return self._alone.plus(self._groups).digest()


def _rows_of(table: FileTable) -> _Rows:
    """Add up all rows with the header: a table without a header is the same in any order."""
    found = _Rows(table)
    for row in table.all_rows():
        found.add(_trimmed(row))
    return found


def _trimmed(row: Row) -> Row:
    """Return a row without the empty cells at its end."""
    end = len(row)
    while end and not row[end - 1]:
        end -= 1
    return row[:end]


_packed = msgspec.msgpack.Encoder().encode


def _of_sheets(stored: Stored) -> tuple[bytes, int]:
    with opened_workbook(stored.source) as sheets:
        found = {name: _rows_of(table) for name, table in sheets.items()}
        above = sum(table.rows_above for table in sheets.values())
    listed = sorted((name, rows.digest()) for name, rows in found.items())
    return _packed([listed, beside_cells(stored.source)]), max(
        0, sum(rows.count for rows in found.values()) - above
    )


def _of_json(stored: Stored, regard: Regard = Regard.CONTENT) -> tuple[bytes, int]:
    text = json_text(stored.source, stored.most_bytes, LARGE_JSON * stored.most_bytes)
    return json_digest(text, stored.most_bytes, regard)


def _of_json_lines(stored: Stored) -> tuple[bytes, int]:
    """The values in any order, as rows are."""
    found = _Multiset()
    for line in _json_lines(stored):
        found.add(canonical(value_of(line)))
    return found.digest(), found.count


def _json_lines(stored: Stored) -> Iterator[bytes]:
    held = b""
    for chunk in _bounded(marked_chunks(stored.source), STREAMED * stored.most_bytes):
        *lines, held = (held + chunk).split(b"\n")
        if len(held) > stored.most_bytes or any(len(line) > stored.most_bytes for line in lines):
            raise Unreadable(f"more than {stored.most_bytes} bytes in a line")
        yield from filter(None, map(bytes.strip, lines))
    if held := held.strip():
        yield held


def _of_statements(stored: Stored) -> tuple[bytes, int]:
    """Return the digest of the statements, of JSON also that of the value, which may have unmapped keys."""
    lines = _statements(stored)
    digest = _digest(line + b"\n" for line in canonical_lines(lines))
    if bare_type(stored.media_type).endswith("json"):
        digest += _of_json(stored)[0]
    return digest, len(lines)


def _statements(stored: Stored) -> set[bytes]:
    return statement_lines(stored.source, stored.media_type or "", stored.most_bytes, stored.base)


def _of_members(stored: Stored) -> tuple[bytes, int]:
    found = members(stored.source, STREAMED * stored.most_bytes)
    if any(member.encrypted for member in found):
        raise Unreadable("encrypted members have no checksum that can be relied on")
    named = {each.name: each for each in found if not each.tells_of_saving}  # unpacked, the last one stays
    listed = sorted(
        (each.name, each.crc, each.size, *filter(None, (each.special,))) for each in named.values()
    )
    return _digest(repr(each).encode() for each in listed), len(listed)


def _of_packed(stored: Stored) -> tuple[bytes, int | None]:
    """Return the digest of the packed file by its type; else that of its bytes."""
    with tempfile.TemporaryDirectory(prefix="tamias-") as folder:
        unpacked = unpacked_in(stored, Path(folder) / "content")
        found = content_digest(unpacked) if form_of(unpacked.media_type) is not Form.PACKED else None
        if found is not None:
            return found.form.value.encode() + found.digest, found.items
        return _file_digest(unpacked.source), 1


def unpacked_in(stored: Stored, target: Path) -> Stored:
    """Unpack a compressed file into another. Raises `Unreadable`."""
    unpack(stored.source, target, stored.unpacked_bytes)
    return msgspec.structs.replace(stored, source=target, media_type=looked_at(target))


def _of_text(stored: Stored) -> tuple[bytes, int]:
    """Lines, without regard to their ends and to the encoding."""
    whole, lines, last = sha256(), 0, "\n"
    with text_of(stored, STREAMED * stored.most_bytes).opened() as file:
        while text := file.read(CHUNK):
            whole.update(text.encode("utf-8", "surrogatepass"))
            lines += text.count("\n")
            last = text[-1]
    if last != "\n":
        whole.update(b"\n")
        lines += 1
    return whole.digest(), lines


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


def _file_digest(source: Source) -> bytes:
    with open_source(source) as file:
        return _digest(iter(lambda: file.read(CHUNK), b""))


_DIGESTS: dict[Form, Callable[[Stored], tuple[bytes, int | None]]] = {
    Form.ROWS: _of_rows,
    Form.STATEMENTS: _of_statements,
    Form.JSON: _of_json,
    Form.JSON_LINES: _of_json_lines,
    Form.SHEETS: _of_sheets,
    Form.MEMBERS: _of_members,
    Form.PACKED: _of_packed,
    Form.TEXT: _of_text,
}


class Noise(msgspec.Struct, frozen=True):
    """The reason why only the bytes differ."""

    form: Form
    reason: str


def noise_between(old: Stored, new: Stored) -> Noise | None:
    """Return the way in which two files of equal content differ; None where their contents differ.

    Both are read again, so this is for the few that seem to be the same.
    """
    was, now = content_digest(old), content_digest(new)
    if was is None or now is None or was.digest != now.digest:
        return None
    old = msgspec.structs.replace(old, media_type=type_to_compare(old.source, old.media_type))
    new = msgspec.structs.replace(new, media_type=type_to_compare(new.source, new.media_type))
    return Noise(was.form, _REASONS[was.form](old, new))


def _why_rows(old: Stored, new: Stored) -> str:
    was, now = table_of(old), table_of(new)
    reasons = _why_text_differs(was.text.encoding, now.text.encoding)
    if was.delimiter != now.delimiter and max(was.width, now.width) > 1:
        reasons.append(f"delimiter {_named(now.delimiter)} instead of {_named(was.delimiter)}")
    if _count(old, b'"') != _count(new, b'"'):
        reasons.append("other quotation marks")
    if _order_of(was) != _order_of(now):
        reasons.append("rows in another order")
    return _joined(reasons or _line_ends(old, new), "blank lines, or empty cells at the end of rows")


def _named(delimiter: str) -> str:
    return "tab" if delimiter == "\t" else delimiter


def _count(stored: Stored, sign: bytes) -> int:
    return sum(chunk.count(sign) for chunk in marked_chunks(stored.source))


def _order_of(table: FileTable) -> bytes:
    try:
        return _digest(_packed(_trimmed(row)) for row in table.all_rows())
    except Unreadable:
        return _order_of(table.without_quotes())


def _why_text_differs(was: str, now: str) -> list[str]:
    return [] if was == now else [f"encoding {now} instead of {was}"]


def _line_ends(old: Stored, new: Stored) -> list[str]:
    return ["other line ends"] if _count(old, b"\r") != _count(new, b"\r") else []


def _why_text(old: Stored, new: Stored) -> str:
    was, now = (text_of(each, size_of(each.source)) for each in (old, new))
    reasons = _why_text_differs(was.encoding, now.encoding)
    return _joined(reasons + _line_ends(old, new), "a byte order mark, or the end of the last line")


def _why_json(old: Stored, new: Stored) -> str:
    if _of_json(old, Regard.ALL_ORDER) == _of_json(new, Regard.ALL_ORDER):
        return "white space, or another spelling of numbers and characters"
    same_items = _of_json(old, Regard.ORDER_OF_ITEMS) == _of_json(new, Regard.ORDER_OF_ITEMS)
    return "keys in another order" if same_items else "items in another order"


def _why_json_lines(old: Stored, new: Stored) -> str:
    was, now = (_digest(canonical(value_of(line)) for line in _json_lines(each)) for each in (old, new))
    return "keys in another order, or other white space" if was == now else "lines in another order"


def _why_statements(old: Stored, new: Stored) -> str:
    if _statements(old) == _statements(new):
        return "statements in another order, or written differently"
    return "other labels of blank nodes"


def _why_members(_old: Stored, new: Stored) -> str:
    differing = "owners or order" if bare_type(new.media_type) == TAR else "order or compression"
    return f"packed again: times, {differing} of the files"


def _why_sheets(old: Stored, new: Stored) -> str:
    with opened_workbook(old.source) as was, opened_workbook(new.source) as now:
        reasons = ["sheets in another order"] if list(was) != list(now) else []
        if any(_order_of(was[name]) != _order_of(now[name]) for name in was):
            reasons.append("rows in another order")
    return _joined(["workbook saved again", *reasons], "")


def _why_packed(old: Stored, new: Stored) -> str:
    with tempfile.TemporaryDirectory(prefix="tamias-") as folder:
        was, now = (unpacked_in(each, Path(folder) / name) for each, name in ((old, "old"), (new, "new")))
        if _file_digest(was.source) == _file_digest(now.source):
            return "compressed again"
        inner = noise_between(was, now)
        return f"in the compressed file: {inner.reason}" if inner else "compressed again"


def _joined(reasons: list[str], otherwise: str) -> str:
    return ", ".join(reasons) or otherwise


_REASONS: dict[Form, Callable[[Stored, Stored], str]] = {
    Form.ROWS: _why_rows,
    Form.STATEMENTS: _why_statements,
    Form.JSON: _why_json,
    Form.JSON_LINES: _why_json_lines,
    Form.SHEETS: _why_sheets,
    Form.MEMBERS: _why_members,
    Form.PACKED: _why_packed,
    Form.TEXT: _why_text,
}

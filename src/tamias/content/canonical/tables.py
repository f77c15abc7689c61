"""Delimited text as a table: what divides its cells, what its columns are called, and its rows in turn."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

import msgspec

from tamias.content.canonical import Unreadable
from tamias.content.canonical.text import LONGEST_LINE, FoundText, Source, found_text

SAMPLE = 1 << 20
_JUDGED_ROWS = 200
_DELIMITERS = ",;\t|"
MAX_COLUMNS = 20_000

Row = Sequence[str]


class FileTable(msgspec.Struct, frozen=True):
    """A table in a file."""

    text: FoundText
    delimiter: str
    quoted: bool
    width: int
    above: tuple[tuple[str, ...], ...] = ()
    """Rows above the table, such as a title."""
    header: tuple[str, ...] | None = None

    def rows(self) -> Iterator[list[str]]:
        """The rows below the header, all of one width. Raises `Unreadable`."""
        for row in islice(self.all_rows(), self.rows_above, None):
            yield row if len(row) == self.width else self._fitted(row)

    @property
    def rows_above(self) -> int:
        """How many rows come before the first of the table: its header, and what is above that."""
        return len(self.above) + (self.header is not None)

    def all_rows(self) -> Iterator[list[str]]:
        """Every row as it is written, also above the table and in its header. Raises `Unreadable`."""
        with self.text.opened() as file:
            lines = csv.reader(file, delimiter=self.delimiter, quoting=_quoting(self.quoted))
            try:
                yield from filter(None, lines)  # a blank line is no row
            except csv.Error as fault:
                raise Unreadable(f"not a table: {fault} near line {lines.line_num}") from fault

    def _fitted(self, row: list[str]) -> list[str]:
        """Missing cells are empty; what is too much stays in the last cell."""
        missing = self.width - len(row)
        if missing >= 0:
            return row + [""] * missing
        return [*row[: self.width - 1], self.delimiter.join(row[self.width - 1 :])]

    def sample(self) -> list[list[str]]:
        """Some of its first rows."""
        return list(islice(self.rows(), max(20, min(10_000, SAMPLE // (8 * self.width)))))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in the file."""
        return not self.text.sample(SAMPLE).strip()

    def with_text(self, text: FoundText) -> "FileTable":
        """The same form of table, of another file."""
        return msgspec.structs.replace(self, text=text)

    def without_header(self) -> "FileTable":
        """The same table with its header as a row."""
        return msgspec.structs.replace(self, header=None)

    def without_quotes(self) -> "FileTable":
        """The same table with its quotation marks as parts of the cells."""
        return msgspec.structs.replace(self, quoted=False)

    @property
    def columns(self) -> list[str]:
        """A name for each column, no two alike."""
        names = self.header or [f"column {number}" for number in range(1, self.width + 1)]
        seen: Counter[str] = Counter()
        told: list[str] = []
        for position, name in enumerate(names, 1):
            plain = name.strip() or f"column {position}"
            seen[plain] += 1
            told.append(plain if seen[plain] == 1 else f"{plain} ({seen[plain]})")
        return told


csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))  # geometries are longer than its default


def found_table(
    source: Source, most_bytes: int, delimiter: str | None = None, charset: str | None = None
) -> FileTable:
    """The table in a file; the delimiter is found unless it is given. Raises `Unreadable`."""
    text = found_text(source, most_bytes, charset)
    sample = text.sample(SAMPLE)
    lines = sample.split("\n")
    signs = delimiter or "".join(filter(sample.__contains__, _DELIMITERS)) or _DELIMITERS[0]
    quotings = (True, False) if '"' in sample else (True,)
    dialects = [(sign, quoted) for sign in signs for quoted in quotings]
    found = [(sign, quoted, _read(lines, sign, quoted)) for sign, quoted in dialects]
    judged = [(*_judged(rows), sign, quoted, rows) for sign, quoted, rows in found]
    score, width, sign, quoted, rows = max(judged, key=lambda each: (each[0], each[3], each[1]))
    if score == 0 and any(lines):
        raise Unreadable("not a table")
    if width > MAX_COLUMNS:
        raise Unreadable(f"a table of {width} columns, more than {MAX_COLUMNS}")
    return _with_header(FileTable(text, sign, quoted, width), rows)


def _quoting(quoted: bool) -> Literal[0, 3]:
    return csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE


def _read(lines: Sequence[str], delimiter: str, quoted: bool) -> list[list[str]]:
    """The first rows; none if they cannot be read so."""
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter, quoting=_quoting(quoted))
    try:
        return list(islice(filter(None, reader), _JUDGED_ROWS))
    except csv.Error:
        return []


def _judged(rows: Sequence[Row]) -> tuple[float, int]:
    """How well rows agree on a width, and the width. More than one column is better than one."""
    if not rows:
        return 0.0, 1
    width, agreeing = Counter(map(len, rows)).most_common(1)[0]
    share = agreeing / len(rows)
    return (share if width > 1 else share / 4), width


def _with_header(table: FileTable, rows: Sequence[Row]) -> FileTable:
    first = next((place for place, row in enumerate(rows) if len(row) == table.width), 0)
    above = tuple(map(tuple, rows[:first]))
    header = rows[first] if first < len(rows) and _is_header(rows[first]) else None
    return msgspec.structs.replace(table, above=above, header=header and tuple(header))


def _is_header(row: Row) -> bool:
    named = [cell for cell in row if cell.strip()]
    most_are_named = len(named) * 5 >= len(row) * 4 and len(set(named)) * 5 >= len(named) * 4
    return most_are_named and not any(map(_is_number, named))


def _is_number(cell: str) -> bool:
    return cell.strip().lstrip("+-").replace(".", "").replace(",", "").isdigit()

"""Delimited text as a table: what divides its cells, what its columns are called, and its rows in turn.

The one place that decides it, for profiles, CSVW, `table()`, `history()`, diffs and noise alike.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import islice, pairwise, zip_longest
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from tamias.content.formats import TSV, bare_type
from tamias.features.archive.canonical.text import LONGEST_LINE, FoundText, Source, found_text
from tamias.features.archive.canonical.values.cells import kind_of, usual_kind
from tamias.model.document import Unreadable

if TYPE_CHECKING:
    import _csv

SAMPLE = 1 << 20
_JUDGED_ROWS = 500
_DELIMITERS = ",;\t|"
_RARE_DELIMITERS = ":~^"
"""Tried where the others make one column."""
MAX_COLUMNS = 20_000
_LONGEST_ROW = 1000
"""Lines of a row; a quotation mark before more of them is not closed."""
_MOST_ABOVE = 30
"""Rows that may stand above a table."""

Row = Sequence[str]


class FileTable(msgspec.Struct, frozen=True):
    """A table in a file."""

    text: FoundText
    delimiter: str
    quote: str
    """Empty where cells are not quoted."""
    width: int = 1
    above: tuple[tuple[str, ...], ...] = ()
    """Rows above the table, such as a title."""
    skipped: int = 0
    """Lines above the table."""
    header: tuple[str, ...] | None = None
    unnamed: int = 0
    """Empty columns behind the last, where lines end with delimiters."""

    def rows(self) -> Iterator[list[str]]:
        """The rows below the header that have a value, all of one width. Raises `Unreadable`."""
        for row in islice(self.all_rows(), self.rows_above, None):
            if "".join(row).strip():
                yield row if len(row) == self.width else self._fitted(row)

    @property
    def quoted(self) -> bool:
        """True if cells may be quoted."""
        return bool(self.quote)

    @property
    def rows_above(self) -> int:
        """Number of rows before the first row of data: the header and the rows above it."""
        return len(self.above) + (self.header is not None)

    def all_rows(self) -> Iterator[list[str]]:
        """Yield all rows as written, with the header and the rows above it. Raises `Unreadable`."""
        with self.text.opened() as file:
            lines = _reader(file, self.delimiter, self.quote)
            try:
                yield from filter(None, lines)  # a blank line is no row
            except csv.Error as fault:
                raise Unreadable(f"not a table: {fault} near line {lines.line_num}") from fault

    def _fitted(self, row: list[str]) -> list[str]:
        """Missing cells are empty; what is too much stays in the last cell."""
        missing = self.width - len(row)
        if missing >= 0:
            return row + [""] * missing
        if not any(row[self.width :]):
            return row[: self.width]
        return [*row[: self.width - 1], self.delimiter.join(row[self.width - 1 :])]

    def sample(self) -> list[list[str]]:
        """Return the first rows."""
        return list(islice(self.rows(), max(20, min(10_000, SAMPLE // (8 * self.width)))))

    @property
    def is_empty(self) -> bool:
        """True if the file has nothing but white space at its beginning."""
        return not self.text.sample(SAMPLE).strip()

    def with_text(self, text: FoundText) -> "FileTable":
        """The same form of table, of another file."""
        return msgspec.structs.replace(self, text=text)

    def without_header(self) -> "FileTable":
        """The same table with its header as a row."""
        return msgspec.structs.replace(self, header=None)

    def without_quotes(self) -> "FileTable":
        """The same table with its quotation marks as parts of the cells."""
        return msgspec.structs.replace(self, quote="")

    @property
    def columns(self) -> list[str]:
        """A name for each column, no two alike."""
        return unique_names(self.header, self.width)


def unique_names(header: Sequence[str] | None, width: int) -> list[str]:
    """A name for each column: the header's, else by its number; no two alike."""
    cells = [cell.strip() for cell in (header or ())[:width]]
    seen: Counter[str] = Counter()
    names = []
    for place, cell in enumerate([*cells, *[""] * (width - len(cells))], 1):
        name = cell or f"column_{place}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return names


csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))  # geometries are longer than its default


def found_table(
    source: Source, most_bytes: int, delimiter: str | None = None, content_type: str | None = None
) -> FileTable:
    """The table in a file; the delimiter is found unless it is given. Raises `Unreadable`.

    `content_type` may declare a charset, and that cells are divided by tabs.
    """
    text = found_text(source, most_bytes, content_type)
    sample = text.sample(SAMPLE)
    tabbed = bare_type(content_type) == TSV and "\t" in sample
    best = _best(sample, delimiter or ("\t" if tabbed else _DELIMITERS))
    if best.width == 1 and delimiter is None:
        best = max(best, _best(sample, _RARE_DELIMITERS), key=lambda each: each.score)
    if best.score == 0 and sample.strip("\n"):
        raise Unreadable("not a table")
    if best.width > MAX_COLUMNS:
        raise Unreadable(f"a table of {best.width} columns, more than {MAX_COLUMNS}")
    return _with_header(FileTable(text, best.delimiter, best.quote), best.rows)


class _DialectReading(msgspec.Struct, frozen=True):
    """The first rows as they are read with a delimiter and a quotation mark."""

    delimiter: str
    quote: str
    rows: Sequence[tuple[Row, int]]
    """Each with the number of lines up to its end."""
    width: int
    score: float
    """How well rows agree on a width; more than one column is better than one."""


def _best(sample: str, signs: str) -> _DialectReading:
    found = [
        _read(sample, sign, quote)
        for sign in filter(sample.__contains__, signs)
        for quote in _quotes(sample, sign)
    ] or [_read(sample, signs[0], '"')]
    return max(found, key=lambda each: (each.score, bool(each.quote), each.width))


def _quotes(sample: str, delimiter: str) -> list[str]:
    """The quotation marks that may be meant; single ones only if they stand around whole cells."""
    quotes = ['"', ""] if '"' in sample else ['"']
    sign = re.escape(delimiter)
    if re.search(f"(?:^|{sign})'[^'\n]*{sign}[^'\n]*'(?:{sign}|$)", sample, re.MULTILINE):
        quotes.insert(0, "'")
    return quotes


def _reader(lines: "Iterator[str]", delimiter: str, quote: str) -> "_csv.Reader":
    if not quote:
        return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=delimiter, quotechar=quote)


def _read(sample: str, delimiter: str, quote: str) -> _DialectReading:
    """The first rows that are not blank; none if they cannot be read so."""
    reader = _reader(StringIO(sample, newline="\n"), delimiter, quote)
    try:
        rows = []
        for row in reader:
            if row:
                rows.append((row, reader.line_num))
            if len(rows) == _JUDGED_ROWS:
                break
    except csv.Error:
        rows = []
    if not rows:
        return _DialectReading(delimiter, quote, [], 1, 0.0)
    ends = [0, *map(itemgetter(1), rows)]
    if quote and max([end - start for start, end in pairwise(ends)]) > _LONGEST_ROW:
        return _DialectReading(delimiter, quote, rows, 1, 0.0)
    width, agreeing = Counter([len(row) for row, _ in rows]).most_common(1)[0]
    share = agreeing / len(rows)
    return _DialectReading(delimiter, quote, rows, width, share if width > 1 else share / 4)


def _with_header(table: FileTable, numbered: Sequence[tuple[Row, int]]) -> FileTable:
    rows = [[cell.strip() for cell in row] for row, _ in numbered]
    if not rows:
        return table
    first = _rows_above(rows)
    below = rows[first:]
    header = below[0] if _is_header(below) else None
    width = max(_usual_width(below), _named(header or []))
    while width > 1 and header is not None and all(len(row) < width or not row[width - 1] for row in below):
        width -= 1  # only delimiters at the end of the lines
    return msgspec.structs.replace(
        table,
        width=width,
        above=tuple(tuple(row) for row, _ in numbered[:first]),
        skipped=_lines_above(numbered, first),
        header=header and tuple(header),
        unnamed=max(len(header) - width, 0) if header else 0,
    )


def _lines_above(numbered: Sequence[tuple[Row, int]], first: int) -> int:
    """Count the lines, blank ones too, before the first row of the table."""
    row, end = numbered[first]
    return end - 1 - sum(cell.count("\n") for cell in row)


def _rows_above(rows: Sequence[Row]) -> int:
    """Count the nearly empty rows before the header."""
    filled = [len(row) - row.count("") for row in rows]
    first = 0
    for place in range(min(len(rows) - 1, _MOST_ABOVE)):
        after = [count for count in filled[place + 1 : place + 60] if count]
        usual = median(after) if after else 0
        if filled[place] and (usual < 2 or filled[place] * 2 > usual):
            break
        first = place + 1
    return first if any(filled[first:]) else 0


def _usual_width(rows: Sequence[Row]) -> int:
    """The usual number of cells; more, if not just a few rows have more."""
    widths = Counter(map(len, filter(any, rows))) or Counter([1])
    usual = widths.most_common(1)[0][0]
    total = sum(widths.values())
    return max([usual, *(width for width, count in widths.items() if width > usual and count * 20 >= total)])


def _named(header: Row) -> int:
    """The number of cells without the empty ones at the end."""
    return max((place for place, cell in enumerate(header, 1) if cell), default=0)


def _is_header(rows: Sequence[Row]) -> bool:
    """Return whether the first row differs in kind from the rows below it, by the votes of the columns."""
    candidate, body = rows[0], [row for row in rows[1:] if any(row)]
    names = [cell for cell in candidate if cell]
    kinds = [kind_of(name) for name in names]
    if not names:
        return False
    if not body:
        return set(kinds) == {"text"} and len(candidate) > 1
    if "text" not in kinds:
        return set(kinds) == {"year"} and len(set(names)) == len(names) > 2
    columns = zip_longest(candidate, *body, fillvalue="")
    votes = sum(_vote(name, list(filter(None, below))) for name, *below in columns if name)
    votes -= len(set(names)) < len(names)
    if votes:
        return votes > 0
    return len(names) * 5 >= len(candidate) * 4 and "number" not in kinds


def _vote(name: str, below: Sequence[str]) -> int:
    """1 where the first cell is unlike the rest of the column, -1 where it is one of them."""
    if not below:
        return 0
    kind = usual_kind(below)
    if kind is not None:
        own = kind_of(name)
        return 1 if own == "text" else -1 if own == kind else 0
    if name in below:
        return -1
    lengths = set(map(len, below))
    same_length = len(below) > 2 and len(lengths) == 1
    return 1 if same_length and len(name) not in lengths else 0

"""How the lines of a text become rows: delimiter, quotes, title lines before the header, the header.

DuckDB's sniffer gives the delimiter; what stands before the data is our own reading of the first rows.
"""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice, zip_longest
from statistics import median
from typing import TYPE_CHECKING, TextIO

import msgspec

from tamias.analyse.profile.values.cells import kind_of, usual_kind

if TYPE_CHECKING:
    import _csv

DELIMITERS = (",", ";", "\t", "|", ":", "~", "^")
SAMPLE_ROWS = 500
MOST_SKIPPED = 30
_LONGEST_ROW = 1000
"""Lines."""

Row = list[str]


class Marks(msgspec.Struct, frozen=True):
    """The signs that a table is written with."""

    delimiter: str
    quote: str = '"'
    escape: str = '"'
    header: bool | None = None
    """Whether the sniffer thinks that there is a header."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """How a table is written."""

    marks: Marks
    skipped: int
    """Lines before the header, or before the first row where there is none."""
    header: tuple[str, ...] | None
    header_lines: int
    width: int
    """Columns of a row."""
    sure: bool = True
    """Whether the rows alone say if there is a header; else the sniffer's word counts."""


def counted_marks(text: str) -> Marks:
    """The delimiter that gives most rows the same number of cells; a comma if none does."""
    best, score = Marks(","), 0.0
    for delimiter in DELIMITERS:
        marks = Marks(delimiter)
        widths = Counter(len(row) for row, _ in sample_rows(text, marks) if len(row) > 1)
        if not widths:
            continue
        rows = sum(1 for line in text.splitlines()[:SAMPLE_ROWS] if line.strip())
        found = widths.most_common(1)[0][1] / rows
        if found > score + 0.02:
            best, score = marks, found
    return best


def sample_rows(text: str, marks: Marks) -> list[tuple[Row, int]]:
    """The first rows, each with the number of lines up to its end; what cannot be read ends them."""
    reader = row_reader(io.StringIO(text, newline=""), marks)
    rows: list[tuple[Row, int]] = []
    with suppress(csv.Error):
        for row in islice(reader, SAMPLE_ROWS):
            rows.append((list(map(str.strip, row)), reader.line_num))  # noqa: PERF401 - what is read stays
    return rows


def row_reader(file: TextIO, marks: Marks) -> "_csv.Reader":
    """Python's own reader; slow, but for any width."""
    return csv.reader(
        file,
        delimiter=marks.delimiter,
        quotechar=marks.quote or None,
        quoting=csv.QUOTE_MINIMAL if marks.quote else csv.QUOTE_NONE,
        escapechar="\\" if marks.escape == "\\" else None,
    )


def found_dialect(text: str, marks: Marks) -> Dialect | None:
    """The dialect of a text whose beginning this is; None where there is no row at all."""
    return dialect_of(sample_rows(text, marks), marks)


def dialect_of(rows: Sequence[tuple[Row, int]], marks: Marks) -> Dialect | None:
    """The same, of the first rows as `sample_rows` gives them."""
    if not any(any(row) for row, _ in rows) or (len(rows) == 1 and rows[0][1] > _LONGEST_ROW):
        return None
    first = _title_rows([row for row, _ in rows])
    table = [row for row, _ in rows[first:]]
    width = _width(table)
    header = voted = _is_header(table, width)
    if header is None:
        header = all(table[0]) if marks.header is None or first else marks.header
    before = rows[first - 1][1] if first else 0
    return Dialect(
        marks=marks,
        skipped=before,
        header=tuple(table[0]) if header else None,
        header_lines=rows[first][1] - before if header else 0,
        width=max(width, _named(table[0]) if header else 0),
        sure=voted is not None or first > 0,
    )


def _title_rows(rows: Sequence[Row]) -> int:
    """How many rows stand before the header: nearly empty ones, as against those that follow."""
    filled = [len(row) - row.count("") for row in rows]
    first = 0
    for place in range(min(len(rows) - 1, MOST_SKIPPED)):
        after = [count for count in filled[place + 1 : place + 60] if count]
        usual = median(after) if after else 0
        if filled[place] and (usual < 2 or filled[place] * 2 > usual):
            break
        first = place + 1
    return first if any(filled[first:]) else 0


def _width(rows: Sequence[Row]) -> int:
    """The usual number of cells; more, if not just a few rows have more."""
    widths = Counter(map(len, filter(any, rows))) or Counter([1])
    usual = widths.most_common(1)[0][0]
    total = sum(widths.values())
    more = [width for width, count in widths.items() if width > usual and count * 20 >= total]
    return max([usual, *more])


def _named(header: Row) -> int:
    """Without the empty cells at its end."""
    return max((place for place, cell in enumerate(header, 1) if cell), default=0)


def _is_header(rows: Sequence[Row], width: int) -> bool | None:
    """Votes of the columns: a header is unlike what stands below it. None where they are at odds."""
    candidate, body = rows[0], [row for row in rows[1:] if any(row)]
    names = [cell for cell in candidate if cell]
    kinds = [kind_of(name) for name in names]
    if not body:
        return all(kind == "text" for kind in kinds) and width > 1
    if not names or all(kind != "text" for kind in kinds):
        return all(kind == "year" for kind in kinds) and len(set(names)) == len(names) > 2
    columns = zip_longest(candidate, *body, fillvalue="")
    votes = sum(_vote(name, list(filter(None, below))) for name, *below in columns if name)
    if len(set(names)) < len(names):
        votes -= 1
    return votes > 0 if votes else None


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

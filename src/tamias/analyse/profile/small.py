"""Small tables beyond doubt, in memory: the same result as DuckDB's in a fraction of its time.

What is in doubt raises `Uncertain`: a delimiter or a quote that the sniffer may see otherwise, characters
that DuckDB may trim or write small otherwise, values that it may read otherwise.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from math import isfinite
from operator import add
from typing import Any

from tamias.analyse.profile.columns import CUT, ColumnFigures, TableColumns
from tamias.analyse.profile.dialect import SAMPLE_ROWS, Dialect, Marks, Row, dialect_of, sample_rows
from tamias.analyse.profile.encoding import Utf8Text
from tamias.analyse.profile.limits import ProfileLimits
from tamias.analyse.profile.sketches import hashes_of, packed
from tamias.analyse.profile.values.form import NULLS, TEXT, TYPED_NULLS, ColumnForm, Uncertain
from tamias.model.profile import TopValue

_SNIFFED = ",;\t|"
"""The delimiters that DuckDB's sniffer tries."""

PLAIN = re.compile(
    r"[\n\t -\[\]-~\u00a0-\u012f\u0131-\u03a2\u03a4-\u058f\u2000-\u200a\u2010-\u2027\u202f-\u205f"
    r"\u20a0-\u20bf\u3000-\u9fff]*"
)
"""No backslash, and no letter whose small form depends on who asks, such as a capital sigma."""

_TEXT_NULLS = frozenset(("", *NULLS))
_ANY_NULLS = frozenset(("", *TYPED_NULLS))


class SmallValues:
    """The columns of some rows whose cells are trimmed."""

    def __init__(self, rows: Sequence[Sequence[str]], width: int, limits: ProfileLimits) -> None:
        self.rows = len(rows)
        self._columns = list(zip(*rows, strict=True)) or [()] * width
        self._limits = limits
        self._read: dict[int, list[Any]] = {}
        self._told = [_without(_TEXT_NULLS, column) for column in self._columns]

    def sample(self, place: int) -> list[str]:
        return [value[:CUT] for value in self._told[place]]

    def figures(self, place: int, form: ColumnForm) -> ColumnFigures | None:
        if form.read is None:
            raise Uncertain(form.datatype)
        known = self._told[place]
        if form is not TEXT:
            known = _without(_ANY_NULLS, known)
        values = form.read(known)
        self._read[place] = values
        if form is TEXT:
            values = [text[: self._limits.value] for text in values]
        return ColumnFigures(
            nulls=self.rows - len(known),
            invalid=len(known) - len(values),
            distinct=len(set(known)),
            least=min(values, default=None),
            most=max(values, default=None),
            # One after the other, as DuckDB does: `sum` makes up for what is lost by rounding.
            mean=reduce(add, values) / len(values) if values and form.is_number else None,
        )

    def numbers(self, place: int, form: ColumnForm, texts: list[str]) -> list[float]:
        if place not in self._read:
            raise Uncertain(form.datatype)
        return [number for number in map(float, self._read[place]) if isfinite(number)]

    def top(self, place: int) -> tuple[TopValue, ...]:
        counts = Counter(text[: self._limits.value] for text in self._told[place])
        ordered = sorted(counts)
        ordered.sort(key=counts.__getitem__, reverse=True)
        return tuple(TopValue(value, counts[value]) for value in ordered[: self._limits.top_values])

    def sketch(self, place: int) -> bytes:
        return packed(hashes_of(set(self._told[place])))


def _without(nulls: frozenset[str], texts: Sequence[str]) -> list[str]:
    """Those that say something; in most columns all do."""
    if nulls.isdisjoint(map(str.lower, texts)):
        return list(texts)
    return [text for text in texts if text.lower() not in nulls]


def is_plain(value: str) -> bool:
    """Whether DuckDB and Python compare it alike, whatever the case of its letters."""
    return PLAIN.fullmatch(value.replace("\\", "")) is not None


def small_table(text: Utf8Text, marks: Marks | None, limits: ProfileLimits) -> tuple[Dialect, TableColumns]:
    """A table that is small and beyond doubt; raises `Uncertain` for any other."""
    if text.content is None or text.lines > min(SAMPLE_ROWS, limits.exact_rows, limits.rows):
        raise Uncertain("size")
    content = text.content.decode()
    if not PLAIN.fullmatch(content):
        raise Uncertain("characters")
    found = marks or Marks(_delimiter(content))
    rows = sample_rows(content, found)
    _check_rows(content, rows, found.delimiter)
    if marks is None:
        _check_sniffing(content, found.delimiter, len(rows[0][0]))
    dialect = dialect_of(rows, found)
    if dialect is None or dialect.width > limits.columns or not (dialect.sure or marks):
        raise Uncertain("header")
    body = [row for row, _ in rows[dialect.skipped + dialect.header_lines :]]
    columns = TableColumns(SmallValues(body, dialect.width, limits), dialect, limits)
    columns.look()
    return dialect, columns


def _delimiter(text: str) -> str:
    """The one that is in the first line most often."""
    first = text.partition("\n")[0]
    return max(_SNIFFED, key=first.count)


def _check_rows(text: str, rows: Sequence[tuple[Row, int]], delimiter: str) -> None:
    """One line for each row, as many cells in each, some of them filled; quotes around whole cells only."""
    width = len(rows[0][0]) if rows else 0
    if width < 2 or any(len(row) != width or not any(row) for row, _ in rows):
        raise Uncertain("rows")
    if not len(rows) == rows[-1][1] == text.count("\n") + (text[-1] != "\n"):
        raise Uncertain("lines")
    if "\t" in text and (delimiter != "\t" or '"' in text):
        raise Uncertain("tabs that may be trimmed")
    if '"' in text:
        sign = re.escape(delimiter)
        quoted = re.findall(f'(?:^|{sign})"[^"\\n{sign}]+"(?={sign}|$)', text, re.MULTILINE)
        if text.count('"') != 2 * len(quoted):
            raise Uncertain("quotes")


def _check_sniffing(text: str, delimiter: str, width: int) -> None:
    """No other delimiter makes as many cells of a line, and nothing could be another quote or a comment."""
    others = [sign for sign in _SNIFFED if sign in text and sign != delimiter]
    if any(line.count(sign) + 1 >= width for sign in others for line in text.splitlines()):
        raise Uncertain("delimiter")
    if '"' in text and ("#" in text or "'" in text):
        raise Uncertain("comments or quotes")
    sign = re.escape(delimiter)
    if "'" in text and (others or re.search(f"(?:^|{sign})'|'(?:{sign}|$)", text, re.MULTILINE)):
        raise Uncertain("quotes")

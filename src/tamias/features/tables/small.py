"""Small tables beyond doubt, in memory: the same result as DuckDB's in a fraction of its time.

What is in doubt raises `Uncertain`: characters that DuckDB may trim or write small otherwise, values that it
may read otherwise.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from math import isfinite
from operator import add
from typing import Any

from tamias.features.archive.canonical.tables import FileTable
from tamias.features.archive.canonical.values.form import NULLS, TEXT, TYPED_NULLS, ColumnForm, Uncertain
from tamias.features.tables.columns import ColumnFigures, TableColumns
from tamias.features.tables.encoding import Utf8Text
from tamias.features.tables.limits import ProfileLimits
from tamias.features.tables.loaded_forms import CUT
from tamias.features.tables.sketches import hashes_of, packed
from tamias.model.profile import TopValue

MOST_LINES = 500

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
        self._known = [_without(_TEXT_NULLS, column) for column in self._columns]

    def sample(self, place: int) -> list[str]:
        return [value[:CUT] for value in self._known[place]]

    def figures(self, place: int, form: ColumnForm) -> ColumnFigures | None:
        if form.read is None:
            raise Uncertain(form.datatype)
        known = self._known[place]
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

    def null_words(self, place: int) -> tuple[str, ...]:
        return tuple(sorted(word for word in {*self._columns[place]} if word and word.lower() in _ANY_NULLS))

    def top(self, place: int) -> tuple[TopValue, ...]:
        counts = Counter(text[: self._limits.value] for text in self._known[place])
        ordered = sorted(counts)
        ordered.sort(key=counts.__getitem__, reverse=True)
        return tuple(TopValue(value, counts[value]) for value in ordered[: self._limits.top_values])

    def sketch(self, place: int) -> bytes:
        return packed(hashes_of(set(self._known[place])))


def _without(nulls: frozenset[str], texts: Sequence[str]) -> list[str]:
    """Return the texts that are not words for a missing value."""
    if nulls.isdisjoint(map(str.lower, texts)):
        return list(texts)
    return [text for text in texts if text.lower() not in nulls]


def small_table(text: Utf8Text, table: FileTable, limits: ProfileLimits) -> TableColumns:
    """The columns of a table that is small and beyond doubt; raises `Uncertain` for any other."""
    if text.content is None or text.lines > min(MOST_LINES, limits.exact_rows, limits.rows):
        raise Uncertain("size")
    if table.width > limits.columns or not PLAIN.fullmatch(text.content.decode()):
        raise Uncertain("characters")
    rows = [list(map(str.strip, row)) for row in table.rows()]
    columns = TableColumns(SmallValues(rows, table.width, limits), table, limits)
    columns.look()
    return columns

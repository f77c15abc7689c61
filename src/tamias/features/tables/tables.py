"""Text into a table profile: the table is found, the rows are read, each column is looked at.

DuckDB holds them, unless they are few and beyond doubt.
"""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, reduce
from math import isfinite
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamias.features.archive.canonical.tables import FileTable, found_table
from tamias.features.archive.canonical.values.form import NULLS, TEXT, TYPED_NULLS, ColumnForm, Uncertain
from tamias.features.tables.columns import ColumnFigures, TableColumns
from tamias.features.tables.encoding import Utf8Text
from tamias.features.tables.limits import (
    MIB,
    MemoryLimit,
    ProfileLimit,
    ProfileLimits,
    ProfileRun,
    first_line,
    workbench,
)
from tamias.features.tables.loaded_forms import (
    CUT,
    known_typed,
    known_values,
    load_rows,
    null_words,
    sampled_values,
)
from tamias.features.tables.sketches import HASH_SQL, SIZE, hashes_of, packed
from tamias.model.document import Unreadable
from tamias.model.profile import TableProfile, TopValue

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class LoadedValues:
    """The columns of the table `t`."""

    def __init__(self, tables: "DuckDBPyConnection", limits: ProfileLimits) -> None:
        self._tables = tables
        self._limits = limits

    @cached_property
    def rows(self) -> int:
        return int(self._one("SELECT count(*) FROM t")[0])

    def sample(self, place: int) -> list[str]:
        return sampled_values(self._tables, "t", place, self.rows)

    def figures(self, place: int, form: ColumnForm) -> ColumnFigures | None:
        import duckdb

        shown = form.shown.format
        value = form.sql.format(v="v") if form is not TEXT else f"left(v, {self._limits.value})"
        known = known_typed("t", place, form)
        exact = self.rows <= self._limits.exact_rows
        different = "count(DISTINCT v)" if exact else "approx_count_distinct(v)"
        try:
            row = self._one(
                f"SELECT count(*) - count(v), count(v) - count(x), {different}, {shown(x='min(x)')},"  # noqa: S608
                f" {shown(x='max(x)')}, {'avg(x)' if form.is_number else 'NULL'}"
                f" FROM (SELECT v, {value} AS x FROM ({known}))"
            )
        except duckdb.DataError:
            if form is TEXT:
                raise
            return None
        return ColumnFigures(*row)

    def numbers(self, _place: int, form: ColumnForm, texts: list[str]) -> list[float]:
        rows = self._tables.execute(
            f"SELECT x FROM (SELECT ({form.sql.format(v='v')})::DOUBLE AS x FROM (SELECT unnest(?) AS v))"  # noqa: S608
            " WHERE isfinite(x)",
            [texts],
        ).fetchall()
        return [row[0] for row in rows]

    def null_words(self, place: int) -> tuple[str, ...]:
        return tuple(row[0] for row in self._tables.execute(null_words("t", place)).fetchall())

    def top(self, place: int) -> tuple[TopValue, ...]:
        rows = self._tables.execute(
            f"SELECT left(v, {self._limits.value}) AS shown, count(*) AS n FROM ({known_values('t', place)})"  # noqa: S608
            f" WHERE v IS NOT NULL GROUP BY shown ORDER BY n DESC, shown LIMIT {self._limits.top_values}"
        ).fetchall()
        return tuple(TopValue(value, count) for value, count in rows)

    def sketch(self, place: int) -> bytes:
        known = known_values("t", place)
        rows = self._tables.execute(
            f"SELECT DISTINCT {HASH_SQL.format(v='v')} AS h FROM ({known}) WHERE v IS NOT NULL"  # noqa: S608
            f" ORDER BY h LIMIT {SIZE}"
        ).fetchall()
        return packed(row[0] for row in rows)

    def _one(self, query: str) -> tuple[Any, ...]:
        row = self._tables.execute(query).fetchone()
        assert row is not None
        return row


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


_ROWS = "rows.csv"
_USUAL_MEMORY = 96 * MIB
"""For the database; 200 MB in five columns take no more processor time in it than in all that is allowed."""


def quick_table(text: Utf8Text, name: str, media_type: str, limits: ProfileLimits) -> TableProfile:
    """The profile of a small table; raises `Uncertain` where DuckDB has to be asked, or `Unreadable`."""
    if text.content is None or text.longest > limits.line:
        raise Uncertain("line")
    table = found_table(text.content, limits.bytes, content_type=media_type)
    return _profile(text, name, table, small_table(text, table, limits))


def table_profile(
    run: ProfileRun, text: Utf8Text, name: str, media_type: str, delimiter: str | None = None
) -> TableProfile | None:
    """The profile of a table; None where there is none. The delimiter is given where it is known."""
    limits = run.limits
    if text.longest > limits.line:
        run.problems.append(
            f"{name}: a line of {text.longest} bytes, more than {limits.line} (limit profile.line):"
            " not read as a table"
        )
        return None
    try:
        source = text.file() if text.content is None else text.content
        table = found_table(source, 2 * limits.bytes, delimiter, media_type)
        if table.header is None and next(table.rows(), None) is None:
            return None
        return _profile(text, name, table, small_table(text, table, limits))
    except Unreadable as fault:
        run.problems.append(f"{name}: cannot be read as a table: {fault}")
        return None
    except Uncertain:
        known = len(run.problems)
    try:
        found = _loaded_table(run, min(_USUAL_MEMORY, limits.memory), name, table)
    except MemoryLimit:
        del run.problems[known:]
        found = _loaded_table(run, limits.memory, name, table)
    return _profile(text, name, table, found)


def _loaded_table(run: ProfileRun, memory: int, name: str, table: FileTable) -> TableColumns | None:
    """The columns as far as they are read. Raises `MemoryLimit` if less than is allowed was not enough."""
    import duckdb

    limits, path = run.limits, run.folder.path / _ROWS
    found, width = None, min(table.width, limits.columns)
    try:
        _write_rows(run, table, path, name, width)
        with workbench(path, run, memory) as tables:
            found = TableColumns(LoadedValues(tables, limits), table, limits)
            load_rows(tables, "t", path, width, limits.rows)
            found.look()
    except Unreadable as fault:
        run.problems.append(f"{name}: cannot be read as a table: {fault}")
    except ProfileLimit as limit:
        if isinstance(limit, MemoryLimit) and memory < limits.memory:
            raise
        run.problems.append(f"{name}: {limit}")
    except duckdb.Error as error:
        run.problems.append(f"{name}: cannot be read as a table: {first_line(error)}")
    return found


def _write_rows(run: ProfileRun, table: FileTable, path: Path, name: str, width: int) -> None:
    """The rows as everybody writes them, the first columns only where there are too many."""
    if width < table.width:
        run.problems.append(
            f"{name}: {table.width} columns, of which the first {width} are profiled (limit profile.columns)"
        )
    with path.open("w", encoding="utf-8", newline="") as copy:
        writer = csv.writer(copy, lineterminator="\n")
        for number, row in enumerate(table.rows()):
            writer.writerow(row[:width])
            if not number % 1000:
                run.check()


def _profile(text: Utf8Text, name: str, table: FileTable, found: TableColumns | None) -> TableProfile:
    return TableProfile(
        name=name,
        encoding=text.encoding.name,
        delimiter=table.delimiter,
        quote=table.quote or None,
        header=table.header is not None,
        skipped=table.skipped,
        rows=found.rows if found else 0,
        width=table.width,
        unnamed=table.unnamed,
        columns=tuple(found.profiles) if found else (),
        complete=text.complete and found is not None and found.complete,
    )

"""The values of a table that DuckDB has loaded: of any size, one statement for each question.

Of few rows all values are fetched, and DuckDB is asked only what plain Python cannot say for certain.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tamias.analyse.profile.columns import CUT, SAMPLE, ColumnFigures, ColumnValues
from tamias.analyse.profile.limits import ProfileLimits
from tamias.analyse.profile.sketches import HASH_SQL, SIZE, packed
from tamias.analyse.profile.small import SmallValues, is_plain
from tamias.analyse.profile.values.form import NULLS, TEXT, TYPED_NULLS, ColumnForm, Uncertain
from tamias.model.profile import TopValue

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FEW_ROWS = 500
_TEXT_NULLS = ", ".join(f"'{null}'" for null in ("", *NULLS))
_ANY_NULLS = ", ".join(f"'{null}'" for null in ("", *TYPED_NULLS))


class LoadedValues:
    """The columns of the table `t`."""

    def __init__(self, tables: "DuckDBPyConnection", limits: ProfileLimits) -> None:
        self._tables = tables
        self._limits = limits

    @cached_property
    def rows(self) -> int:
        return int(self._one("SELECT count(*) FROM t")[0])

    def sample(self, place: int) -> list[str]:
        rows = self._tables.execute(
            f"SELECT left(v, {CUT}) FROM ({_known(place)} WHERE c{place} IS NOT NULL)"  # noqa: S608
            f" WHERE v IS NOT NULL USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE (1)"
        ).fetchall()
        return [row[0] for row in rows]

    def figures(self, place: int, form: ColumnForm) -> ColumnFigures | None:
        import duckdb

        told = form.told.format
        value = form.sql.format(v="v") if form is not TEXT else f"left(v, {self._limits.value})"
        known = _known(place, _TEXT_NULLS if form is TEXT else _ANY_NULLS)
        exact = self.rows <= self._limits.exact_rows
        different = "count(DISTINCT v)" if exact else "approx_count_distinct(v)"
        try:
            row = self._one(
                f"SELECT count(*) - count(v), count(v) - count(x), {different}, {told(x='min(x)')},"  # noqa: S608
                f" {told(x='max(x)')}, {'avg(x)' if form.is_number else 'NULL'}"
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

    def fetched(self, width: int) -> ColumnValues:
        """The same with all values in memory, where they are few enough and beyond doubt."""
        if self.rows > min(FEW_ROWS, self._limits.exact_rows):
            return self
        cells = ", ".join(f"coalesce(trim(c{place}), '')" for place in range(width))
        rows = self._tables.execute(f"SELECT {cells} FROM t").fetchall()  # noqa: S608
        if not all(is_plain(cell) for row in rows for cell in row):
            return self
        return FetchedValues(rows, width, self._limits, self)

    def top(self, place: int) -> tuple[TopValue, ...]:
        rows = self._tables.execute(
            f"SELECT left(v, {self._limits.value}) AS told, count(*) AS n FROM ({_known(place)})"  # noqa: S608
            f" WHERE v IS NOT NULL GROUP BY told ORDER BY n DESC, told LIMIT {self._limits.top_values}"
        ).fetchall()
        return tuple(TopValue(value, count) for value, count in rows)

    def sketch(self, place: int) -> bytes:
        rows = self._tables.execute(
            f"SELECT DISTINCT {HASH_SQL.format(v='v')} AS h FROM ({_known(place)}) WHERE v IS NOT NULL"  # noqa: S608
            f" ORDER BY h LIMIT {SIZE}"
        ).fetchall()
        return packed(row[0] for row in rows)

    def _one(self, query: str) -> tuple[Any, ...]:
        row = self._tables.execute(query).fetchone()
        assert row is not None
        return row


class FetchedValues(SmallValues):
    """The columns of few rows, and the loaded table for what is in doubt."""

    def __init__(
        self, rows: Sequence[Sequence[str]], width: int, limits: ProfileLimits, loaded: LoadedValues
    ) -> None:
        super().__init__(rows, width, limits)
        self._loaded = loaded

    def figures(self, place: int, form: ColumnForm) -> ColumnFigures | None:
        try:
            return super().figures(place, form)
        except Uncertain:
            return self._loaded.figures(place, form)

    def numbers(self, place: int, form: ColumnForm, texts: list[str]) -> list[float]:
        try:
            return super().numbers(place, form, texts)
        except Uncertain:
            return self._loaded.numbers(place, form, texts)


def _known(place: int, nulls: str = _TEXT_NULLS) -> str:
    """The values of a column, trimmed, as `v`; NULL where there is none."""
    value = f"trim(c{place})"
    return f"SELECT CASE WHEN lower({value}) IN ({nulls}) THEN NULL ELSE {value} END AS v FROM t"  # noqa: S608

"""The values of a table that DuckDB has loaded: of any size, one statement for each question."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from tamias.features.archive.canonical.values.form import TEXT, ColumnForm
from tamias.features.tables.columns import ColumnFigures
from tamias.features.tables.limits import ProfileLimits
from tamias.features.tables.loaded_forms import known_typed, known_values, null_words, sampled_values
from tamias.features.tables.sketches import HASH_SQL, SIZE, packed
from tamias.model.profile import TopValue

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

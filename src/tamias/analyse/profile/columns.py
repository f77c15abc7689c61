"""Looks at each column of a loaded table: its form, its statistics, what it means, its sketch."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING, Any

from tamias.analyse.profile.dialect import Dialect
from tamias.analyse.profile.joins import HASH_SQL, SIZE, packed
from tamias.analyse.profile.limits import ProfileLimits
from tamias.analyse.profile.values.cells import form_of, usual_shape
from tamias.analyse.profile.values.form import NULLS, TEXT, TYPED_NULLS, ColumnForm
from tamias.analyse.profile.values.meanings import ColumnSample, meaning_of, says
from tamias.analyse.profile.values.number_forms import decimal_sign
from tamias.model.profile import ColumnProfile, Meaning, TopValue

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SAMPLE = 1000
_DIFFERENT = 300
"""Values that a guess is made from; all of them are held against it."""

_CUT = 300
"""Characters of a value that a guess is made from."""

_INVALID = 0.05
"""A column of which more is not of its datatype is text after all."""

_JOINED = frozenset({"identifier", "postcode", "isbn", "region", "country"})
TEXT_NULLS = ", ".join(f"'{null}'" for null in ("", *NULLS))
ANY_NULLS = ", ".join(f"'{null}'" for null in ("", *TYPED_NULLS))


class _Figures:
    """The figures of one column."""

    def __init__(self, row: Sequence[Any]) -> None:
        self.nulls, self.invalid, self.distinct = int(row[0]), int(row[1]), int(row[2])
        self.least, self.most = row[3], row[4]
        self.mean = None if row[5] is None or not isfinite(row[5]) else float(f"{row[5]:.12g}")

    def counts_on(self, rows: int) -> bool:
        """Whether so many different whole numbers fill all from the least to the greatest."""
        try:
            return int(self.most) - int(self.least) + 1 == rows
        except (TypeError, ValueError):
            return False


class TableColumns:
    """The columns of the table `t`."""

    def __init__(self, tables: "DuckDBPyConnection", dialect: Dialect, limits: ProfileLimits) -> None:
        self._tables = tables
        self._dialect = dialect
        self._limits = limits
        self._names = unique_names(dialect.header, dialect.width)
        self.rows = 0
        self.complete = False
        self.dropped = 0
        """Columns at the end that are none."""
        self.profiles = [ColumnProfile(name=name, number=place) for place, name in enumerate(self._names, 1)]

    def look(self) -> None:
        """Fills in the profiles, one after the other, so that those before a limit stay."""
        self.rows = self._one("SELECT count(*) FROM t")[0]
        self.complete = self.rows < self._limits.rows
        samples = [self._sample(place) for place in range(len(self._names))]
        sign = decimal_sign(samples)
        for place, sample in enumerate(samples):
            self.profiles[place] = self._profile(place, sample, sign)
        self._drop_empty()

    def _sample(self, place: int) -> list[str]:
        """Some values of a column, from all over it."""
        rows = self._tables.execute(
            f"SELECT left(v, {_CUT}) FROM ({_known(place)} WHERE c{place} IS NOT NULL)"  # noqa: S608
            f" WHERE v IS NOT NULL USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE (1)"
        ).fetchall()
        return [row[0] for row in rows]

    def _profile(self, place: int, sample: list[str], sign: str | None) -> ColumnProfile:
        name, sample = self._names[place], list(dict.fromkeys(sample))[:_DIFFERENT]
        form = form_of(sample, sign, self._dialect.marks.delimiter)
        form, figures = self._checked(place, form)
        unique = figures.nulls == 0 and figures.distinct == self.rows > 1 and self._exact
        pattern = usual_shape(sample) if form is TEXT or form.datatype == "integer" else None
        column = ColumnSample(
            name=name,
            form=form,
            values=sample,
            unique=unique,
            pattern=pattern,
            serial=unique and figures.counts_on(self.rows),
        )
        meaning = meaning_of(column)
        year = meaning is not None and meaning.type == "year" and says(name, "year")
        return ColumnProfile(
            name=name,
            number=place + 1,
            datatype="gYear" if year else form.datatype,
            format=form.format,
            nulls=figures.nulls,
            invalid=figures.invalid,
            distinct=figures.distinct,
            unique=unique,
            min=_said(figures.least),
            max=_said(figures.most),
            mean=figures.mean,
            top=() if unique else self._top(place),
            pattern=pattern,
            meaning=meaning,
            sketch=self._sketch(place) if _can_join(form, meaning, figures) else b"",
        )

    def _checked(self, place: int, form: ColumnForm) -> tuple[ColumnForm, _Figures]:
        """The form, if it holds for nearly all of the column, else that of text; and the figures."""
        import duckdb

        if form is not TEXT:
            with suppress(duckdb.DataError):  # a number too great to add up
                figures = self._figures(place, form)
                if figures.invalid <= _INVALID * max(1, self.rows - figures.nulls):
                    return form, figures
        return TEXT, self._figures(place, TEXT)

    @property
    def _exact(self) -> bool:
        return self.rows <= self._limits.exact_rows

    def _figures(self, place: int, form: ColumnForm) -> _Figures:
        told = form.told.format
        value = form.sql.format(v="v") if form is not TEXT else f"left(v, {self._limits.value})"
        known = _known(place, TEXT_NULLS if form is TEXT else ANY_NULLS)
        different = "count(DISTINCT v)" if self._exact else "approx_count_distinct(v)"
        return _Figures(
            self._one(
                f"SELECT count(*) - count(v), count(v) - count(x), {different}, {told(x='min(x)')},"  # noqa: S608
                f" {told(x='max(x)')}, {'avg(x)' if form.is_number else 'NULL'}"
                f" FROM (SELECT v, {value} AS x FROM ({known}))"
            )
        )

    def _top(self, place: int) -> tuple[TopValue, ...]:
        rows = self._tables.execute(
            f"SELECT left(v, {self._limits.value}) AS told, count(*) AS n FROM ({_known(place)})"  # noqa: S608
            f" WHERE v IS NOT NULL GROUP BY told ORDER BY n DESC, told LIMIT {self._limits.top_values}"
        ).fetchall()
        return tuple(TopValue(value, count) for value, count in rows)

    def _sketch(self, place: int) -> bytes:
        rows = self._tables.execute(
            f"SELECT DISTINCT {HASH_SQL.format(v='v')} AS h FROM ({_known(place)}) WHERE v IS NOT NULL"  # noqa: S608
            f" ORDER BY h LIMIT {SIZE}"
        ).fetchall()
        return packed(row[0] for row in rows)

    def _one(self, query: str) -> tuple[Any, ...]:
        row = self._tables.execute(query).fetchone()
        assert row is not None
        return row

    def _drop_empty(self) -> None:
        """Columns at the end without a name and without a value are only trailing delimiters."""
        header = self._dialect.header
        while (
            len(self.profiles) > 1
            and header is not None
            and not "".join(header[len(self.profiles) - 1 : len(self.profiles)])
            and self.profiles[-1].nulls == self.rows
        ):
            self.profiles.pop()
            self.dropped += 1


def unique_names(header: Sequence[str] | None, width: int) -> list[str]:
    """A name for each column: the header's, else by its number; no two alike."""
    wanted = [
        header[place] if header and place < len(header) and header[place] else f"column_{place + 1}"
        for place in range(width)
    ]
    seen: Counter[str] = Counter()
    names = []
    for name in wanted:
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return names


def _known(place: int, nulls: str = TEXT_NULLS) -> str:
    """The values of a column, trimmed, as `v`; NULL where there is none."""
    value = f"trim(c{place})"
    return f"SELECT CASE WHEN lower({value}) IN ({nulls}) THEN NULL ELSE {value} END AS v FROM t"  # noqa: S608


def _can_join(form: ColumnForm, meaning: Meaning | None, figures: _Figures) -> bool:
    """Texts and codes, not measures, times or truth values."""
    if figures.distinct < 2:
        return False
    if form is TEXT:
        return True
    return form.datatype == "integer" and meaning is not None and meaning.type in _JOINED


def _said(value: object) -> str | None:
    return None if value is None else str(value)

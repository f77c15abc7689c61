"""Looks at each column of a table: its form, its statistics, what it means, its sketch."""

from math import isfinite
from typing import Protocol

from tamias.features.archive.canonical.tables import FileTable
from tamias.features.archive.canonical.values.cells import form_of, usual_shape
from tamias.features.archive.canonical.values.form import TEXT, ColumnForm
from tamias.features.archive.canonical.values.number_forms import decimal_sign
from tamias.features.tables.limits import ProfileLimits
from tamias.features.tables.loaded_forms import DIFFERENT
from tamias.features.tables.meaning.meanings import ColumnSample, meaning_of, says
from tamias.model.profile import ColumnProfile, Meaning, TopValue

_INVALID = 0.05
"""A column of which more is not of its datatype is text after all."""

BINS = 12
"""Parts of a histogram."""
_FEW = 4
"""Different values that are better shown one by one."""

_JOINED = frozenset({"identifier", "postcode", "isbn", "region", "country"})


class ColumnFigures:
    """The figures of one column."""

    def __init__(
        self, nulls: int, invalid: int, distinct: int, least: object, most: object, mean: float | None
    ) -> None:
        self.nulls, self.invalid, self.distinct = nulls, invalid, distinct
        self.least, self.most = (None if value is None else str(value) for value in (least, most))
        self.mean = None if mean is None or not isfinite(mean) else float(f"{mean:.12g}")

    def counts_on(self, rows: int) -> bool:
        """Return whether `rows` distinct whole numbers fill the range from the least to the greatest."""
        try:
            return int(self.most or "") - int(self.least or "") + 1 == rows
        except ValueError:
            return False


class ColumnValues(Protocol):
    """The values of a table, column by column, counted from 0; trimmed, without those that say nothing."""

    @property
    def rows(self) -> int:
        """Number of rows of the table."""

    def sample(self, place: int) -> list[str]:
        """Return at most `SAMPLE` values from all parts of a column, each cut to `CUT` characters."""

    def figures(self, place: int, form: ColumnForm) -> ColumnFigures | None:
        """Return figures of the values as the form reads them; None where their sum would overflow."""

    def numbers(self, place: int, form: ColumnForm, texts: list[str]) -> list[float]:
        """Return the finite numbers that the form reads in a column's sample; call `figures` before."""

    def null_words(self, place: int) -> tuple[str, ...]:
        """Return the sorted words for missing values in a column that is not text, without the empty text."""

    def top(self, place: int) -> tuple[TopValue, ...]:
        """The most frequent values, of those as frequent the first in order."""

    def sketch(self, place: int) -> bytes:
        """The smallest hashes, as in `joins`."""


class TableColumns:
    """The columns of a table."""

    def __init__(self, values: ColumnValues, table: FileTable, limits: ProfileLimits) -> None:
        self._values = values
        self._delimiter = table.delimiter
        self._limits = limits
        self._names = table.columns[: limits.columns]
        self.rows = 0
        self.complete = False
        self.profiles = [ColumnProfile(name=name, number=place) for place, name in enumerate(self._names, 1)]

    def look(self) -> None:
        """Fills in the profiles, one after the other, so that those before a limit stay."""
        self.rows = self._values.rows
        self.complete = self.rows < self._limits.rows
        samples = [self._values.sample(place) for place in range(len(self._names))]
        sign = decimal_sign(samples)
        for place, sample in enumerate(samples):
            self.profiles[place] = self._profile(place, sample, sign)

    def _profile(self, place: int, values: list[str], sign: str | None) -> ColumnProfile:
        name, sample = self._names[place], list(dict.fromkeys(values))[:DIFFERENT]
        form = form_of(sample, sign, self._delimiter)
        form, figures = self._checked(place, form)
        exact = self.rows <= self._limits.exact_rows
        unique = figures.nulls == 0 and figures.distinct == self.rows > 1 and exact
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
            null_words=self._values.null_words(place) if figures.nulls and form is not TEXT else (),
            invalid=figures.invalid,
            distinct=figures.distinct,
            unique=unique,
            min=figures.least,
            max=figures.most,
            mean=figures.mean,
            histogram=self._histogram(place, form, figures, values),
            top=() if unique else self._values.top(place),
            pattern=pattern,
            meaning=meaning,
            sketch=self._values.sketch(place) if _can_join(form, meaning, figures) else b"",
        )

    def _checked(self, place: int, form: ColumnForm) -> tuple[ColumnForm, ColumnFigures]:
        """The form, if it holds for nearly all of the column, else that of text; and the figures."""
        figures = self._values.figures(place, form)
        if form is not TEXT and (
            figures is None or figures.invalid > _INVALID * max(1, self.rows - figures.nulls)
        ):
            form, figures = TEXT, self._values.figures(place, TEXT)
        assert figures is not None
        return form, figures

    def _histogram(
        self, place: int, form: ColumnForm, figures: ColumnFigures, sample: list[str]
    ) -> tuple[int, ...]:
        """Count the values of the sample by bins; a second reading of a large column would be too slow."""
        if not form.is_number or figures.distinct <= _FEW:
            return ()
        least, most = float(figures.least or "nan"), float(figures.most or "nan")
        if not least < most or not isfinite(most - least):
            return ()
        counts = [0] * BINS
        step = (most - least) / BINS
        for number in self._values.numbers(place, form, sample):
            part = int((number - least) / step)
            counts[part if 0 <= part < BINS else 0 if part < 0 else BINS - 1] += 1
        return tuple(counts)


def _can_join(form: ColumnForm, meaning: Meaning | None, figures: ColumnFigures) -> bool:
    """Texts and codes, not measures, times or truth values."""
    is_code = form.datatype == "integer" and meaning is not None and meaning.type in _JOINED
    return figures.distinct > 1 and (form is TEXT or is_code)

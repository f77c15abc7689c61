"""Dates and times as people write them."""

import re
from collections.abc import Callable, Sequence
from datetime import date

import msgspec

from tamias.features.archive.canonical.values.form import ColumnForm, Uncertain, each_read
from tamias.features.archive.canonical.values.number_forms import FITTING, do_fit

_CLOCK = re.compile(
    r"(?P<date>.*?\d)(?P<gap>[T ])\d{1,2}:\d{2}(?P<second>:\d{2}(?:[.,]\d{1,9})?)?"
    r"(?P<zone> ?(?:Z|[+-]\d{2}:?\d{2}))?"
)
_TIME = re.compile(r"(?:[01]?\d|2[0-4]):[0-5]\d(?P<second>:[0-5]\d)?")


class _Day(msgspec.Struct, frozen=True):
    """A way to write a day: what it looks like, for DuckDB, and as CSVW says it."""

    pattern: re.Pattern[str]
    duckdb: str
    shown: str


def _day(pattern: str, duckdb: str, shown: str) -> _Day:
    return _Day(re.compile(pattern), duckdb, shown)


_YEAR, _MONTH, _DAY = r"(?:1[0-9]|20|21)\d{2}", r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_NAME = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_YEAR_MONTH = re.compile(rf"{_YEAR}-(?:0[1-9]|1[0-2])")
_PLAIN_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_SHORTEST, _LONGEST = len("1.1.99"), len("31 Dec 2026")
_HAS_DIGIT = re.compile(r"\d")
_DAYS = (
    _day(rf"{_YEAR}-{_MONTH}-{_DAY}", "%Y-%m-%d", "yyyy-MM-dd"),
    _day(rf"{_YEAR}/{_MONTH}/{_DAY}", "%Y/%m/%d", "yyyy/MM/dd"),
    _day(rf"{_YEAR}\.{_MONTH}\.{_DAY}\.?", "%Y.%m.%d", "yyyy.MM.dd"),
    _day(r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])", "%Y%m%d", "yyyyMMdd"),
    *(
        _day(rf"{first}{re.escape(sign)}{second}{re.escape(sign)}{year}", sign.join(codes), sign.join(words))
        for sign in "./-"
        for year, code, word in ((_YEAR, "%Y", "yyyy"), (r"\d{2}", "%y", "yy"))
        for first, second, codes, words in (
            (_DAY, _MONTH, ("%d", "%m", code), ("dd", "MM", word)),
            (_MONTH, _DAY, ("%m", "%d", code), ("MM", "dd", word)),
        )
    ),
    *(
        _day(rf"{_DAY}{sign}{_NAME}{sign}{year}", f"%d{sign}%b{sign}{code}", f"d{sign}MMM{sign}{word}")
        for sign in (" ", "-")
        for year, code, word in ((_YEAR, "%Y", "yyyy"), (r"\d{2}", "%y", "yy"))
    ),
)  # fmt: skip


def time_form(values: Sequence[str]) -> ColumnForm | None:
    """The form of a column of dates, times, or both; None if it is none of them."""
    least = FITTING * len(values)
    if do_fit(_TIME, values, least):
        return _of_day(values)
    if do_fit(_YEAR_MONTH, values, least):
        if all(_is_season(value) for value in values):
            return None
        return ColumnForm(
            datatype="gYearMonth",
            sql="nullif(regexp_extract({v}, '^\\d{{4}}-\\d{{2}}$'), '')",
            read=lambda texts: [text for text in texts if _PLAIN_MONTH.fullmatch(text)],
        )
    if not do_fit(_CLOCK, values, least):
        return _date(values, least)
    clocks = [found for value in values if (found := _CLOCK.fullmatch(value))]
    days = [found["date"] for found in clocks]
    form = _date(days, least)
    return None if form is None or form.format is None else _with_clock(form.format, clocks, odd=form.odd)


def _date(values: Sequence[str], least: float) -> ColumnForm | None:
    first = [value for value in values[:5] if value[:1].isdecimal() and _SHORTEST <= len(value) <= _LONGEST]
    likely = [day for day in _DAYS if any(map(day.pattern.fullmatch, first))]
    fits = [(sum(day.pattern.fullmatch(value) is not None for value in values), day) for day in likely]
    most = max((count for count, _ in fits), default=0)
    if most < least or not fits:
        return None
    best = [day for count, day in fits if count == most]
    return ColumnForm(
        datatype="date",
        format=best[0].shown,
        sql=f"TRY_CAST(try_strptime({{v}}, '{best[0].duckdb}') AS DATE)",
        shown="CAST({x} AS VARCHAR)",
        read=_day_reader(best[0].duckdb),
        odd=len(best) > 1 and "." not in best[0].shown,
    )


def _day_reader(code: str) -> Callable[[Sequence[str]], list[date]] | None:
    """Days of plain digits; None for those with names of months or short years."""
    if "%b" in code or "%y" in code:
        return None
    digits = "[0-9]{2}" if code == "%Y%m%d" else "[0-9]{1,2}"
    fields = {"%Y": "(?P<year>[12][0-9]{3})", "%m": f"(?P<month>{digits})", "%d": f"(?P<day>{digits})"}
    written = re.compile(re.sub("%[Ymd]", lambda field: fields[field[0]], re.escape(code)))

    def read(text: str) -> date | None:
        if found := written.fullmatch(text):
            try:
                return date(int(found["year"]), int(found["month"]), int(found["day"]))
            except ValueError:
                return None
        if _HAS_DIGIT.search(text):
            raise Uncertain(text)
        return None

    return each_read(read)


def _is_season(value: str) -> bool:
    """2010-11 may be a month, or the year from 2010 to 2011."""
    year, _, end = value.partition("-")
    return (int(year) + 1) % 100 == int(end)


_ZONE_SQL = "regexp_replace(regexp_replace({v}, ' ?Z$', '+00:00'), ' ([+-])', '\\1')"
"""A zone as DuckDB's `%z` takes it."""


def _with_clock(shown: str, clocks: Sequence[re.Match[str]], *, odd: bool) -> ColumnForm:
    day = next(each.duckdb for each in _DAYS if each.shown == shown)
    gap = "T" if clocks[0]["gap"] == "T" else " "
    hours = [f"{day}{gap}%H:%M", f"{day}{gap}%H:%M:%S", f"{day}{gap}%H:%M:%S.%n"]
    zoned = any(found["zone"] for found in clocks)
    codes = [hour + "%z" for hour in hours] if zoned else hours
    second = ":ss" if any(found["second"] for found in clocks) else ""
    mark = "'T'" if gap == "T" else " "
    listed = ", ".join(f"'{code}'" for code in codes)
    value = f"try_strptime({{v}}, [{listed}])"
    if zoned:
        value = f"timezone('UTC', {value.format(v=_ZONE_SQL)})"
    return ColumnForm(
        datatype="dateTime",
        format=f"{shown}{mark}HH:mm{second}" + ("X" if zoned else ""),
        sql=value,
        shown="strftime({x}, '%Y-%m-%dT%H:%M:%S')" + (" || 'Z'" if zoned else ""),
        odd=odd,
    )


def _of_day(values: Sequence[str]) -> ColumnForm:
    seconds = any(value.count(":") == 2 for value in values)
    return ColumnForm(
        datatype="time",
        format="HH:mm:ss" if seconds else "HH:mm",
        sql="TRY_CAST(CASE WHEN {v} SIMILAR TO '\\d\\d?:\\d\\d' THEN {v} || ':00' ELSE {v} END AS TIME)",
        shown="CAST({x} AS VARCHAR)",
    )

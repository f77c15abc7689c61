"""Moments as people write them, and as the archive keeps them: milliseconds UTC. Pure."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from tamias.model.errors import UsageError

Moment = datetime | str
S = TypeVar("S", bound=msgspec.Struct)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000
_DIGITS = re.compile(r"[0-9]{4}(?:[0-9]{2}){0,5}")
_SINCE_YEAR = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_TIMES = frozenset({"added_at", "captured_at", "next_visit"})
_UNITS = ("days", "hours", "minutes", "seconds")


def milliseconds(moment: Moment) -> int:
    """The last millisecond of a moment: of its year, day or second where it says no more. UTC unless it says.

    Takes a datetime, RFC 3339 or YYYYMMDDhhmmss, each as precise as it may be. Raises `UsageError`.

    >>> milliseconds("2023-11-14T22:13:20.123Z"), milliseconds("20231114221320"), milliseconds("2023-11-14")
    (1700000000123, 1700000000999, 1700006399999)
    >>> milliseconds("2023") - milliseconds("202311"), milliseconds("2023-02") == milliseconds("20230228")
    (2678400000, True)
    """
    if isinstance(moment, datetime):
        return _since_epoch(moment)
    return _span(moment)[1]


def first_millisecond(moment: str) -> int:
    """The first millisecond of a moment, as `milliseconds` is the last.

    >>> first_millisecond("2023-11-14T22:13:20.123Z"), first_millisecond("2023-11-14")
    (1700000000123, 1699920000000)
    """
    return _span(moment)[0]


def _span(moment: str) -> tuple[int, int]:
    """Return the first and the last millisecond of a span of time."""
    try:
        return _read(moment.strip())
    except (ValueError, OverflowError):
        raise UsageError(
            f"{moment[:100]!r} is not a time; write 2026-11-15T12:00:00Z, 2026-11-15 or 20261115120000"
        ) from None


def _read(text: str) -> tuple[int, int]:
    if _DIGITS.fullmatch(text):
        return _spanned([text[:4], *(text[at : at + 2] for at in range(4, len(text), 2))])
    if found := _SINCE_YEAR.fullmatch(text):
        return _spanned([part for part in found.groups() if part])
    first = _since_epoch(datetime.fromisoformat(text))
    return first, first if "." in text else first + 999


def _spanned(parts: list[str]) -> tuple[int, int]:
    """Year, month, day, hour, minute and second, as many as there are."""
    numbers = [int(part) for part in parts]
    year, month, day, hour, minute, second = [*numbers, *(1, 1, 1, 0, 0, 0)[len(numbers) :]]
    begin = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    if len(parts) == 1:
        end = begin.replace(year=year + 1)
    elif len(parts) == 2:
        end = begin.replace(year=year + month // 12, month=month % 12 + 1)
    else:
        end = begin + timedelta(**{_UNITS[len(parts) - 3]: 1})
    return _since_epoch(begin), _since_epoch(end) - 1


def _since_epoch(moment: datetime) -> int:
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (known - _EPOCH) // timedelta(milliseconds=1)


def as_datetime(moment: int) -> datetime:
    """Milliseconds as a datetime in UTC.

    >>> as_datetime(1700000000123).isoformat()
    '2023-11-14T22:13:20.123000+00:00'
    """
    return _EPOCH + timedelta(milliseconds=moment)


def rfc3339(moment: int) -> str:
    """Milliseconds as text.

    >>> rfc3339(1700000000123)
    '2023-11-14T22:13:20.123Z'
    """
    days, within = divmod(moment, _DAY_MS)
    seconds, thousandths = divmod(within, 1000)
    minutes, second = divmod(seconds, 60)
    return f"{_day(days)}T{minutes // 60:02}:{minutes % 60:02}:{second:02}.{thousandths:03}Z"


def rfc3339_or_none(moment: int | None) -> str | None:
    """Milliseconds as text, if they are known."""
    return None if moment is None else rfc3339(moment)


@lru_cache(maxsize=4096)
def _day(days: int) -> str:
    """Made once for all moments of a day: a history has many moments."""
    return (_EPOCH + timedelta(days=days)).date().isoformat()


def shown(form: type[S], *sources: object, **more: Any) -> S:
    """Make a value of `more` and of the fields that sources have by the same names, with times as text.

    Where several have a field, that of the first is taken.
    """
    for source in sources:
        for name in form.__struct_fields__:
            if name not in more and hasattr(source, name):
                value = getattr(source, name)
                more[name] = rfc3339_or_none(value) if name in _TIMES else value
    return form(**more)


def of_row(form: type[S], row: Sequence[Any], **more: Any) -> S:
    """Make a value of `more` and of a row that has its other fields in their order, with times as text."""
    names = [name for name in form.__struct_fields__ if name not in more]
    for name, value in zip(names, row, strict=False):
        more[name] = rfc3339(value) if isinstance(value, int) and name in _texts(form) else value
    return form(**more)


@lru_cache(maxsize=256)
def _texts(form: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(each.name for each in msgspec.structs.fields(form) if each.type in (str, str | None))


def digits(moment: int) -> str:
    """Milliseconds as the 14 digits of web archives.

    >>> digits(1700000000123)
    '20231114221320'
    """
    return datetime.fromtimestamp(moment // 1000, UTC).strftime("%Y%m%d%H%M%S")

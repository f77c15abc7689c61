"""Moments as people write them, and as the archive keeps them: milliseconds UTC. Pure."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from tamias.model.errors import UsageError

Moment = datetime | str

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000
_DIGITS = re.compile(r"[0-9]{14}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def milliseconds(moment: Moment) -> int:
    """The last millisecond of a moment: of its day or its second where it says no more. UTC unless it says.

    Takes a datetime, RFC 3339 or YYYYMMDDhhmmss. Raises `UsageError`.

    >>> milliseconds("2023-11-14T22:13:20.123Z"), milliseconds("20231114221320"), milliseconds("2023-11-14")
    (1700000000123, 1700000000999, 1700006399999)
    """
    if isinstance(moment, datetime):
        return _since_epoch(moment)
    try:
        return _read(moment.strip())
    except (ValueError, OverflowError):
        raise UsageError(
            f"{moment[:100]!r} is not a time; write 2026-11-15T12:00:00Z, 2026-11-15 or 20261115120000"
        ) from None


def first_millisecond(moment: str) -> int:
    """The first millisecond of a moment, as `milliseconds` is the last.

    >>> first_millisecond("2023-11-14T22:13:20.123Z"), first_millisecond("2023-11-14")
    (1700000000123, 1699920000000)
    """
    last, text = milliseconds(moment), moment.strip()
    if _DATE.fullmatch(text):
        return last - _DAY_MS + 1
    return last if "." in text else last - 999


def _read(text: str) -> int:
    if _DIGITS.fullmatch(text):
        return _since_epoch(datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC)) + 999
    if _DATE.fullmatch(text):
        return _since_epoch(datetime.fromisoformat(text) + timedelta(days=1)) - 1
    found = _since_epoch(datetime.fromisoformat(text))
    return found if "." in text else found + 999


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


@lru_cache(maxsize=4096)
def _day(days: int) -> str:
    """Made once for all moments of a day: a history has many moments."""
    return (_EPOCH + timedelta(days=days)).date().isoformat()

"""Dates and times that a page writes in pieces (the value class pattern), put together."""

import re
from collections.abc import Iterable

_DATE = re.compile(r"\d{4}-(?:\d{2}-\d{2}|\d{3}|\d{2})")
_ZONE = re.compile(r"(?:[zZ]|[+-]\d{1,2}:?(?:\d{2})?)")
_TIME = re.compile(
    r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}(?:\.\d{1,9})?))?\s{0,3}([aApP]\.?[mM]\.?)?\s{0,3}"
    r"([zZ]|[+-]\d{1,2}:?(?:\d{2})?)?"
)
_BOTH = re.compile(rf"{_DATE.pattern}[T ]{_TIME.pattern}")


def joined(pieces: Iterable[str]) -> str:
    """Date, time and zone as one text; the first of each counts. Empty where there is none of them.

    >>> joined(["2009-06-26", "7:00pm"]), joined(["19:00", "-08:00", "2009-06-26"]), joined(["7pm"])
    ('2009-06-26 19:00', '2009-06-26 19:00-0800', '19:00')
    """
    date = time = zone = ""
    for piece in (each.strip() for each in pieces):
        if not (date or time) and _BOTH.fullmatch(piece):
            return piece
        if _DATE.fullmatch(piece):
            date = date or piece
        elif _ZONE.fullmatch(piece):
            zone = zone or _zone(piece)
        elif not time:
            time, own_zone = _time(piece)
            zone = zone or own_zone
    if not time:
        return date
    return f"{date}{' ' if date else ''}{time}{zone}"


def date_of(value: str) -> str:
    """The date that a value begins with, or nothing.

    >>> date_of("2009-06-26 19:00"), date_of("19:00")
    ('2009-06-26', '')
    """
    found = _DATE.match(value)
    return found[0] if found else ""


def is_time(value: str) -> bool:
    """Return whether the value is a time of the day without a date."""
    return ":" in value and _TIME.fullmatch(value) is not None


def _time(text: str) -> tuple[str, str]:
    found = _TIME.fullmatch(text.strip())
    if found is None or not (found[2] or found[4]):
        return "", ""
    hour = int(found[1])
    if found[4]:
        hour = hour % 12 + (12 if found[4][0] in "pP" else 0)
    seconds = f":{found[3]}" if found[3] else ""
    return f"{hour:02}:{found[2] or '00'}{seconds}", _zone(found[5] or "")


def _zone(text: str) -> str:
    return text.upper().replace(":", "")

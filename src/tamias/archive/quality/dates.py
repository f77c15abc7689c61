"""Dates in descriptions: whether a text is one that a program can read."""

import re
from datetime import date
from typing import Final

_DATE: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)"
    r"(?:[T ]([01]\d|2[0-4]):[0-5]\d(?::[0-6]\d(?:[.,]\d+)?)?\s?(?:Z|[+-]\d\d:?\d\d)?)?)?)?"
)


def is_date(text: str | None) -> bool:
    """Whether it is a year, a month, a day or a moment of ISO 8601 that the calendar has.

    >>> is_date("2024-02-29T10:30:00Z"), is_date("2023-02-29"), is_date("29.02.2024")
    (True, False, False)
    """
    found = _DATE.fullmatch((text or "").strip())
    if found is None:
        return False
    try:
        date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    except ValueError:
        return False
    return True

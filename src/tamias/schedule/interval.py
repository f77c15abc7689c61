"""Spans of time as people write them: `90m`, `1d`, `2w`."""

import re

from tamias.model.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN = re.compile(r"([0-9]{1,9})([smhdw])")
LEAST_SECONDS = 60
MOST_SECONDS = 10 * 366 * 86400


def seconds_of(text: str) -> int:
    """Between a minute and ten years. Raises `UsageError`.

    >>> seconds_of("90m"), seconds_of("1d")
    (5400, 86400)
    """
    found = _SPAN.fullmatch(text.strip().lower())
    seconds = int(found[1]) * _UNITS[found[2]] if found else 0
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise UsageError(f"'{text}' is no interval: write 90m, 12h, 1d or 2w, at least 1m")
    return seconds


def span_of(seconds: float) -> str:
    """The same in its largest whole unit.

    >>> span_of(86400), span_of(5400), span_of(14 * 86400)
    ('1d', '90m', '2w')
    """
    unit = next(name for name in "wdhms" if seconds % _UNITS[name] == 0 or name == "s")
    return f"{seconds / _UNITS[unit]:.0f}{unit}"

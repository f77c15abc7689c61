"""How often something changes, in the words of the EU's frequency list."""

from math import log
from typing import Final

_FREQUENCIES: Final = "http://publications.europa.eu/resource/authority/frequency/"
_YEAR: Final = 365.25

_PER_DAY: Final = {
    "HOURLY": 24.0,
    "BIHOURLY": 12.0,
    "TRIHOURLY": 8.0,
    "DAILY_2": 2.0,
    "DAILY": 1.0,
    "WEEKLY_3": 3 / 7,
    "WEEKLY_2": 2 / 7,
    "WEEKLY": 1 / 7,
    "BIWEEKLY": 1 / 14,
    "MONTHLY": 12 / _YEAR,
    "BIMONTHLY": 6 / _YEAR,
    "QUARTERLY": 4 / _YEAR,
    "ANNUAL_3": 3 / _YEAR,
    "ANNUAL_2": 2 / _YEAR,
    "ANNUAL": 1 / _YEAR,
    "BIENNIAL": 1 / 2 / _YEAR,
    "TRIENNIAL": 1 / 3 / _YEAR,
    "QUADRENNIAL": 1 / 4 / _YEAR,
    "QUINQUENNIAL": 1 / 5 / _YEAR,
    "DECENNIAL": 1 / 10 / _YEAR,
}
_CONTINUOUS: Final = 48.0
_NEVER: Final = 1 / 20 / _YEAR


def frequency(changes_a_day: float | None) -> str | None:
    """The IRI of the nearest frequency, by ratio; None where the rate is not known.

    >>> frequency(1.1), frequency(0.0001)
    ('http://publications.europa.eu/resource/authority/frequency/DAILY', \
'http://publications.europa.eu/resource/authority/frequency/NEVER')
    """
    if changes_a_day is None or not changes_a_day >= 0:
        return None
    if changes_a_day > _CONTINUOUS:
        return _FREQUENCIES + "CONT"
    if changes_a_day < _NEVER:
        return _FREQUENCIES + "NEVER"
    return _FREQUENCIES + min(_PER_DAY, key=lambda name: abs(log(changes_a_day / _PER_DAY[name])))

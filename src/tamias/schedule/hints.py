"""Hints about when a resource changes, from sitemaps, catalogues and HTTP. Pure.

Hints set what is expected at first and may bring a visit forward; what is seen weighs more.
"""

import re
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import inf
from typing import Final

import msgspec

from tamias.schedule.visit import DAY_MS, TERMS, VisitTerms

TRUST_AFTER: Final = 20
"""Visits that must have put a host's dates to the test."""
TRUST_SHARE: Final = 0.8
_TRUST_MOST: Final = 2 * TRUST_AFTER
_TOLERANCE_MS: Final = DAY_MS
"""A date may be so far ahead of us: some are told without a zone."""
_SHORTEST_DAYS: Final = 1 / 24
"""A page that says it changed or expires within the hour was probably made for us, and says nothing."""
_LONGEST_DATE: Final = 40

_FREQUENCIES: Final[dict[str, float]] = {
    "always": 1 / 24, "continuous": 1 / 24, "continual": 1 / 24, "cont": 1 / 24, "updatecont": 1 / 24,
    "realtime": 1 / 24, "hourly": 1 / 24, "bihourly": 1 / 12, "trihourly": 1 / 8, "12hrs": 0.5, "daily2": 0.5,
    "daily": 1, "weekly5": 1.4, "weekly3": 7 / 3, "threetimesaweek": 7 / 3, "weekly2": 3.5, "semiweekly": 3.5,
    "weekly": 7, "monthly3": 10, "threetimesamonth": 10, "biweekly": 14, "fortnightly": 14,
    "monthly2": 15, "semimonthly": 15, "monthly": 30, "bimonthly": 61, "quarterly": 91, "annual3": 122,
    "threetimesayear": 122, "annual2": 182, "semiannual": 182, "biannual": 182, "biannually": 182,
    "annual": 365, "annually": 365, "yearly": 365, "biennial": 730, "biennially": 730, "triennial": 1095,
    "quadrennial": 1461, "quinquennial": 1826, "decennial": 3652,
    "never": inf, "notplanned": inf, "none": inf, "archived": inf,
}  # fmt: skip
"""Of sitemaps, Dublin Core, the European frequency list and ISO 19115, in days, small and without marks."""

_REPEATED: Final = re.compile(r"R[0-9]{0,6}/P(?:([0-9.]{1,9})([YMWD]))?(?:T([0-9.]{1,9})([HMS]))?")
_UNITS: Final = {"Y": 365.0, "M": 30.0, "W": 7.0, "D": 1.0}
_TIME_UNITS: Final = {"H": 1 / 24, "M": 1 / 1440, "S": 1 / 86_400}
_MAX_AGE: Final = re.compile(r"(?:^|[,\s])(?:s-maxage|max-age)\s*=\s*\"?([0-9]{1,10})", re.IGNORECASE)


class ResourceHints(msgspec.Struct, frozen=True, kw_only=True):
    """The hints about a resource, which may be wrong."""

    frequency: str | None = None
    """A sitemap's changefreq, or a catalogue's word or IRI for how often it is updated."""
    modified_at: int | None = None
    """Milliseconds UTC: the latest of lastmod, the catalogue's date and Last-Modified."""
    max_age_days: float | None = None
    """How long HTTP calls the answer fresh."""


def first_interval(hints: ResourceHints, now_ms: int, terms: VisitTerms = TERMS) -> float | None:
    """Days between changes to be expected before any was seen; None where nothing useful is said.

    A word for the frequency counts most; else the time since the last change, or that of HTTP if longer.
    """
    days = frequency_days(hints.frequency) if hints.frequency else None
    if days is None:
        since = 0.0 if hints.modified_at is None else (now_ms - hints.modified_at) / DAY_MS
        days = max(since, hints.max_age_days or 0.0)
        if days < _SHORTEST_DAYS:
            return None
    return min(max(days, terms.minimum), terms.maximum)


def frequency_days(word: str) -> float | None:
    """Days between changes, from a word, the IRI of one, or a repeated duration (ISO 8601).

    >>> frequency_days("http://publications.europa.eu/resource/authority/frequency/WEEKLY_2")
    3.5
    >>> frequency_days("R/P1Y"), frequency_days("Daily"), frequency_days("now and then")
    (365.0, 1, None)
    """
    repeated = _REPEATED.fullmatch(word)
    if repeated:
        return _duration(*repeated.groups())
    plain = re.sub(r"[^a-z0-9]", "", re.split(r"[/#]", word)[-1].lower())
    return _FREQUENCIES.get(plain)


def _duration(date: str | None, unit: str, time: str | None, time_unit: str) -> float | None:
    try:
        days = (float(date) * _UNITS[unit] if date else 0.0) + (
            float(time) * _TIME_UNITS[time_unit] if time else 0.0
        )
    except ValueError:
        return None
    return days or None


def importance_by_priority(priority: float | None) -> float:
    """A sitemap's priority, from 0 to 1, as a factor for the importance; its usual 0.5 changes nothing.

    >>> importance_by_priority(None), importance_by_priority(1.0), importance_by_priority(0.0)
    (1.0, 1.5, 0.5)
    """
    return 1.0 if priority is None else 0.5 + min(max(priority, 0.0), 1.0)


def http_hints(header: Callable[[str], str | None], now_ms: int) -> ResourceHints:
    """Return what the headers of an answer say; `header` gives the first value of a name, or None."""
    age = _MAX_AGE.search(header("cache-control") or "")
    expires = http_date_ms(header("expires"))
    answered = http_date_ms(header("date")) or now_ms
    lasting = float(age[1]) * 1000 if age else (expires or answered) - answered
    return ResourceHints(
        modified_at=http_date_ms(header("last-modified")),
        max_age_days=lasting / DAY_MS if lasting > 0 else None,
    )


def http_date_ms(text: str | None) -> int | None:
    """A date of HTTP in milliseconds UTC.

    >>> http_date_ms("Sun, 06 Nov 1994 08:49:37 GMT"), http_date_ms("0")
    (784111777000, None)
    """
    if not text or len(text) > _LONGEST_DATE:
        return None
    try:
        date = parsedate_to_datetime(text)
        return int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


class Trust(msgspec.Struct, frozen=True, array_like=True):
    """The count of tests in which the dates of a host's sitemaps and catalogues proved right."""

    right: int = 0
    checked: int = 0

    @property
    def earned(self) -> bool:
        """Return whether a date alone is reason enough for a visit."""
        return self.checked >= TRUST_AFTER and self.right >= TRUST_SHARE * self.checked

    def after(self, said_changed: bool, changed: bool) -> "Trust":
        """Return the trust after a test: a date said that it changed or not, and a visit saw if it did.

        The old counts less: at twice the tests that are needed, both numbers are halved.
        """
        right, checked = self.right + (said_changed == changed), self.checked + 1
        return Trust(right // 2, checked // 2) if checked >= _TRUST_MOST else Trust(right, checked)


def said_changed(modified_at: int, visited_at: int | None, now_ms: int) -> bool:
    """Return whether a date claims a change since our last visit. Dates from the future claim nothing."""
    return modified_at <= now_ms + _TOLERANCE_MS and (visited_at is None or modified_at > visited_at)

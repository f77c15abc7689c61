"""What stands in the fields of sitemaps and feeds: dates, words, numbers, digests. Pure."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

from tamias.model.site import CHANGE_FREQUENCIES

_W3C_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:[Tt ].{5,40})?)?)?", re.ASCII)
_NUMBER = re.compile(r"[+]?(?:\d{1,9}(?:\.\d{0,30})?|\.\d{1,30})", re.ASCII)
_SHA256 = re.compile(r"(?:^|\s)sha-?256:([0-9a-f]{64})(?:$|\s)", re.IGNORECASE)


@lru_cache(maxsize=1024)
def time_ms(text: str) -> int | None:
    """A date as sitemaps and Atom write it (W3C, all six precisions) or as RSS does (RFC 822); else None.

    Without a time zone it is taken as UTC.

    >>> time_ms("1970-01-02"), time_ms("Thu, 01 Jan 1970 00:00:01 GMT"), time_ms("soon")
    (86400000, 1000, None)
    """
    try:
        moment = _w3c(text) if _W3C_DATE.fullmatch(text) else parsedate_to_datetime(text[:100])
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1000)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _w3c(text: str) -> datetime:
    return datetime.fromisoformat(text.upper() + "-01-01"[: max(0, 10 - len(text))])


def change_frequency(text: str) -> str | None:
    """One of the seven words, or None."""
    word = text.lower()
    return word if word in CHANGE_FREQUENCIES else None


def share(text: str) -> float | None:
    """A number from 0 to 1, or None.

    >>> share("0.8"), share("1.5")
    (0.8, None)
    """
    value = float(text) if _NUMBER.fullmatch(text) else 2.0
    return value if value <= 1.0 else None


def sha256_of(text: str) -> str | None:
    """The SHA-256 among the digests of a ResourceSync `hash`.

    >>> sha256_of("md5:00 sha-256:" + "aB" * 32) == "ab" * 32
    True
    """
    found = _SHA256.search(text[:1000])
    return found[1].lower() if found else None

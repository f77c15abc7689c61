"""How long to leave a host alone: between two requests, and when it asks for more (RFC 9110, 10.2.3)."""

from datetime import UTC, datetime
from math import ceil

LONGEST_WAIT_MS = 24 * 3600 * 1000
"""A longer wait is taken for this one, after which the host is asked again."""

_HTTP_DATES = ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y")
_LONGEST_DATE = 40


def retry_after_ms(value: str | None, now_ms: int) -> int | None:
    """Milliseconds to wait from now. None where nothing sensible is asked, also for a date that has passed.

    >>> retry_after_ms("120", 0), retry_after_ms("Thu, 01 Jan 1970 00:00:05 GMT", 2000)
    (120000, 3000)
    """
    asked = (value or "").strip()
    if asked.isascii() and asked.isdigit():
        # Ten digits are far over the longest wait already.
        return min(int("0" + asked.lstrip("0")[:10]) * 1000, LONGEST_WAIT_MS)
    when = _date_ms(asked)
    if when is None or when < now_ms:
        return None
    return min(when - now_ms, LONGEST_WAIT_MS)


def _date_ms(text: str) -> int | None:
    if len(text) > _LONGEST_DATE:
        return None
    for form in _HTTP_DATES:
        try:
            return int(datetime.strptime(text, form).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
    return None


LONGEST_DELAY_MS = 2**31 - 1
"""24 days, the most that the frontier can hold; a longer one is taken for this."""


def host_delay_ms(configured_s: float, crawl_delay_s: float | None, obey_robots: bool) -> int:
    """The longer of the configured delay and, where robots.txt is obeyed, its Crawl-delay.

    >>> host_delay_ms(1.0, 10.0, True), host_delay_ms(1.0, 10.0, False), host_delay_ms(0, None, True)
    (10000, 1000, 0)
    """
    asked = crawl_delay_s if obey_robots and crawl_delay_s is not None else 0.0
    milliseconds = min(max(configured_s, asked) * 1000, LONGEST_DELAY_MS)
    # Rounded first, as 1.1 * 1000 is a little more than 1100.
    return ceil(round(milliseconds, 6))

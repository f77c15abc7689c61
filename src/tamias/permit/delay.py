"""How long to leave a host alone between two requests."""

from math import ceil

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

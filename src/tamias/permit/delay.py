"""How long to leave a host alone between two requests."""

from math import ceil

LONGEST_DELAY = 30 * 24 * 3600
"""Seconds. A longer Crawl-delay is taken for this one: a number a clock can hold."""


def host_delay_ms(configured_s: float, crawl_delay_s: float | None, obey_robots: bool) -> int:
    """The longer of the configured delay and, where robots.txt is obeyed, its Crawl-delay.

    >>> host_delay_ms(1.0, 10.0, True), host_delay_ms(1.0, 10.0, False), host_delay_ms(0, None, True)
    (10000, 1000, 0)
    """
    asked = crawl_delay_s if obey_robots and crawl_delay_s is not None else 0.0
    seconds = max(configured_s, min(asked, LONGEST_DELAY))
    # Rounded first, as 1.1 * 1000 is a little more than 1100.
    return ceil(round(seconds * 1000, 6))

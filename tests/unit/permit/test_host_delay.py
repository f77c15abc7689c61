"""The delay between two requests to a host."""

import pytest

from tamias.permit.delay import LONGEST_DELAY_MS, host_delay_ms


@pytest.mark.parametrize(
    ("configured", "crawl_delay", "delay"),
    [
        (1.0, None, 1000),
        (1.0, 0.5, 1000),
        (1.0, 10, 10_000),
        (2.0, 5, 5000),
        (0, None, 0),
        (0, 3, 3000),
        (0.25, None, 250),
        (1.1, None, 1100),
        (0.0001, None, 1),
        (1.0, 121, 121_000),
        (1.0, 86_400, 86_400_000),
        (1.0, 1e300, LONGEST_DELAY_MS),
    ],
)
def test_the_longer_of_our_delay_and_the_crawl_delay_holds(configured, crawl_delay, delay):
    assert host_delay_ms(configured, crawl_delay, obey_robots=True) == delay


def test_without_obeying_robots_only_our_delay_holds():
    assert host_delay_ms(0.5, 10, obey_robots=False) == 500

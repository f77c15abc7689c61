"""Retry-After in seconds and in the three forms of an HTTP date."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamias.permit.delay import LONGEST_WAIT_MS, retry_after_ms

NOW = 784_111_777_000
"""Sun, 06 Nov 1994 08:49:37 GMT."""


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("0", 0),
        ("1", 1000),
        ("120", 120_000),
        (" 120 ", 120_000),
        ("000000000000120", 120_000),
        ("86400", LONGEST_WAIT_MS),
        ("86401", LONGEST_WAIT_MS),
        ("9" * 9000, LONGEST_WAIT_MS),
    ],
)
def test_seconds_are_a_wait_of_at_most_a_day(value, wait):
    assert retry_after_ms(value, NOW) == wait


@pytest.mark.parametrize(
    "value", ["Sun, 06 Nov 1994 08:49:47 GMT", "Sunday, 06-Nov-94 08:49:47 GMT", "Sun Nov  6 08:49:47 1994"]
)
def test_a_date_in_each_of_three_forms_is_a_wait_until_then(value):
    assert retry_after_ms(value, NOW) == 10_000


def test_a_date_that_is_now_is_no_wait():
    assert retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT", NOW) == 0


def test_a_date_far_ahead_is_a_wait_of_a_day():
    assert retry_after_ms("Fri, 31 Dec 9999 23:59:59 GMT", NOW) == LONGEST_WAIT_MS


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        " ",
        "-1",
        "+5",
        "1.5",
        "1e3",
        "soon",
        "1_0",
        "²",
        "٣",
        "120 s",
        "Sun, 06 Nov 1994 08:49:36 GMT",
        "Sun, 06 Nov 1994 25:00:00 GMT",
        "Sun, 31 Feb 2094 08:00:00 GMT",
        "1994-11-06T08:49:37Z",
        "x" * 9000,
    ],
)
def test_what_makes_no_sense_or_has_passed_asks_for_nothing(value):
    assert retry_after_ms(value, NOW) is None


@given(st.text(), st.integers(0, 2**53))
def test_any_text_gives_a_wait_within_bounds_or_none(value, now):
    wait = retry_after_ms(value, now)
    assert wait is None or 0 <= wait <= LONGEST_WAIT_MS

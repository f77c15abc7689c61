"""Hints: what they make us expect, and when they are trusted."""

import pytest

from tamias.schedule.hints import (
    ResourceHints,
    Trust,
    first_interval,
    frequency_days,
    http_hints,
)
from tamias.schedule.visit import DAY_MS

NOW = 784_111_777_000
"""Sun, 06 Nov 1994 08:49:37 GMT."""
EARNED = Trust(right=18, checked=20)


@pytest.mark.parametrize(
    ("word", "days"),
    [
        ("hourly", 1 / 24),
        ("weekly", 7),
        ("http://purl.org/cld/freq/quarterly", 91),
        ("http://publications.europa.eu/resource/authority/frequency/ANNUAL_2", 182),
        ("https://publications.europa.eu/resource/authority/frequency/DAILY", 1),
        ("R/P1M", 30),
        ("R/P0.5D", 0.5),
        ("R/PT12H", 0.5),
        ("R/P1DT12H", 1.5),
        ("Three times a week", 7 / 3),
        ("fortnightly", 14),
        ("irregular", None),
        ("R/P", None),
        ("R/P1.2.3D", None),
        ("", None),
    ],
)
def test_a_word_for_the_frequency_is_understood(word, days):
    assert frequency_days(word) == days


def test_the_frequency_counts_more_than_dates():
    assert first_interval(ResourceHints(frequency="daily", modified_at=NOW - 90 * DAY_MS), NOW) == 1.0


def test_never_is_the_longest_interval():
    assert first_interval(ResourceHints(frequency="never"), NOW) == 180.0


def test_an_old_date_lets_us_expect_a_slow_resource():
    assert first_interval(ResourceHints(modified_at=NOW - 60 * DAY_MS), NOW) == 60.0


def test_a_page_that_was_made_for_us_says_nothing():
    assert first_interval(ResourceHints(modified_at=NOW - 1000, max_age_days=0.001), NOW) is None


def test_nothing_told_is_nothing_expected():
    assert first_interval(ResourceHints(), NOW) is None


def test_a_date_from_the_future_says_nothing():
    assert first_interval(ResourceHints(modified_at=NOW + DAY_MS), NOW) is None


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, ResourceHints()),
        ({"cache-control": "public, max-age=86400"}, ResourceHints(max_age_days=1.0)),
        ({"cache-control": "max-age=0, must-revalidate"}, ResourceHints()),
        ({"cache-control": 'Max-Age="43200"'}, ResourceHints(max_age_days=0.5)),
        ({"expires": "Mon, 07 Nov 1994 08:49:37 GMT"}, ResourceHints(max_age_days=1.0)),
        ({"expires": "0"}, ResourceHints()),
        (
            {"date": "Sat, 05 Nov 1994 08:49:37 GMT", "expires": "Mon, 07 Nov 1994 08:49:37 GMT"},
            ResourceHints(max_age_days=2.0),
        ),
        ({"last-modified": "Sat, 05 Nov 1994 08:49:37 GMT"}, ResourceHints(modified_at=NOW - DAY_MS)),
        ({"last-modified": "yesterday"}, ResourceHints()),
        ({"last-modified": "Sat, 99 Nov 1994 08:49:37 GMT"}, ResourceHints()),
        ({"last-modified": "x" * 9000}, ResourceHints()),
    ],
)
def test_headers_are_understood_or_passed_over(headers, told):
    assert http_hints(headers.get, NOW) == told


@pytest.mark.parametrize(
    ("right", "checked", "earned"), [(20, 20, True), (16, 20, True), (15, 20, False), (19, 19, False)]
)
def test_trust_takes_twenty_tests_and_four_right_in_five(right, checked, earned):
    assert Trust(right, checked).earned is earned


def test_a_date_is_right_when_it_says_what_is_seen():
    trust = Trust().after(True, True).after(False, False).after(True, False).after(False, True)
    assert trust == Trust(right=2, checked=4)


def test_trust_is_lost_when_dates_begin_to_lie():
    trust = Trust()
    for _ in range(300):
        trust = trust.after(True, True)
    assert trust.earned
    for _ in range(15):
        trust = trust.after(True, False)
    assert not trust.earned

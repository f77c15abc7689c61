"""Rates of change in the words of the EU's list."""

import pytest

from tamias.features.dcat.resource import frequency

LIST = "http://publications.europa.eu/resource/authority/frequency/"


@pytest.mark.parametrize(
    ("changes_a_day", "word"),
    [
        (500, "CONT"), (24, "HOURLY"), (2, "DAILY_2"), (1, "DAILY"), (1 / 7, "WEEKLY"), (1 / 30, "MONTHLY"),
        (1 / 91, "QUARTERLY"), (1 / 365, "ANNUAL"), (1 / 3650, "DECENNIAL"), (0, "NEVER"),
    ],
)  # fmt: skip
def test_the_nearest_word_is_taken(changes_a_day, word):
    assert frequency(changes_a_day) == LIST + word


def test_of_an_unknown_rate_nothing_is_said():
    assert frequency(None) is None

"""What a sitemap may say of an address, and what its words come to."""

import pytest

from tamias.model.hint import CHANGE_FREQUENCIES, first_interval_ms, speaks_for

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("sitemap", "url", "speaks"),
    [
        ("http://a.example/sitemap.xml", "http://a.example/b/c", True),
        ("http://a.example/b/sitemap.xml", "http://a.example/b/c", True),
        ("http://a.example/b/sitemap.xml", "http://a.example/c", False),
        ("http://a.example/b/sitemap.xml", "http://a.example/bc", False),
        ("http://a.example/sitemap.xml", "https://a.example/b", False),
        ("http://a.example/sitemap.xml", "http://a.example:81/b", False),
        ("http://a.example/sitemap.xml", "http://a.example.evil.example/b", False),
        ("http://a.example/sitemap.xml", "http://b.example/", False),
        ("http://a.example/map?file=/deep/x.xml", "http://a.example/b", True),
        ("http://a.example/", "http://a.example/b", True),
    ],
)
def test_a_sitemap_speaks_for_its_folder(sitemap, url, speaks):
    assert speaks_for(sitemap, url) is speaks


def test_the_first_interval_grows_with_the_word():
    words = ["always", "hourly", "daily", "weekly", "monthly", "yearly"]
    intervals = [first_interval_ms(word) for word in words]
    assert intervals == sorted(intervals)
    assert intervals[0] == HOUR
    assert {*words, "never"} == CHANGE_FREQUENCIES


def test_what_never_changes_is_not_visited_again():
    assert first_interval_ms("never") is None

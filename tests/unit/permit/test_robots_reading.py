"""How robots.txt is read beyond the RFC: misspellings, delays, sitemaps, and the line that decided."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamias.permit.robots import MOST_LINE_BYTES, Rules, matches, parse


def denied(robots: str, path: str) -> bool:
    return not parse(robots.encode()).verdict(path).allowed


@pytest.mark.parametrize(
    "key",
    ["user-agent", "USER-AGENT", "User-Agent ", "  user-agent", "useragent", "User agent", "\tuser-agent\t"],
)
def test_user_agent_is_understood_in_many_spellings(key):
    assert denied(f"{key}: tamias\nDisallow: /a", "/a")


@pytest.mark.parametrize(
    "key",
    [
        "disallow",
        "DISALLOW",
        " Disallow ",
        "dissallow",
        "dissalow",
        "disalow",
        "diaslow",
        "diasllow",
        "disallaw",
    ],
)
def test_disallow_is_understood_in_many_spellings(key):
    assert denied(f"User-agent: *\n{key}: /a", "/a")


@pytest.mark.parametrize("key", ["allow", "ALLOW", "Allow ", "\tallow"])
def test_allow_is_understood_in_any_case(key):
    assert not denied(f"User-agent: *\nDisallow: /\n{key}: /a", "/a")


@pytest.mark.parametrize(
    "line", ["Disallow /a", "Disallow\t/a", "Disallow   /a", "Disallow:/a", "Disallow :\t /a "]
)
def test_the_colon_may_be_missing_or_surrounded_by_space(line):
    assert denied(f"User-agent: *\n{line}", "/a")


def test_a_forgotten_colon_is_not_forgiven_among_more_than_two_words():
    assert not denied("User-agent: *\nDisallow /a /b", "/a")


@pytest.mark.parametrize("name", ["*", "* ", "*\t", "* all of you"])
def test_a_star_followed_by_space_means_everyone(name):
    assert denied(f"User-agent: {name}\nDisallow: /a", "/a")


def test_a_star_followed_by_letters_means_nobody():
    assert not denied("User-agent: *bot\nDisallow: /a", "/a")


@pytest.mark.parametrize("value", ["", " ", "# all"])
def test_an_empty_disallow_forbids_nothing(value):
    assert not denied(f"User-agent: *\nDisallow: {value}", "/a")


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/", "/any/thing", True),
        ("/*", "/any/thing", True),
        ("/$", "/", True),
        ("/$", "/page", False),
        ("/fish", "/fish", True),
        ("/fish", "/fish.html", True),
        ("/fish", "/fishheads/yummy.html", True),
        ("/fish", "/fish?id=anything", True),
        ("/fish", "/Fish.asp", False),
        ("/fish", "/catfish", False),
        ("/fish", "/?id=fish", False),
        ("/fish*", "/fish", True),
        ("/fish*", "/fishheads", True),
        ("/fish/", "/fish/", True),
        ("/fish/", "/fish/salmon", True),
        ("/fish/", "/fish", False),
        ("/fish/", "/fish.html", False),
        ("/*.php", "/folder/file.php?p=1", True),
        ("/*.php", "/index.php5", True),
        ("/*.php", "/", False),
        ("/*.php", "/windows.PHP", False),
        ("/*.php$", "/folder/file.php", True),
        ("/*.php$", "/file.php?p=1", False),
        ("/*.php$", "/file.php/", False),
        ("/*.php$", "/a.php.php", True),
        ("/fish*.php", "/fishheads/cat.php?p=1", True),
        ("/fish*.php", "/Fish.php", False),
        ("fish", "/fish", False),
        ("*fish", "/catfish", True),
        ("*", "/", True),
        ("$", "/", False),
        ("*$", "/a", True),
        ("/**b", "/ab", True),
        ("/a*b*c$", "/abcbc", True),
        ("/a*bc*c$", "/abc", False),
        ("/a*a$", "/a", False),
        ("/?q=admin/", "/?q=admin/people", True),
        ("/?q=admin/", "/?q=user", False),
        ("/dataset-0/resource-5$", "/dataset-0/resource-5", True),
        ("/dataset-0/resource-5$", "/dataset-0/resource-50", False),
        ("/a;b", "/a;b=c", True),
        ("/a?b#c", "/a?b", True),
    ],
)
def test_a_pattern_matches_from_the_start_of_path_and_query(pattern, path, expected):
    assert denied(f"User-agent: *\nDisallow: {pattern}", path) is expected


def test_allowing_an_index_page_does_not_allow_its_directory():
    assert denied("User-agent: *\nDisallow: /\nAllow: /a/index.html", "/a/")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://example.org", "/"),
        ("https://example.org/", "/"),
        ("https://example.org?a", "/?a"),
        ("https://example.org/a?b=c", "/a?b=c"),
        ("https://example.org/a#b", "/a"),
        ("https://example.org?u=http://x/y", "/?u=http://x/y"),
        ("https://example.org//a", "//a"),
        ("/a?b#c", "/a?b"),
    ],
)
def test_a_url_is_judged_by_its_path_and_query(url, path):
    assert denied(f"User-agent: *\nDisallow: {path}$", url)


def test_a_pattern_of_many_stars_is_matched_in_one_pass():
    assert not matches("/" + "a" * 2000, "/" + "*a" * 1999 + "*b")


def test_a_line_is_read_up_to_its_limit_and_no_further():
    begun = "Disallow: /" + "a" * (MOST_LINE_BYTES - len("Disallow: /"))
    assert denied(f"User-agent: *\n{begun}bbb", begun.removeprefix("Disallow: "))


@pytest.mark.parametrize(
    ("robots", "rule"),
    [
        ("User-agent: *\n\n  Disallow: /a # keep out", "line 3: Disallow: /a # keep out"),
        ("# one\r\nUser-agent: *\r\nDisallow: /\r\nAllow: /a", "line 4: Allow: /a"),
        ("User-agent: *\nDisallow: /%61", "line 2: Disallow: /%61"),
        ("User-agent: *\nDisallow: /b", "no rule of robots.txt matches"),
    ],
)
def test_the_verdict_names_the_line_that_decided(robots, rule):
    assert parse(robots.encode()).verdict("/a").rule == rule


def test_of_two_equal_lines_the_verdict_names_the_first():
    assert parse(b"User-agent: *\nDisallow: /a\nDisallow: /a").verdict("/a").rule == "line 2: Disallow: /a"


def test_a_long_line_is_shown_in_part():
    assert len(parse(b"User-agent: *\nDisallow: /" + b"*" * 9000).verdict("/a").rule) < 250


@pytest.mark.parametrize(
    ("robots", "delay"),
    [
        ("User-agent: *\nCrawl-delay: 10", 10),
        ("User-agent: *\nDisallow: /b\nCrawl-Delay: 0.5", 0.5),
        ("User-agent: *\ncrawl delay: 3 # s", 3),
        ("User-agent: *\nCrawl-delay: 600", 600),
        ("User-agent: *\nCrawl-delay: 2\nDisallow: /b\n\nUser-agent: *\nDisallow: /a\nCrawl-delay: 10", 10),
        ("User-agent: tamias\nCrawl-delay: 5\nDisallow:\nUser-agent: *\nCrawl-delay: 60\nDisallow: /", 5),
        ("User-agent: tamias\nDisallow:\nUser-agent: *\nCrawl-delay: 60\nDisallow: /", None),
        ("User-agent: other\nCrawl-delay: 60\nDisallow:", None),
        ("User-agent: other\nUser-agent: tamias\nCrawl-delay: 60", 60),
        ("User-agent: *\nCrawl-delay: 10\nUser-agent: other\nCrawl-delay: 300", 10),
        ("User-agent: other\nCrawl-delay: 300\nUser-agent: *\nDisallow: /a", None),
        ("Crawl-delay: 10\nUser-agent: *", None),
        ("User-agent: *\nDisallow: /", None),
        ("User-agent: *\nCrawl-delay: -1", None),
        ("User-agent: *\nCrawl-delay: soon", None),
        ("User-agent: *\nCrawl-delay:", None),
        ("User-agent: *\nCrawl-delay: inf", None),
        ("User-agent: *\nCrawl-delay: nan", None),
        ("User-agent: *\nCrawl-delay: 1e999", None),
    ],
)
def test_the_longest_sensible_crawl_delay_of_our_groups_counts(robots, delay):
    assert parse(robots.encode()).crawl_delay == delay


def test_sitemaps_are_found_anywhere_each_once_and_in_order():
    robots = b"Sitemap: https://x/1.xml\nUser-agent: other\nsite-map: https://x/1.xml\nDisallow: /\nSITEMAP:https://x/1.xml\n"
    assert parse(robots + b"Sitemap: HTTP://x/3\n").sitemaps == ("https://x/1.xml", "HTTP://x/3")


def test_a_sitemap_that_is_no_absolute_address_is_passed_over():
    assert parse(b"Sitemap: /2.xml\nSitemap:\nSitemap https\nSitemap: urn:x\n").sitemaps == ()


def test_of_very_many_sitemaps_a_hundred_are_kept():
    robots = b"".join(b"Sitemap: https://x/%d.xml\n" % number for number in range(1000))
    assert len(parse(robots).sitemaps) == 100


@pytest.mark.parametrize(
    ("robots", "signals"),
    [
        ("User-agent: *\nContent-Signal: search=yes # so", [("content-signal", "search=yes")]),
        ("User-agent: *\ncontent-usage: /a train-ai=n", [("content-usage", "/a train-ai=n")]),
        ("User-agent: other\nContent-Signal: search=no", []),
        ("User-agent: other\nUser-agent: tamias\nContent-Signal: a=no", [("content-signal", "a=no")]),
        (
            "User-agent: *\nContent-Signal: a=no\nUser-agent: other\nContent-Signal: b=no",
            [("content-signal", "a=no")],
        ),
        ("User-agent: tamias\nAllow: /\nUser-agent: *\nContent-Signal: a=no", []),
        ("Content-Signal: a=no\nUser-agent: *", []),
        ("User-agent: *\nContent-Signal:", []),
        ("User-agent: *\nContent-Signal: " + "a" * 1001, []),
    ],
)
def test_usage_lines_are_those_of_our_group(robots, signals):
    assert list(parse(robots.encode()).signals) == signals


def test_a_usage_line_does_not_part_the_names_that_share_rules():
    robots = b"User-agent: tamias\nContent-Signal: a=no\nUser-agent: other\nDisallow: /"
    assert not parse(robots).verdict("/a").allowed


@given(st.binary(), st.text())
def test_any_bytes_give_rules_that_judge_any_text_and_can_be_cached(pattern, url):
    rules = parse(b"User-agent: *\nSitemap: " + pattern + b"\nDisallow: /" + pattern)
    cached = msgspec.msgpack.decode(msgspec.msgpack.encode(rules), type=Rules)
    assert cached.verdict(url) == rules.verdict(url)

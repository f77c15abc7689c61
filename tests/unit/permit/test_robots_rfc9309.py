"""The rules of RFC 9309, one by one, in the order of its sections; the name of each test says its rule."""

import msgspec
import pytest

from tamias.permit.availability import (
    LONGEST_CACHED,
    MOST_REDIRECTS,
    SHORTEST_CACHED,
    HostAccess,
    expires_after,
    meaning,
    robots_address,
    rules_of,
)
from tamias.permit.robots import MOST_BYTES, TOKEN, Rules, parse


def allowed(robots: str | bytes, path: str) -> bool:
    body = robots.encode() if isinstance(robots, str) else robots
    return parse(body).verdict("https://example.org" + path).allowed


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://example.org/a/b", "http://example.org/robots.txt"),
        ("https://example.org/a/b", "https://example.org/robots.txt"),
        ("https://example.org:8443/", "https://example.org:8443/robots.txt"),
        ("https://data.example.org", "https://data.example.org/robots.txt"),
        ("https://example.org?q=/a", "https://example.org/robots.txt"),
        ("https://me:pass@example.org/", "https://example.org/robots.txt"),
        ("http://[2001:db8::1]:81/x", "http://[2001:db8::1]:81/robots.txt"),
    ],
)
def test_r1_each_scheme_host_and_port_has_one_robots_txt(url, address):
    assert robots_address(url) == address


def test_r1_robots_txt_is_read_as_utf_8():
    assert not allowed("User-agent: *\nDisallow: /é", "/%C3%A9")


@pytest.mark.parametrize("name", ["tamias", "TAMIAS", "Tamias", "tamias/1.0", "tamias crawler"])
def test_r2_our_token_is_compared_without_case_and_up_to_the_first_other_character(name):
    assert not allowed(f"User-agent: {name}\nDisallow: /", "/a")


@pytest.mark.parametrize(
    "name", ["tamia", "tamiasbot", "tamias-news", "tamias_x", "my tamias", "/tamias", ""]
)
def test_r2_a_name_that_only_resembles_our_token_is_another_crawler(name):
    assert allowed(f"User-agent: {name}\nDisallow: /", "/a")


def test_r2_our_token_is_made_of_letters():
    assert TOKEN.isascii()
    assert TOKEN.isalpha()


def test_r2_a_version_in_our_own_token_is_left_out():
    assert not parse(b"User-agent: tamias\nDisallow: /", "Tamias/2.0").verdict("/a").allowed


MERGED = (
    "User-agent: tamias\nDisallow: /a\n\nUser-agent: *\nDisallow: /c\n\nUser-agent: Tamias\nDisallow: /b\n"
)


@pytest.mark.parametrize(("path", "expected"), [("/a", False), ("/b", False), ("/c", True)])
def test_r3_all_groups_naming_us_are_merged_and_replace_those_for_everyone(path, expected):
    assert allowed(MERGED, path) is expected


@pytest.mark.parametrize("path", ["/a", "/b"])
def test_r3_without_a_group_naming_us_all_groups_for_everyone_are_merged(path):
    assert not allowed(
        "User-agent: *\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: *\nDisallow: /b", path
    )


def test_r3_without_any_group_for_us_there_are_no_rules():
    assert allowed("User-agent: other\nDisallow: /", "/a")


def test_r3_an_empty_group_naming_us_still_replaces_those_for_everyone():
    assert allowed("User-agent: tamias\nDisallow:\n\nUser-agent: *\nDisallow: /", "/a")


def test_r4_consecutive_user_agent_lines_share_one_group():
    assert not allowed("User-agent: tamias\n\n# and\nUser-agent: other\nDisallow: /a", "/a")


def test_r4_a_user_agent_line_after_a_rule_begins_another_group():
    assert allowed("User-agent: tamias\nDisallow: /b\nUser-agent: other\nDisallow: /a", "/a")


def test_r4_a_rule_without_a_value_ends_the_list_of_names_too():
    assert allowed("User-agent: tamias\nDisallow:\nUser-agent: other\nDisallow: /a", "/a")


def test_r4_a_rule_before_any_group_is_ignored():
    assert allowed("Disallow: /\nUser-agent: *\nDisallow: /b", "/a")


@pytest.mark.parametrize(
    "line",
    ["Sitemap: https://example.org/s.xml", "Crawl-delay: 5", "Content-Signal: search=yes", "junk", ":"],
)
def test_r5_other_lines_do_not_end_the_list_of_names(line):
    assert not allowed(f"User-agent: tamias\n{line}\nUser-agent: other\nDisallow: /a", "/a")


@pytest.mark.parametrize("line", ["Sitemap: https://example.org/s.xml", "Crawl-delay: 5", "junk", "\n\n"])
def test_r5_other_lines_do_not_end_the_rules_of_a_group(line):
    assert not allowed(f"User-agent: tamias\nDisallow: /b\n{line}\nDisallow: /a", "/a")


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("Disallow: /\nAllow: /page", "/page", True),
        ("Allow: /\nDisallow: /page", "/page", False),
        ("Disallow: /page\nAllow: /page.html", "/page.html", True),
        ("Disallow: /*.html\nAllow: /a", "/a.html", False),
        ("Allow: /é\nDisallow: /%C3%A9", "/%C3%A9", True),
        ("Disallow: /ééé\nAllow: /*aaaaaaaa", "/%C3%A9%C3%A9%C3%A9aaaaaaaa", False),
    ],
)
def test_r6_the_longest_pattern_in_octets_wins(rules, path, expected):
    assert allowed("User-agent: *\n" + rules, path) is expected


@pytest.mark.parametrize("rules", ["Allow: /a\nDisallow: /a", "Disallow: /a\nAllow: /a"])
def test_r6_of_equally_long_patterns_allow_wins(rules):
    assert allowed("User-agent: *\n" + rules, "/a")


def test_r6_what_no_rule_matches_is_allowed():
    assert allowed("User-agent: *\nDisallow: /b", "/a")


def test_r7_paths_are_compared_with_case():
    assert allowed("User-agent: *\nDisallow: /Data", "/data")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/foo/ツ", "/foo/%E3%83%84"),
        ("/foo/%E3%83%84", "/foo/ツ"),
        ("/foo/%e3%83%84", "/foo/%E3%83%84"),
        ("/foo/%E3%83%84", "/foo/%e3%83%84"),
        ("/foo/baz", "/foo/%62%61%7A"),
        ("/foo/%62%61%7A", "/foo/baz"),
        ("/%7Ejo", "/~jo"),
        ("/a b", "/a%20b"),
        ("/to?u=https://x", "/to?u=https%3A%2F%2Fx"),
        ("/to?u=https%3A%2F%2Fx", "/to?u=https://x"),
    ],
)
def test_r7_both_sides_are_percent_encoded_alike_before_a_denial_is_sought(pattern, path):
    assert not allowed(f"User-agent: *\nDisallow: {pattern}", path)


def test_r7_octets_that_are_no_utf_8_are_percent_encoded_as_they_are():
    assert not allowed(b"User-agent: *\nDisallow: /caf\xe9", "/caf%E9")


def test_r7_an_encoded_slash_in_the_path_is_not_a_slash():
    assert allowed("User-agent: *\nDisallow: /a/b", "/a%2Fb")


def test_r7_an_allowance_holds_only_in_the_spelling_that_every_reading_accepts():
    assert not allowed("User-agent: *\nDisallow: /\nAllow: /foo/%62%61%7A", "/foo/baz")


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/a*c", "/abbbc", False),
        ("/a*c", "/ab", True),
        ("/dataset/*/history", "/dataset/test/history", False),
        ("/dataset/*/history", "/dataset/test", True),
        ("/a$", "/a", False),
        ("/a$", "/ab", True),
        ("/a$b", "/a$b", False),
        ("/a # not /b", "/a", False),
        ("/a#b", "/a", False),
        ("/a%2Ab", "/a*b", False),
        ("/a%2Ab", "/aXb", True),
        ("/a%24", "/a$", False),
        ("/a%24", "/a", True),
    ],
)
def test_r8_star_dollar_and_hash_are_special_and_have_encoded_forms(pattern, path, expected):
    assert allowed(f"User-agent: *\nDisallow: {pattern}", path) is expected


@pytest.mark.parametrize("rules", [parse(b"User-agent: *\nDisallow: /"), rules_of(None, b"")])
def test_r9_robots_txt_itself_is_always_allowed(rules):
    assert rules.verdict("https://example.org/robots.txt").allowed


def test_r9_another_path_that_begins_like_robots_txt_is_not():
    assert not allowed("User-agent: *\nDisallow: /", "/robots.txt.bak")


def test_r10_five_redirects_are_followed():
    assert MOST_REDIRECTS == 5


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_r10_a_redirect_too_many_counts_as_unavailable(status):
    assert meaning(status).access is HostAccess.ALL


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451])
def test_r11_an_unavailable_robots_txt_allows_everything(status):
    assert rules_of(status, b"User-agent: *\nDisallow: /").verdict("/a").allowed


def test_r11_too_many_requests_count_as_unreachable():
    assert not rules_of(429, b"").verdict("/a").allowed


@pytest.mark.parametrize("status", [None, 500, 502, 503, 504, 599, 304, 100, 0, 999])
def test_r12_an_unreachable_robots_txt_forbids_everything(status):
    assert not rules_of(status, b"User-agent: *\nAllow: /").verdict("/a").allowed


def test_r12_the_reason_names_the_status():
    assert "503" in rules_of(503, b"").verdict("/a").rule


@pytest.mark.parametrize("ending", ["\n", "\r", "\r\n"])
def test_r13_every_line_ending_is_known(ending):
    assert not allowed(ending.join(["User-agent: *", "Disallow: /a", ""]), "/a")


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_r13_a_byte_order_mark_is_skipped_even_in_part(mark):
    assert not allowed(mark + b"User-agent: *\nDisallow: /a", "/a")


def test_r13_bad_lines_are_skipped_and_good_ones_used():
    assert not allowed(
        b"\x00\xff\xfe\nUser-agent: *\n<<<>>>\n::::\nDisallow\n\xc3\x28: /\nDisallow: /a", "/a"
    )


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_r13_a_file_in_utf_16_is_understood(encoding):
    assert not allowed("\ufeffUser-agent: *\nDisallow: /a".encode(encoding), "/a")


@pytest.mark.parametrize(
    ("status", "cache_control", "seconds"),
    [
        (200, None, LONGEST_CACHED),
        (200, "", LONGEST_CACHED),
        (404, None, LONGEST_CACHED),
        (200, "public, max-age=3600", 3600),
        (200, 'Max-Age="3600"', 3600),
        (200, "max-age=7200, max-age=3600", 3600),
        (200, "max-age=31536000", LONGEST_CACHED),
        (200, "max-age=" + "9" * 9000, LONGEST_CACHED),
        (200, "max-age=-5", LONGEST_CACHED),
        (200, "max-age=soon", LONGEST_CACHED),
        (200, "max-age=0", SHORTEST_CACHED),
        (200, "no-store", SHORTEST_CACHED),
        (200, "private, no-cache", SHORTEST_CACHED),
        (200, "s-maxage=900", LONGEST_CACHED),
    ],
)
def test_r14_robots_txt_is_kept_for_a_day_or_less_as_cache_control_says(status, cache_control, seconds):
    assert expires_after(status, cache_control) == seconds


@pytest.mark.parametrize("status", [None, 429, 500, 503])
def test_r14_an_unreachable_robots_txt_is_soon_asked_for_again(status):
    assert expires_after(status, "max-age=86400") == 600


def test_r15_five_hundred_kibibytes_are_parsed():
    head = b"User-agent: *\n"
    tail = b"Disallow: /a\n"
    padding = b"#" * (MOST_BYTES - len(head) - len(tail) - 1) + b"\n"
    assert not allowed(head + padding + tail + b"Disallow: /b\n", "/a")


def test_r15_what_comes_after_five_hundred_kibibytes_is_not_parsed():
    assert allowed(b"User-agent: *\n" + b"#" * MOST_BYTES + b"\nDisallow: /b\n", "/b")


def test_r15_a_rule_cut_by_the_limit_is_dropped():
    head = b"User-agent: *\nDisallow: /\n"
    cut = b"Allow: /public/only"
    padding = b"#" * (MOST_BYTES - len(head) - len(b"\nAllow: /pub")) + b"\n"
    assert not allowed(head + padding + cut, "/pub")


@pytest.mark.parametrize(
    "body",
    [b"<!DOCTYPE html>\n<title>Not found</title>", b"\xef\xbb\xbf\n  <html>", b'<?xml version="1.0"?>'],
)
def test_r16_a_web_page_served_as_robots_txt_is_suspect(body):
    assert parse(body).suspect


def test_r16_a_web_page_served_as_robots_txt_has_no_rules():
    assert allowed("<html>\n<p>User-agent: *\n<p>Disallow: /\n</html>", "/a")


@pytest.mark.parametrize("body", [b"", b"User-agent: *\nDisallow: /", b"# <html>"])
def test_r16_a_plain_robots_txt_is_not_suspect(body):
    assert not parse(body).suspect


@pytest.mark.parametrize(
    "rules",
    [
        parse(
            b"User-agent: *\nCrawl-delay: 2\nDisallow: /%7e\xff\xfe\nAllow: /b*\nSitemap: https://x/s\xff.xml"
        ),
        parse(b"<html>"),
        rules_of(503, b""),
    ],
)
def test_rules_survive_being_cached(rules):
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(rules), type=Rules) == rules

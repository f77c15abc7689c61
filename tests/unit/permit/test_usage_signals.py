"""Which usage signals are read, and what they forbid together."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamias.model.site import Signal
from tamias.model.usage import UsageVerdict, reasons, verdict
from tamias.permit.robots import parse
from tamias.permit.signals import content_signal, content_usage, licensed_content, signals_of, tag_rules


def found(headers=(), metas=(), robots=(), **told):
    return [(s.source, s.key, s.value) for s in signals_of(headers, metas, robots, "tamias", **told)]


@pytest.mark.parametrize(
    ("values", "rules"),
    [
        (["noindex"], ["noindex"]),
        (["NoIndex , NOFOLLOW"], ["noindex", "nofollow"]),
        (["noindex", "nofollow"], ["noindex", "nofollow"]),
        (["tamias: noindex"], ["noindex"]),
        (["Tamias: noindex, nofollow"], ["noindex", "nofollow"]),
        (["googlebot: noindex"], []),
        (["googlebot: noindex, tamias: nofollow"], ["nofollow"]),
        (["googlebot: noindex", "nofollow"], ["nofollow"]),
        (["*: noindex"], ["noindex"]),
        (["*=noindex, nosnippet; ExampleBot="], ["noindex", "nosnippet"]),
        (["noindex; tamias=nofollow"], ["noindex", "nofollow"]),
        (["tamias=noindex; tamias=noindex, nofollow"], ["noindex", "nofollow"]),
        (["max-snippet: 20, noindex"], ["max-snippet: 20", "noindex"]),
        (["unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT, noindex"],
         ["unavailable_after: wed 25 jun 2025 15:00:00 gmt", "noindex"]),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST"], ["unavailable_after: 25 jun 2010 15:00:00 pst"]),
        (["", " , ;;=: "], ["=:"]),
        (["noai, noimageai"], ["noai", "noimageai"]),
    ],
)  # fmt: skip
def test_tag_headers_give_the_rules_for_us(values, rules):
    assert tag_rules(values, "tamias") == rules


@pytest.mark.parametrize(
    ("value", "rules"),
    [
        ("*=noindex; tamias=", []),
        ("noindex; tamias=nosnippet", ["nosnippet"]),
        ("*=noindex; other=", ["noindex"]),
    ],
)
def test_in_robots_tag_a_group_of_our_own_stands_instead_of_that_for_all(value, rules):
    assert found([("Robots-Tag", value)]) == [("header", "robots-tag", rule) for rule in rules]


def test_a_rule_behind_eight_kibibytes_of_a_header_is_read():
    assert tag_rules(["max-snippet: 1, " * 600 + "noindex"], "tamias")[-1] == "noindex"


def test_a_rule_that_a_limit_cuts_is_dropped():
    assert tag_rules(["a," * 16_383 + "noindexed"], "tamias") == ["a"]


@pytest.mark.parametrize(
    ("metas", "signals"),
    [
        ([("robots", "noindex, nofollow")], [("robots", "noindex"), ("robots", "nofollow")]),
        ([(" Robots", "NOINDEX")], [("robots", "noindex")]),
        ([("tamias", "none")], [("tamias", "none")]),
        ([("googlebot", "none")], []),
        ([("robots", "")], []),
        ([("tdm-reservation", "1")], [("tdm-reservation", "1")]),
        ([("TDM-Policy", " https://x/p ")], [("tdm-policy", "https://x/p")]),
        ([("tdm-reservation", "yes")], []),
        ([("description", "noindex")], []),
    ],
)
def test_metas_are_read_by_their_names(metas, signals):
    assert found(metas=metas) == [("meta", *signal) for signal in signals]


@pytest.mark.parametrize(
    ("value", "uses"),
    [
        ("train-ai=n", ["train-ai=n"]),
        ("train-ai=n, search=y", ["train-ai=n", "search=y"]),
        ("train-ai=n ,\tsearch=y", ["train-ai=n", "search=y"]),
        ("train-ai=y, train-ai=n", ["train-ai=n"]),
        ("train-ai=n;reason=\"a, b\";x, search=y", ["train-ai=n", "search=y"]),
        ("exp", ["exp=?1"]),
        ("a=?0, b=1.5, c=\"q\\\"\"", ["a=?0", "b=1.5", 'c="q\\""']),
        ("train-ai=n,", []),
        ("train-ai = n", []),
        ("Train-AI=n", []),
        ("train-ai=n search=y", []),
        ("a=\"unclosed", []),
        ("", []),
    ],
)  # fmt: skip
def test_content_usage_is_a_dictionary_or_nothing(value, uses):
    assert content_usage(value) == uses


@given(st.text(alphabet='ab=,;"\\? yn*-1', max_size=60))
def test_content_usage_never_raises(value):
    assert all("=" in use for use in content_usage(value))


def test_content_signals_are_read_generously():
    assert content_signal(" Search = YES ,, ai-train=no,ai-train=no, x") == ["search=yes", "ai-train=no"]


def test_several_content_usage_headers_are_one_dictionary():
    headers = [("Content-Usage", "train-ai=n"), ("content-usage", "search=y")]
    assert found(headers) == [
        ("header", "content-usage", "train-ai=n"),
        ("header", "content-usage", "search=y"),
    ]


@pytest.mark.parametrize(
    ("lines", "url", "uses"),
    [
        (["train-ai=n"], "https://x/a", ["train-ai=n"]),
        (["train-ai=n", "/ok/ train-ai=y"], "https://x/ok/a", ["train-ai=y"]),
        (["train-ai=n", "/ok/ train-ai=y"], "https://x/other", ["train-ai=n"]),
        (["/a search=n", "/a search=y"], "https://x/a", ["search=n", "search=y"]),
        (["/*.ttl$ search=n"], "https://x/a/b.ttl", ["search=n"]),
        (["/a"], "https://x/a", []),
        (["/b search=n"], "https://x/a", []),
    ],
)
def test_of_the_lines_of_robots_txt_the_longest_path_counts(lines, url, uses):
    robots = [("content-usage", line) for line in lines]
    assert found(robots=robots, url=url) == [("robots.txt", "content-usage", use) for use in uses]


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        ([], {}),
        ([("header", "x-robots-tag", "noindex"), ("meta", "robots", "index")], {"noindex"}),
        ([("meta", "robots", "none")], {"noindex", "nofollow"}),
        ([("meta", "tamias", "noindex nofollow")], {"noindex", "nofollow"}),
        ([("header", "robots-tag", "noarchive")], {"noarchive"}),
        ([("header", "x-robots-tag", "nosnippet"), ("header", "x-robots-tag", "noai")], {}),
        ([("robots.txt", "content-signal", "search=no")], {"noindex"}),
        ([("robots.txt", "content-signal", "search=yes")], {}),
        ([("robots.txt", "content-signal", "ai-train=no")], {"no_training"}),
        ([("robots.txt", "content-usage", "train-ai=y"), ("header", "content-usage", "train-ai=n")],
         {"no_training"}),
        ([("robots.txt", "user-agent", "ccbot gptbot")], {"no_training"}),
        ([("ai.txt", "disallow", "line 2: Disallow: /")], {"no_training"}),
        ([("header", "content-signal", "ai-input=no")], {"no_ai_input"}),
        ([("tdmrep.json", "tdm-reservation", "1")], {"tdm_reserved"}),
        ([("tdmrep.json", "tdm-reservation", "1"), ("header", "tdm-reservation", "0")], {}),
        ([("header", "tdm-reservation", "0"), ("meta", "tdm-reservation", "1")], {"tdm_reserved"}),
        ([("tdmrep.json", "tdm-reservation", "1"), ("meta", "tdm-policy", "noindex")], {"tdm_reserved"}),
    ],
)  # fmt: skip
def test_whoever_refuses_wins(signals, expected):
    assert verdict(Signal(*signal) for signal in signals) == UsageVerdict(**dict.fromkeys(expected, True))


def test_a_flood_of_signals_is_bounded():
    assert len(found([("X-Robots-Tag", f"rule{number}") for number in range(5000)])) == 200


ROBOTS = b"""User-agent: *
Disallow: /private

User-agent: GPTBot
User-agent: AI2Bot
Disallow: /
Allow: /open/

User-agent: CCBot/2.0
Disallow: /texts

User-agent: Google-Extended
Allow: /
"""


@pytest.mark.parametrize(
    ("url", "agents"),
    [
        ("https://x/texts/a", "ai2bot gptbot ccbot"),
        ("https://x/a", "ai2bot gptbot"),
        ("https://x/open/a", None),
        ("https://x/private", "ai2bot gptbot"),
    ],
)
def test_the_ai_crawlers_that_robots_txt_keeps_out_are_one_signal(url, agents):
    told = found(robots=parse(ROBOTS).usage(url), url=url)
    assert told == ([("robots.txt", "user-agent", agents)] if agents else [])


def test_rules_for_ai_crawlers_do_not_change_what_we_may_fetch():
    assert parse(ROBOTS).verdict("https://x/texts/a").allowed


def test_of_many_rules_for_an_ai_crawler_those_that_refuse_most_are_kept():
    lines = b"\n".join(b"Allow: /some/long/path/%d" % number for number in range(5000))
    rules = parse(b"User-agent: GPTBot\nDisallow: /\n" + lines)
    assert len(msgspec.msgpack.encode(rules)) < 10_000
    assert rules.usage("https://x/a") == (("user-agent", "gptbot"),)


@pytest.mark.parametrize(("url", "refused"), [("https://x/a.txt", True), ("https://x/a.csv", False)])
def test_ai_txt_is_read_as_a_robots_txt(url, refused):
    told = found(ai=parse(b"User-Agent: *\nDisallow: *.txt\nAllow: /\n"), url=url)
    assert told == ([("ai.txt", "disallow", "line 2: Disallow: *.txt")] if refused else [])


def test_the_reasons_of_a_verdict_are_the_signals_that_decided():
    signals = [
        Signal("tdmrep.json", "tdm-reservation", "1"),
        Signal("header", "tdm-reservation", "0"),
        Signal("robots.txt", "user-agent", "gptbot"),
        Signal("header", "content-signal", "ai-train=no"),
    ]
    because = "robots.txt user-agent: gptbot; header content-signal: ai-train=no"
    assert list(reasons(signals)) == [("no_training", because)]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("full", UsageVerdict()),
        ("reference", UsageVerdict(no_training=True, no_ai_input=True)),
        (
            "immediate",
            UsageVerdict(noarchive=True, tdm_reserved=True, no_training=True, no_ai_input=True),
        ),
    ],
)
def test_the_level_of_use_in_a_content_signal_limits_what_is_done_with_it(level, expected):
    robots = parse(f"User-agent: *\nContent-Signal: search=yes, use={level}\nAllow: /".encode())
    assert verdict(signals_of((), (), robots.usage("https://x/a"), url="https://x/a")) == expected


RSL = """<?xml version="1.0"?><rsl xmlns="https://rslstandard.org/rsl" max-age="7">{}</rsl>"""


@pytest.mark.parametrize(
    ("licences", "refused"),
    [
        ("", []),
        ('<license><permits type="usage">all</permits></license>', []),
        ('<license><permits type="usage">search</permits></license>', ["ai-train", "ai-input"]),
        ('<license><permits type="usage">search ai-all</permits></license>', []),
        ('<license><prohibits type="usage">ai-train</prohibits></license>', ["ai-train"]),
        ('<license><prohibits type="usage">ai-all</prohibits></license>', ["ai-train", "ai-input"]),
        ('<license><prohibits type="usage">all</prohibits></license>', ["search", "ai-train", "ai-input"]),
        (
            '<license><permits type="usage">ai-train</permits><payment type="subscription"/></license>'
            '<license><permits type="usage">search,ai-input</permits><payment type="attribution"/></license>',
            ["ai-train"],
        ),
        ('<license><permits type="user">education</permits></license>', ["search", "ai-train", "ai-input"]),
        ("<license><payment/></license>", []),
        ("<license><payment><amount>1</amount></payment></license>", ["search", "ai-train", "ai-input"]),
    ],
)
def test_a_licence_refuses_what_it_does_not_allow_for_nothing(licences, refused):
    body = RSL.format(f'<content url="/a/">{licences}</content>').encode()
    licensed = licensed_content(body, "https://x")
    assert found(url="https://x/a/b", licensed=licensed) == [
        ("rsl", "license", f"{use}=no") for use in refused
    ]
    assert found(url="https://x/b", licensed=licensed) == []


def test_the_longest_pattern_of_a_licence_decides_and_addresses_of_other_hosts_do_not():
    none, all_of_it = ('<prohibits type="usage">all</prohibits>', '<permits type="usage">all</permits>')
    parts = {"/": none, "https://x/open/*.csv": all_of_it, "https://y/": none}
    body = "".join(f'<content url="{url}"><license>{said}</license></content>' for url, said in parts.items())
    licensed = licensed_content(RSL.format(body).encode(), "https://x")
    assert found(url="https://x/open/a.csv", licensed=licensed) == []
    refused = [value for *_, value in found(url="https://x/open/a.ttl", licensed=licensed)]
    assert refused == ["search=no", "ai-train=no", "ai-input=no"]
    assert len(licensed) == 2


@pytest.mark.parametrize(
    "body", [b"", b"<rsl>", b"<html/>", b"\xff", b'<!DOCTYPE r [<!ENTITY a "b">]><rsl>&a;</rsl>']
)
def test_what_is_no_licence_says_nothing(body):
    assert licensed_content(body, "https://x") == ()


def test_licences_of_robots_txt_are_signals_whichever_group_they_stand_in():
    rules = parse(b"User-agent: GPTBot\nDisallow: /a\n\nLicense: https://x/rsl.xml\nLicense: none\n")
    assert found(robots=rules.usage("https://x/b")) == [("robots.txt", "license", "https://x/rsl.xml")]

"""How `/.well-known/tdmrep.json` is read, and which of its rules a URL meets."""

import json

import msgspec
import pytest

from tamias.model.site import Signal
from tamias.permit.signals import TdmRule, signals_of, tdm_file_signals, tdm_rules

FILE = json.dumps(
    [
        {"location": "/a/open/*.jpg", "tdm-reservation": 0},
        {"location": "/a/", "tdm-reservation": 1, "tdm-policy": "https://x/p.json"},
        {"location": "/b$", "tdm-reservation": "1"},
        {"location": "/a/late", "tdm-reservation": 0},
    ]
).encode()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://x/a/open/1.jpg", [("tdm-reservation", "0")]),
        ("https://x/a/1", [("tdm-reservation", "1"), ("tdm-policy", "https://x/p.json")]),
        ("https://x/a/late", [("tdm-reservation", "1"), ("tdm-policy", "https://x/p.json")]),
        ("https://x/%61/1", [("tdm-reservation", "1"), ("tdm-policy", "https://x/p.json")]),
        ("https://x/b", [("tdm-reservation", "1")]),
        ("https://x/bc", []),
        ("https://x/A/1", []),
    ],
)
def test_the_first_rule_that_matches_counts(url, told):
    assert tdm_file_signals(tdm_rules(FILE), url) == tuple(Signal("tdmrep.json", *each) for each in told)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b'{"location": "/"}',
        b"[" * 100_000,
        b'[1, null, {"location": 3}, {"location": "elsewhere"}]',
        b"\xff\xfe",
    ],
)
def test_a_file_that_makes_no_sense_says_nothing(body):
    assert tdm_rules(body) == ()


@pytest.mark.parametrize("value", ["true", "2", '"yes"', "[]", "null"])
def test_a_value_that_is_neither_0_nor_1_is_not_given(value):
    rules = tdm_rules(b'[{"location": "/", "tdm-reservation": %s}]' % value.encode())
    assert tdm_file_signals(rules, "https://x/") == ()


def test_rules_can_be_cached():
    rules = tdm_rules(FILE)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(rules), type=tuple[TdmRule, ...]) == rules


def test_the_file_is_one_of_the_sources_of_a_capture():
    signals = signals_of([("TDM-Reservation", "0")], [], [], url="https://x/b", tdm=tdm_rules(FILE))
    assert [(signal.source, signal.value) for signal in signals] == [("tdmrep.json", "1"), ("header", "0")]

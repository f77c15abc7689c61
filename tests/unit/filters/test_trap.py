"""Shapes of URLs that endless sites produce."""

import pytest

from tamias.filters.url_filters import TrapFilter
from tamias.model.errors import ConfigError
from tests.messages import unnamed, unsaid


def path(count):
    return "http://h/" + "/".join(f"s{number}" for number in range(count))


def query(count):
    return "http://h/?" + "&".join(f"k{number}=v" for number in range(count))


@pytest.mark.parametrize(
    "url",
    [
        "http://h/",
        "http://h/" + "x" * (2083 - len("http://h/")),
        path(20),
        query(30),
        "http://h/a/a/b",
        "http://h/a/b/a/b/a/c",
        "http://h/a/x/a/y/a/z",
        "http://h/1/2/3/1/2/3/",
        "http://h////////a",
        "http://h/?u=/a/a/a/a/",
        "urn:a/a/a/a/a",
        "",
    ],
)
def test_ordinary_urls_are_let_in(url):
    assert TrapFilter().refuse(url, 1_000_000) is None


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("http://h/" + "x" * (2084 - len("http://h/")), ("2084", "max_length 2083")),
        (path(21), ("21", "max_segments 20")),
        (query(31), ("31", "max_query_pairs 30")),
        ("http://h/a/a/a", ("/a ", "max_repeats 2")),
        ("http://h/x/y/a/a/a/", (" /a ", "max_repeats")),
        ("http://h/x/a/b/a/b/a/b", (" /a/b ", "max_repeats")),
        ("http://h/x/b/a/b/a/b/a/c", (" /b/a ", "max_repeats")),
        ("http://h/a//a//a", (" /a ", "max_repeats")),
        ("http://h/1/2/3/1/2/3/1/2/3", (" /1/2/3 ", "max_repeats")),
        ("http://h/a/b/b/a/b/b/a/b/b", (" /a/b/b ", "max_repeats")),
    ],
)
def test_traps_are_kept_out_with_rule_and_limit(url, names):
    assert not unnamed(TrapFilter().refuse(url, 0), "trap: ", *names)


@pytest.mark.parametrize(("depth", "refused"), [(0, False), (3, False), (4, True)])
def test_depth_is_counted_from_the_seeds(depth, refused):
    assert bool(TrapFilter(max_depth=3).refuse("http://h/", depth)) is refused


def test_the_reason_names_the_depth_and_its_limit():
    assert not unsaid(TrapFilter(max_depth=3).refuse("http://h/", 4), "4", "max_depth", "3")


@pytest.mark.parametrize(
    ("limit", "url"),
    [
        ({"max_length": 10}, "http://h/ab"),
        ({"max_segments": 1}, "http://h/a/b"),
        ({"max_repeats": 1}, "http://h/a/a"),
        ({"max_query_pairs": 0}, "http://h/?a"),
    ],
)
def test_each_limit_can_be_set(limit, url):
    assert next(iter(limit)) in (TrapFilter(**limit).refuse(url, 0) or "")


def test_less_than_one_repeat_is_a_wrong_setting():
    with pytest.raises(ConfigError, match="max_repeats"):
        TrapFilter(max_repeats=0)

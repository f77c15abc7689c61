"""How far from its seeds a crawl may go."""

import pytest

from tamias.filters.url_filters import ScopeFilter
from tamias.model.errors import ConfigError, UrlError

SEEDS = ["https://data.Example.org/catalog/index.html?page=1", "http://other.net"]


@pytest.mark.parametrize(
    ("scope", "url"),
    [
        ("any", "http://anywhere.com/"),
        ("any", "not even a URL"),
        ("host", "https://data.example.org/x"),
        ("host", "http://data.example.org:8080/x"),
        ("host", "http://data.example.org./x"),
        ("host", "http://other.net/a"),
        ("domain", "http://www.example.org/"),
        ("domain", "http://example.org/"),
        ("prefix", "https://data.example.org/catalog/"),
        ("prefix", "http://data.example.org/catalog/a/b?c"),
        ("prefix", "https://other.net/a"),
    ],
)
def test_what_is_inside_the_scope_is_let_in(scope, url):
    assert ScopeFilter(scope, SEEDS).refuse(url, 0) is None


@pytest.mark.parametrize(
    ("scope", "url"),
    [
        ("host", "https://www.example.org/"),
        ("host", "https://data.example.org.evil.com/"),
        ("host", "https://data.example.org@evil.com/"),
        ("domain", "https://example.com/"),
        ("domain", "https://notexample.org/"),
        ("prefix", "https://data.example.org/"),
        ("prefix", "https://data.example.org/catalogue"),
        ("prefix", "https://data.example.org:8080/catalog/"),
        ("prefix", "https://other.net.evil.com/"),
        ("host", "not even a URL"),
        ("domain", "not even a URL"),
        ("prefix", "not even a URL"),
    ],
)
def test_what_is_outside_the_scope_is_kept_out_with_its_name(scope, url):
    assert (ScopeFilter(scope, SEEDS).refuse(url, 0) or "").startswith(f"scope {scope}: ")


def test_a_seed_without_a_path_does_not_open_its_whole_scheme():
    assert ScopeFilter("prefix", ["sftp://h"]).refuse("sftp://other/", 0)


def test_a_scope_that_does_not_exist_is_a_wrong_setting():
    with pytest.raises(ConfigError, match="planet"):
        ScopeFilter("planet", SEEDS)


def test_a_seed_that_is_no_url_is_said():
    with pytest.raises(UrlError, match="example"):
        ScopeFilter("host", ["example.org"])

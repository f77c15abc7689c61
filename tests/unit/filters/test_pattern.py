"""The user's regular expressions."""

import pytest

from tamias.filters.url_filters import PatternFilter
from tamias.model.errors import ConfigError


@pytest.mark.parametrize(
    ("include", "exclude", "url"),
    [
        ([], [], "http://h/"),
        (["dataset"], [], "http://h/dataset/1"),
        (["^http://h/"], [], "http://h/a"),
        (["a", "b"], [], "http://h/xb"),
        (["h/.*x$"], [], "http://h/abcx"),
        (["(?i)DATA"], [], "http://h/data"),
        ([], ["^https:"], "http://h/"),
    ],
)
def test_urls_that_are_let_in(include, exclude, url):
    assert PatternFilter(include, exclude).refuse(url, 0) is None


@pytest.mark.parametrize(
    ("include", "exclude", "url", "reason"),
    [
        (["dataset"], [], "http://h/other", "no include matches"),
        (["^h/"], [], "http://h/", "no include matches"),
        (["DATA"], [], "http://h/data", "no include matches"),
        ([], ["login", r"\.zip$"], "http://h/a.zip", r"exclude '\\.zip$'"),
        (["dataset"], ["dataset/secret"], "http://h/dataset/secret", "exclude"),
    ],
)
def test_urls_that_are_kept_out_and_why(include, exclude, url, reason):
    assert reason in (PatternFilter(include, exclude).refuse(url, 0) or "")


@pytest.mark.parametrize(
    ("setting", "pattern", "words"),
    [
        ("include", "a(b", r"include 'a\(b' .*unterminated.* at position 1"),
        ("exclude", "*", r"exclude '\*' .*nothing to repeat at position 0"),
        ("exclude", "a{99999999999999999999}", "exclude 'a{9"),
    ],
)
def test_a_bad_expression_is_named_with_its_setting_and_position(setting, pattern, words):
    with pytest.raises(ConfigError, match=words):
        PatternFilter(**{setting: [pattern]})

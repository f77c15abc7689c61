"""The key that decides whether a URL is known: each rule, and each mistake known from elsewhere."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tamias.model.errors import UrlError
from tamias.model.url import fetch_url, key_of_fetched, url_key

PIECES = st.one_of(
    st.sampled_from(["http://", "https://", "ftps://", "sftp://", "foo://", "file:///", ":990", ":22"]),
    st.sampled_from([":80", "h", "H.", "@", "/", "//", ".", "..", "%2e", "%2E", "%2f", "C|", "C:", "%43"]),
    st.sampled_from(["%7e", "%41", "%", "%%341", "%4%31", "+", "%20", " ", "é", "#", "|", "^"]),
    st.sampled_from([";", ";jsessionid=1", ";SID=", "?", "&", "=", "sid=1", "%73id=1", "b=1", "a"]),
)
ADDRESSES = st.lists(PIECES, max_size=12).map("".join)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        # default ports
        ("http://h:80/", "http://h/"),
        ("HTTPS://h:443/", "https://h/"),
        ("ftp://h:21/", "ftp://h/"),
        ("ftps://h:990/", "ftps://h/"),
        ("sftp://h:22/", "sftp://h/"),
        ("http://h:8080/", "http://h:8080/"),
        ("ftps://h:90/", "ftps://h:90/"),
        # escapes
        ("http://h/%7eme", "http://h/~me"),
        ("http://h/%2E%39%5A%7a%2d%5F", "http://h/.9Zz-_"),
        ("http://h/%c3%a9%2f", "http://h/%C3%A9%2F"),
        ("http://h/a%2Fb", "http://h/a%2Fb"),
        ("http://h/%2541", "http://h/%2541"),
        ("http://h/%%341", "http://h/%2541"),
        ("http://h/100%", "http://h/100%25"),
        ("http://h/?q=%7E%3d", "http://h/?q=~%3D"),
        # paths
        ("http://h", "http://h/"),
        ("sftp://h", "sftp://h/"),
        ("http://h/a/./b/../c", "http://h/a/c"),
        ("http://h/a/%2e%2E/c", "http://h/c"),
        ("http://h//a///b//", "http://h/a/b/"),
        ("http://h/?u=http://x//y", "http://h/?u=http://x//y"),
        ("http://h/a", "http://h/a"),
        ("http://h/a/", "http://h/a/"),
        # fragments
        ("http://h/dump.gz#Resource1", "http://h/dump.gz"),
        ("http://h/#", "http://h/"),
        # query order
        ("http://h/?b=1&a=2&a=1", "http://h/?a=2&a=1&b=1"),
        ("http://h/?x=a%26b&y=1", "http://h/?x=a%26b&y=1"),
        ("http://h/?y=1&x=a%26b", "http://h/?x=a%26b&y=1"),
        ("http://h/?a=1&a", "http://h/?a=1&a"),
        ("http://h/?a.b=1&a=2", "http://h/?a=2&a.b=1"),
        ("http://h/?", "http://h/"),
        ("http://h/?&&a&", "http://h/?a"),
        ("http://h/?b%3d=1&a=1", "http://h/?a=1&b%3D=1"),
        # sessions
        ("http://h/?SESSIONID=1", "http://h/"),
        ("http://h/?a=1&PhpSessId=2&jsessionid=3&sid=4&b", "http://h/?a=1&b"),
        ("http://h/?%53ID=1", "http://h/"),
        ("http://h/?sidecar=1&mysid=2", "http://h/?mysid=2&sidecar=1"),
        ("http://h/a;jsessionid=0A/b;x=1;JSESSIONID=2?c", "http://h/a/b;x=1?c"),
        ("http://h/a;jsessionids=0", "http://h/a;jsessionids=0"),
        ("http://h/a/..;jsessionid=1/b", "http://h/b"),
        # hosts
        ("http://EXAMPLE.org./", "http://example.org/"),
        ("http://example.org.:8080/", "http://example.org:8080/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://User:Pa.@h./", "http://User:Pa.@h/"),
        ("http://./", "http://./"),
        ("http://a../", "http://a../"),
        # what has no host is its own key
        ("urn:a:%7E?b&a", "urn:a:%7E?b&a"),
        ("mailto:a@b", "mailto:a@b"),
    ],
)
def test_the_key_of_a_url(url, key):
    assert url_key(url) == key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://h/a+b", "http://h/a%20b"),
        ("http://h/?q=a+b", "http://h/?q=a%20b"),
        ("http://h/a%2Fb", "http://h/a/b"),
        ("http://h/", "https://h/"),
        ("http://h/a", "http://h/A"),
        ("http://h/a", "http://h/a/"),
        ("http://u@h/", "http://h/"),
        ("http://h/?a=1&a=2", "http://h/?a=2&a=1"),
        ("http://h/?a", "http://h/?a="),
        ("http://h/%3Fa", "http://h/?a"),
    ],
)
def test_urls_that_may_differ_keep_different_keys(one, other):
    assert url_key(one) != url_key(other)


def test_other_session_names_can_be_given():
    url = "http://h/a;token=1?Token=2&sid=3"
    assert url_key(url, frozenset({"token"})) == "http://h/a?sid=3"


def test_without_session_names_nothing_is_taken_for_a_session():
    url = "http://h/a;jsessionid=1?sid=3"
    assert url_key(url, frozenset()) == url


def test_what_is_no_url_has_no_key():
    with pytest.raises(UrlError):
        url_key("no url")


def test_the_key_of_a_key_is_the_key_on_the_public_suite(suites):
    text = (suites("wpt-url-tests") / "urltestdata.json").read_text(encoding="utf-8")
    cases = [case for case in json.loads(text) if isinstance(case, dict) and not case.get("failure")]
    assert len(cases) > 600
    keys = [url_key(case["href"]) for case in cases]
    assert [key for key in keys if url_key(key) != key] == []


@given(ADDRESSES)
@example("http://h/a/..;jsessionid=1/..;sid=/b")
@example("file:////C|/a")
@example("file:///%43|/a")
@example("http://0x7f.1../")
@example("foo://./")
def test_the_key_of_a_key_is_the_key(address):
    try:
        url = fetch_url(address)
    except UrlError:
        return
    key = url_key(address)
    assert (url_key(url), url_key(key), fetch_url(key)) == (key, key, key)


@given(ADDRESSES)
@example("http://h/a")
@example("http://h./a")
def test_the_key_of_a_fetched_url_is_its_key(address):
    try:
        url = fetch_url(address)
    except UrlError:
        return
    assert key_of_fetched(url) == url_key(url)

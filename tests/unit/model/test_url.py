"""URLs as they are fetched, resolved and queued."""

import json
from pathlib import Path

import ada_url
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from publicsuffixlist import PSLFILE, PublicSuffixList

from tamias.model.errors import UrlError
from tamias.model.url import authority, fetch_url, host, host_key, resolve

WEB = ("http:", "https:")

PIECES = st.one_of(
    st.sampled_from(["http:", "https://", "HTTP://", "ftp://", "mailto:", "//", "/", "\\", "?", "@", ":"]),
    st.sampled_from(["example", ".org", "xn--", "%78n--", "80", "443", "0x7f", "1.2.3.4", "[::1]", "C|"]),
    st.sampled_from(["..", ".", "%2e", "%2E", "%41", "%", "^", "|", "'", '"', " ", "\t", "\n", "\x00", "&"]),
    st.sampled_from(["=", ";", "#", "a", "+", "~", "é", "ß", "\ud800"]),
)
REFERENCES = st.lists(PIECES, max_size=9).map("".join) | st.text(max_size=30)
BASES = st.one_of(
    st.sampled_from(["http://www.example.org/a/b/c?x=1#f", "https://u:p@h:8080/", "http://h/a^b/c"]),
    st.sampled_from(["http://xn--bcher-kva.de/x", "http://bücher.de/ü/", "ftp://f/x/y"]),
    st.sampled_from(["file:///C:/a/b", "urn:a:b", "no base"]),
)


def scalar_values(text):
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def standard(address, base=None):
    """What the WHATWG standard says, without the fragment; None for a failure."""
    try:
        if base is None:
            return ada_url.normalize_url(scalar_values(address)).partition("#")[0]
        return ada_url.join_url(scalar_values(base), scalar_values(address)).partition("#")[0]
    except ValueError:
        return None


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except UrlError:
        return None


@pytest.fixture(scope="module")
def cases(suites):
    text = (suites("wpt-url-tests") / "urltestdata.json").read_text(encoding="utf-8")
    return [case for case in json.loads(text) if isinstance(case, dict)]


def href(case):
    return None if case.get("failure") else case["href"].partition("#")[0]


def test_absolute_urls_are_parsed_as_the_standard_says(cases):
    absolute = [case for case in cases if case.get("base") is None]
    assert len(absolute) > 500
    wrong = [case["input"] for case in absolute if outcome(fetch_url, case["input"]) != href(case)]
    assert wrong == []


def test_references_are_resolved_as_the_standard_says(cases):
    based = [case for case in cases if case.get("base") is not None]
    assert sum(case["base"].startswith(WEB) for case in based) > 200
    wrong = [case for case in based if outcome(resolve, case["input"], case["base"]) != href(case)]
    assert wrong == []


def test_the_form_to_fetch_stays_as_it_is_when_parsed_again(cases):
    urls = [url for case in cases if (url := href(case))]
    assert [url for url in urls if fetch_url(url) != url] == []


@given(REFERENCES)
@example("http://h/a^b")
@example("http://xn--/")
@example("http://%78n--/")
@example("HTTP://faß.ExAmPlE/")
@example("foo:opaque  #x")
def test_any_address_is_parsed_as_the_standard_says(address):
    assert outcome(fetch_url, address) == standard(address)


@given(REFERENCES, BASES)
@example("", "http://h/a?b#c")
@example("//other/x", "https://h/")
@example("?q", "http://h/a^b/c")
@example("x", "http://bücher.de/ü/")
@example("http://h/", "no base")
def test_any_reference_is_resolved_as_the_standard_says(reference, base):
    assert outcome(resolve, reference, base) == standard(reference, base)


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("http://example.org", "http://example.org/"),
        ("http://example.org:80/dump.gz#Resource1", "http://example.org/dump.gz"),
        ("https://Bücher.example/ä?ö", "https://xn--bcher-kva.example/%C3%A4?%C3%B6"),
        ("http://h/a?b=2&a=1&sid=3", "http://h/a?b=2&a=1&sid=3"),
        ("http://h/%7e%2f?", "http://h/%7e%2f?"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://h/\ud800", "http://h/%EF%BF%BD"),
        ("urn:isbn:1#x", "urn:isbn:1"),
    ],
)
def test_the_form_to_fetch(address, url):
    assert fetch_url(address) == url


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "scheme"),
        ("example.org/a", "scheme"),
        ("http://", "host"),
        ("ftp:///", "host"),
        ("https://h:99999/", "port"),
        ("http://a b/", "host"),
        ("\ud800", "scheme"),
    ],
)
def test_what_is_no_url_is_said_in_a_sentence(address, words):
    with pytest.raises(UrlError, match=words):
        fetch_url(address)


def test_a_complaint_shows_no_control_characters_and_not_all_of_a_long_address():
    with pytest.raises(UrlError) as raised:
        fetch_url("\x1b[31m" + "x" * 100_000)
    message = str(raised.value)
    assert "\x1b" not in message
    assert len(message) < 400


def test_a_bad_reference_is_named_together_with_its_document():
    with pytest.raises(UrlError, match=r"'http://' in 'http://h/page'"):
        resolve("http://", "http://h/page")


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://example.org/", "example.org"),
        ("https://www.example.org:8443/a", "example.org"),
        ("http://user:secret@www.example.org/", "example.org"),
        ("http://example.org./", "example.org"),
        ("http://a.b.example.co.uk/", "example.co.uk"),
        ("http://co.uk/", "co.uk"),
        ("http://someone.github.io/", "someone.github.io"),
        ("http://github.io/", "github.io"),
        ("http://x.city.kawasaki.jp/", "city.kawasaki.jp"),
        ("http://a.b.kawasaki.jp/", "a.b.kawasaki.jp"),
        ("http://x.y.example.unknowntld/", "example.unknowntld"),
        ("http://localhost:8000/", "localhost"),
        ("http://intranet./", "intranet"),
        ("http://127.0.0.1:8000/", "127.0.0.1"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://10.0.0.1./", "10.0.0.1"),
        ("http://[::1]:8080/", "::1"),
        ("http://[2001:DB8:0:0::0001]/", "2001:db8::1"),
        ("http://[::ffff:127.0.0.1]/", "::ffff:7f00:1"),
        ("http://www.bücher.example.de/", "example.de"),
        ("http://www.bücher.de/", "xn--bcher-kva.de"),
        ("http://www.食狮.公司.cn/", "xn--85x722f.xn--55qx5d.cn"),
        ("sftp://FTP.Example.ORG/x", "example.org"),
        ("ftp://ftp.example.org/", "example.org"),
        ("http://a..b/", "a..b"),
        ("http://./", "."),
        ("urn:isbn:1", "urn"),
        ("mailto:a@b", "mailto"),
        ("file:///etc/hosts", "file"),
    ],
)
def test_the_queue_of_a_url(url, key):
    assert host_key(fetch_url(url)) == key


def test_every_rule_of_the_public_suffix_list_counts_as_its_library_reads_it():
    library = PublicSuffixList()
    lines = Path(PSLFILE).read_text(encoding="utf-8").splitlines()
    rules = [line.lstrip("!*.") for line in lines if line and not line.startswith("//")]
    names = [fetch_url(f"http://a.b.{rule}/")[len("http://") : -1] for rule in rules]
    assert len(names) > 9000
    assert [host_key(f"http://{name}/") for name in names] == [library.privatesuffix(name) for name in names]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.org/a/b?c", "http://example.org"),
        ("https://example.org:8443/", "https://example.org:8443"),
        ("http://user:p%40ss@example.org/", "http://example.org"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("foo://h?q@x", "foo://h"),
        ("urn:isbn:1", "urn:"),
    ],
)
def test_the_authority_is_scheme_host_and_port(url, expected):
    assert authority(url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://u:1@www.example.org.:81/", "www.example.org"),
        ("http://[::1]:8080/", "[::1]"),
        ("http://[::1]/", "[::1]"),
        ("http://./", "."),
        ("urn:isbn:1", ""),
    ],
)
def test_the_host_has_no_port_and_no_final_dot(url, expected):
    assert host(url) == expected


@pytest.mark.parametrize("function", [authority, host, host_key])
def test_what_has_no_scheme_has_no_queue_and_no_authority(function):
    with pytest.raises(UrlError):
        function("//example.org/")

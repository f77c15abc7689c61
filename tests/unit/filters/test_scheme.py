"""Schemes that are fetched, and ports that are not."""

import pytest

from tamias.filters.url_filters import SchemeFilter


@pytest.mark.parametrize(
    "url",
    [
        "http://h/",
        "https://h:8443/",
        "ftp://h/a",
        "http://h:81/",
        "http://h/a:25/",
        "http://h/?u=http://x:25/",
        "http://user:25@h/",
        "http://[::25]/",
    ],
)
def test_web_addresses_are_let_in(url):
    assert SchemeFilter().refuse(url, 0) is None


@pytest.mark.parametrize("url", ["mailto:a@b", "javascript:void(0)", "data:,x", "file:///a", "urn:a", ""])
def test_other_schemes_are_named_and_kept_out(url):
    reason = SchemeFilter().refuse(url, 0)
    assert reason is not None
    assert repr(url.partition(":")[0]) in reason


@pytest.mark.parametrize("url", ["http://h:25/", "https://[::1]:6667/", "ftp://u:p@h:22/a", "http://h:0/"])
def test_ports_of_other_services_are_kept_out(url):
    assert "port" in (SchemeFilter().refuse(url, 0) or "")


def test_the_reason_names_the_port():
    assert "port 25 " in (SchemeFilter().refuse("http://h:25/", 0) or "")


def test_the_schemes_can_be_chosen():
    chosen = SchemeFilter(frozenset({"SFTP"}))
    assert [bool(chosen.refuse(url, 0)) for url in ("sftp://h:22/", "http://h/")] == [False, True]


def test_a_long_scheme_does_not_fill_the_reason():
    assert len(SchemeFilter().refuse("x" * 100_000, 0) or "") < 200

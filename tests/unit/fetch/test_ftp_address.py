"""FTP addresses: what the server is asked for, and what is shown."""

import pytest

from tamias.features.ftp.fetcher import of_reply
from tamias.features.ftp.transfer import ftp_address
from tamias.model.capture import Outcome


@pytest.mark.parametrize(
    ("url", "asked", "is_directory"),
    [
        ("ftp://h/a/b.nt", "ftp://h/a/b.nt", False),
        ("ftp://h/a/", "ftp://h/a/", True),
        ("ftps://h:2990", "ftps://h:2990/", True),
        ("ftp://h/%2Fabsolute", "ftp://h/%2Fabsolute", False),
        ("ftp://h/a?b/", "ftp://h/a%3Fb/", True),
        ("ftp://h/a;type=a", "ftp://h/a", False),
        ("ftp://h/a/;type=d", "ftp://h/a/", True),
        ("ftp://h/a%3Btype=d", "ftp://h/a%3Btype=d", False),
        ("ftp://me:pass@[::1]:21/a", "ftp://[::1]:21/a", False),
    ],
)
def test_an_address_is_asked_for_as_a_path(url, asked, is_directory):
    address = ftp_address(url)
    assert (address.request_url, address.is_directory) == (asked, is_directory)


@pytest.mark.parametrize(
    ("url", "user", "password", "shown"),
    [
        ("ftp://h/a", None, None, "ftp://h/a"),
        ("ftp://me@h/a", "me", None, "ftp://me@h/a"),
        ("ftp://me:se%3Acret@h/a", "me", "se:cret", "ftp://me@h/a"),
        ("ftp://m%40e:@h/a", "m@e", "", "ftp://m%40e@h/a"),
        ("ftp://@h/a", None, None, "ftp://h/a"),
    ],
)
def test_who_asks_is_known_and_a_password_not_shown(url, user, password, shown):
    address = ftp_address(url)
    assert (address.user, address.password, address.shown) == (user, password, shown)


@pytest.mark.parametrize(
    "url",
    ["http://h/a", "ftp:/a", "ftp:///a", "ftp://h/ä", "ftp://h/a%0Db", "ftp://m%0Ae@h/", "ftp://a:%00@h/"],
)
def test_what_cannot_be_asked_for_is_no_address(url):
    assert ftp_address(url) is None


@pytest.mark.parametrize(
    ("status", "words", "outcome", "retry"),
    [
        (550, "No such file or directory", Outcome.GONE, False),
        (550, "Permission denied", Outcome.FAILED, False),
        (530, "Not logged in", Outcome.REFUSED, False),
        (530, "Sorry, the maximum number of clients is already connected", Outcome.FAILED, True),
        (532, "Need account", Outcome.REFUSED, False),
        (421, "Service not available", Outcome.FAILED, True),
        (425, "Can't open data connection", Outcome.FAILED, True),
        (500, "Command not understood", Outcome.FAILED, False),
    ],
)
def test_a_reply_is_judged(status, words, outcome, retry):
    verdict = of_reply(status, words)
    assert (verdict.outcome, verdict.retry, verdict.reason) == (outcome, retry, f"{status} {words}")


def test_the_words_of_a_server_are_bounded_and_printable():
    assert of_reply(550, "\x1b[31m" + "x" * 1000).reason == "550 [31m" + "x" * 196

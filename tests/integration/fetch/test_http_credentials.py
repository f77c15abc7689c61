"""Credentials on the wire: to their own origin, hop by hop, and never into the record of a request."""

import pytest
from loopback_web import go_anywhere, ok

from tamias.fetch.credentials import WITHHELD, SourceCredential, SourceCredentials
from tamias.model.capture import Outcome, Request

SECRET = "hush-hush-42"


def redirect(location, *fields):
    head = [b"HTTP/1.1 302 Over There", b"Location: " + location, b"Content-Length: 0", *fields]
    return b"\r\n".join(head) + b"\r\n\r\n"


@pytest.fixture
def settings(web):
    credential = SourceCredential(web.url("/in"), [("X-Api-Key", SECRET)], [SECRET])
    return {"credentials": SourceCredentials([credential])}


def with_key(web):
    return [head.split()[1] for head in web.requests if SECRET.encode() in head]


def test_only_hops_to_its_origin_and_path_carry_it(web, settings):
    elsewhere = web.url("/in/there", host="127.0.0.2").encode()
    web.answers |= {"/in/a": redirect(b"/in/b"), "/in/b": redirect(b"/out"), "/out": redirect(elsewhere)}
    web.answers["/in/there"] = redirect(web.url("/in/c").encode())
    web.answers["/in/c"] = ok(b"here")
    capture = web.fetch("/in/a", settings=settings)
    assert capture.body.data == b"here"
    assert len(web.requests) == 5
    assert with_key(web) == [b"/in/a", b"/in/b", b"/in/c"]
    assert SECRET not in repr(capture)


def test_a_handle_that_carried_it_does_not_carry_it_again(web, settings):
    async def both(fetcher):
        for path in ("/in/a", "/out", "/in/a", "/out"):
            await fetcher.fetch(Request(url=web.url(path)), go_anywhere)

    web.answers |= {"/in/a": ok(b"a"), "/out": ok(b"b")}
    web.run(both, settings)
    assert with_key(web) == [b"/in/a", b"/in/a"]


def test_cookies_for_a_signed_in_client_are_not_recorded(web, settings):
    async def both(fetcher):
        captures = [
            await fetcher.fetch(Request(url=web.url(path)), go_anywhere) for path in ("/in/a", "/out")
        ]
        return [capture.hops[0].header("set-cookie") for capture in captures]

    web.answers |= {"/in/a": ok(b"a", b"Set-Cookie: session=abc"), "/out": ok(b"b", b"Set-Cookie: s=d")}
    assert web.run(both, settings) == [WITHHELD, "s=d"]


@pytest.mark.parametrize("form", ["hush-hush-42", "aHVzaC1odXNoLTQy"])
def test_a_redirect_that_repeats_it_is_not_followed(web, settings, form):
    web.answers["/in/a"] = redirect(b"/out?key=" + form.encode())
    capture = web.fetch("/in/a", settings=settings)
    assert (capture.outcome, len(web.requests)) == (Outcome.FAILED, 1)
    assert capture.reason == "redirect (302) to an address that contains a credential; not followed"
    assert form not in repr(capture)

"""Credentials on the wire: to their own origin, hop by hop, and never into the record of a request."""

import re
from hashlib import md5, sha256

import pytest
from loopback_web import go_anywhere, ok

from tamias.fetch.credentials import WITHHELD, SourceCredential, SourceCredentials
from tamias.model.capture import Outcome, Request
from tests.messages import unsaid

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
    assert not unsaid(capture.reason, "302")
    assert form not in repr(capture)


def unauthorized(*fields):
    return b"\r\n".join([b"HTTP/1.1 401 Unauthorized", *fields, b"Content-Length: 0"]) + b"\r\n\r\n"


def proves(head, function, user, password):
    """Whether a request answers the challenge as RFC 7616 has it."""
    said = dict(
        re.findall(r'(\w+)="?([^",\r]*)"?', re.search(r"Authorization: Digest (.*)", head.decode())[1])
    )
    method, path = head.decode().split()[:2]

    def hashed(text):
        return function(text.encode()).hexdigest()

    secret, asked = hashed(f"{user}:{said['realm']}:{password}"), hashed(f"{method}:{path}")
    turn = f":{said['nc']}:{said['cnonce']}:{said['qop']}" if "qop" in said else ""
    return said["uri"] == path and said["response"] == hashed(f"{secret}:{said['nonce']}{turn}:{asked}")


@pytest.mark.parametrize("silent", [True, False], ids=["a silent 401 to Basic", "a challenge to Basic"])
@pytest.mark.parametrize(
    ("function", "rest"),
    [
        (md5, b', qop="auth", algorithm="MD5", opaque="o"'),
        (md5, b""),
        (sha256, b", qop=auth, algorithm=SHA-256"),
    ],
)
def test_a_server_that_wants_digest_authentication_gets_it_and_never_the_password(
    web, function, rest, silent
):
    credential = SourceCredential(
        web.url("/in"), [("Authorization", "Basic abc")], [SECRET], login=("mole", SECRET)
    )
    challenge = unauthorized(b'WWW-Authenticate: Digest realm="R", nonce="n1"' + rest)

    async def answer(writer):
        head = web.requests[-1]
        if b"Digest" in head:
            writer.write(ok(b"here") if proves(head, function, "mole", SECRET) else unauthorized())
        else:
            writer.write(unauthorized() if silent and b"Basic" in head else challenge)

    async def several(fetcher):
        requests = [Request(url=web.url(path)) for path in ("/in/a", "/in/b?q=1")]
        requests.append(Request(url=web.url("/in/c"), body=b"q=1", content_type="text/plain"))
        return [await fetcher.fetch(request, go_anywhere) for request in requests]

    web.answers |= dict.fromkeys(("/in/a", "/in/b?q=1", "/in/c"), answer)
    captures = web.run(several, {"credentials": SourceCredentials([credential])})
    assert [capture.body.data for capture in captures] == [b"here"] * 3
    assert [len(capture.hops) for capture in captures] == [3 if silent else 2, 1, 1]
    assert not with_key(web)


def test_a_wrong_password_is_tried_once_in_each_way(web):
    credential = SourceCredential(
        web.url("/in"), [("Authorization", "Basic abc")], [SECRET], ("mole", SECRET)
    )
    web.answers["/in/a"] = unauthorized(b'WWW-Authenticate: Digest realm="R", nonce="n1", qop="auth"')
    capture = web.fetch("/in/a", settings={"credentials": SourceCredentials([credential])})
    assert (capture.outcome, capture.status, len(web.requests)) == (Outcome.FAILED, 401, 3)

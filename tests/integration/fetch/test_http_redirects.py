"""Redirects: every hop is seen, asked about, and bounded."""

import pytest
from loopback_web import ok

from tamias.model.capture import Outcome, Stop
from tests.messages import unnamed, unsaid


def redirect(location, status=302):
    return b"HTTP/1.1 %d Over There\r\nLocation: %s\r\nContent-Length: 4\r\n\r\ngone" % (status, location)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed(web, status):
    web.answers |= {"/a": redirect(b"/b", status), "/b": ok(b"here")}
    capture = web.fetch("/a")
    assert (capture.outcome, capture.body.data, capture.final_url) == (Outcome.OK, b"here", web.url("/b"))


def test_every_hop_of_a_chain_is_kept(web):
    web.answers |= {"/a": redirect(b"/b"), "/b": redirect(b"c?d#e"), "/c?d": ok(b"here")}
    hops = web.fetch("/a").hops
    assert [(hop.status, hop.location) for hop in hops] == [
        (302, web.url("/b")),
        (302, web.url("/c?d")),
        (200, None),
    ]


def test_permission_is_asked_for_every_target(web):
    asked = []

    async def note(target):
        asked.append(target)

    web.answers |= {"/a": redirect(b"/b"), "/b": redirect(b"/c"), "/c": ok()}
    web.fetch("/a", follow=note)
    assert asked == [web.url("/b"), web.url("/c")]


def test_a_refused_hop_ends_the_capture_with_its_reason(web):
    async def stop(target):
        return Stop(Outcome.REFUSED, "robots.txt says no")

    web.answers["/a"] = redirect(b"/b")
    capture = web.fetch("/a", follow=stop)
    assert (capture.outcome, capture.reason) == (Outcome.REFUSED, "robots.txt says no")
    assert len(web.requests) == 1


def test_a_loop_is_noticed(web):
    web.answers |= {"/a": redirect(b"/b"), "/b": redirect(b"/a")}
    capture = web.fetch("/a")
    assert (capture.outcome, capture.reason) == (Outcome.FAILED, f"redirect loop at {web.url('/a')}")


def test_redirects_are_counted(web):
    web.answers |= {f"/{i}": redirect(b"/%d" % (i + 1)) for i in range(5)}
    capture = web.fetch("/0", settings={"max_redirects": 3})
    assert capture.outcome == Outcome.FAILED
    assert not unsaid(capture.reason, "max_redirects", "3")
    assert len(web.requests) == 4


@pytest.mark.parametrize("target", [b"file:///etc/passwd", b"ftp://127.0.0.1/", b"javascript:0"])
def test_a_redirect_out_of_the_web_is_refused(web, target):
    web.answers["/a"] = redirect(target)
    capture = web.fetch("/a")
    assert (capture.outcome, capture.hops[0].location) == (Outcome.REFUSED, target.decode())


def test_a_redirect_with_a_password_is_refused(web):
    web.answers["/a"] = redirect(b"http://me:secret@127.0.0.1:%d/b" % web.port)
    assert web.fetch("/a").outcome is Outcome.REFUSED


def test_a_redirect_to_nonsense_is_a_failure(web):
    web.answers["/a"] = redirect(b"http://[::")
    assert "not a URL" in web.fetch("/a").reason


def test_a_redirect_without_location_is_a_failure(web):
    web.answers["/a"] = b"HTTP/1.1 302 Somewhere\r\nContent-Length: 0\r\n\r\n"
    assert unnamed(web.fetch("/a").reason, "302", "Location") == []


def test_a_location_in_raw_utf8_is_understood(web):
    web.answers |= {"/a": redirect("/ä".encode()), "/%C3%A4": ok(b"here")}
    assert web.fetch("/a").outcome is Outcome.OK


def test_an_endless_redirect_body_is_not_read(web):
    async def endless(writer):
        writer.write(b"HTTP/1.1 302 Over There\r\nLocation: /b\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    web.answers |= {"/a": endless, "/b": ok(b"here")}
    assert web.fetch("/a").body.data == b"here"


def test_a_redirect_to_a_forbidden_address_is_refused(web):
    web.forbidden = lambda address: "a private address" if address == "127.0.0.2" else None
    web.answers["/a"] = redirect(b"http://127.0.0.2:%d/b" % web.port)
    capture = web.fetch("/a")
    assert (capture.outcome, capture.reason, len(capture.hops)) == (Outcome.REFUSED, "a private address", 1)

"""Requests with a body: sent once, sent again only where the method is kept, never announced first."""

import pytest
from loopback_web import go_anywhere, ok

from tamias.model.capture import Outcome, Request, Stop

QUERY = b"SELECT * WHERE { ?s ?p ?o }"
TYPE = "application/sparql-query"


def redirect(location, status):
    return b"HTTP/1.1 %d Over There\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % (status, location)


def methods(web):
    return [head.split()[0] for head in web.requests]


def test_a_body_makes_it_a_post_with_its_type(web):
    web.answers["/a"] = ok(b"here")
    capture = web.fetch("/a", body=QUERY, content_type=TYPE)
    assert (capture.body.data, web.bodies) == (b"here", [QUERY])
    assert web.requests[0].startswith(b"POST /a ")
    assert b"\r\nContent-Type: application/sparql-query\r\n" in web.requests[0]


def test_an_empty_body_is_still_a_post(web):
    web.answers["/a"] = ok(b"here")
    web.fetch("/a", body=b"")
    assert methods(web) == [b"POST"]


def test_a_body_of_no_told_type_is_sent_without_one(web):
    web.answers["/a"] = ok(b"here")
    web.fetch("/a", body=b"\0\xff")
    assert b"Content-Type" not in web.requests[0]
    assert web.bodies == [b"\0\xff"]


def test_a_large_body_is_sent_without_waiting_for_a_100(web):
    web.answers["/a"] = ok(b"here")
    web.fetch("/a", body=bytes(3_000_000), content_type=TYPE)
    assert b"Expect" not in web.requests[0]
    assert len(web.bodies[0]) == 3_000_000


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_does_not_keep_the_method_turns_it_into_a_get_without_body(web, status):
    web.answers |= {"/a": redirect(b"/b", status), "/b": ok(b"here")}
    capture = web.fetch("/a", body=QUERY, content_type=TYPE)
    assert (capture.body.data, methods(web), web.bodies) == (b"here", [b"POST", b"GET"], [QUERY, b""])
    assert b"Content-Type" not in web.requests[1]


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_that_keeps_the_method_sends_the_body_again(web, status):
    web.answers |= {"/a": redirect(b"/b", status), "/b": redirect(b"/c", status), "/c": ok(b"here")}
    web.fetch("/a", body=QUERY, content_type=TYPE)
    assert (methods(web), web.bodies) == ([b"POST"] * 3, [QUERY] * 3)


def test_a_get_stays_a_get_behind_a_redirect_that_keeps_the_method(web):
    web.answers |= {"/a": redirect(b"/b", 303), "/b": redirect(b"/c", 307), "/c": ok(b"here")}
    web.fetch("/a", body=QUERY, content_type=TYPE)
    assert methods(web) == [b"POST", b"GET", b"GET"]


def test_the_answer_to_a_post_may_be_at_the_same_address(web):
    answers = iter([redirect(b"/a", 303), ok(b"here")])

    async def in_turn(writer):
        writer.write(next(answers))

    web.answers["/a"] = in_turn
    assert web.fetch("/a", body=QUERY, content_type=TYPE).body.data == b"here"


def test_a_body_is_not_sent_on_when_the_redirect_is_not_agreed_to(web):
    async def stop(target):
        return Stop(Outcome.REFUSED, "not there")

    web.answers["/a"] = redirect(b"/b", 307)
    assert web.fetch("/a", body=QUERY, follow=stop).reason == "not there"
    assert len(web.requests) == 1


def test_posts_and_gets_share_a_connection(web):
    web.answers |= {"/a": ok(b"posted"), "/b": ok(b"got")}

    async def ask_three(fetcher):
        posted = Request(url=web.url("/a"), body=QUERY, content_type=TYPE)
        asked = (posted, Request(url=web.url("/b")), posted)
        return [(await fetcher.fetch(request, go_anywhere)).body.data for request in asked]

    assert web.run(ask_three) == [b"posted", b"got", b"posted"]
    assert (web.connections, methods(web)) == (1, [b"POST", b"GET", b"POST"])


def test_a_line_break_in_the_content_type_sends_no_header(web):
    web.answers["/a"] = ok()
    web.fetch("/a", body=QUERY, content_type="text/plain\r\nX-Evil: 1")
    assert b"Evil" not in web.requests[0]

"""A 406 to our own Accept: asked once more for anything, as a hop of its own."""

from loopback_web import ok

from tamias.model.capture import Outcome, Stop

UNACCEPTABLE = b"HTTP/1.1 406 No Such Type\r\nContent-Length: 3\r\n\r\nno!"


def in_turn(web, *answers):
    left = iter(answers)

    async def answer(writer):
        writer.write(next(left))

    web.answers["/a"] = answer


def accepted(web):
    return [
        line.removeprefix(b"Accept: ")
        for head in web.requests
        for line in head.split(b"\r\n")
        if line.startswith(b"Accept: ")
    ]


def test_what_is_not_acceptable_is_asked_for_once_more_in_any_type(web):
    in_turn(web, UNACCEPTABLE, ok(b"here"))
    capture = web.fetch("/a")
    assert ([hop.status for hop in capture.hops], capture.body.data) == ([406, 200], b"here")
    assert accepted(web)[1] == b"*/*"


def test_permission_is_asked_before_the_second_request(web):
    asked = []

    async def note(target):
        asked.append(target)

    in_turn(web, UNACCEPTABLE, ok(b"here"))
    web.fetch("/a", follow=note)
    assert asked == [web.url("/a")]


def test_without_permission_a_406_stays_one(web):
    async def stop(target):
        return Stop(Outcome.OK, "visited in its turn")

    in_turn(web, UNACCEPTABLE)
    capture = web.fetch("/a", follow=stop)
    assert (capture.outcome, capture.reason) == (Outcome.FAILED, "406 Not Acceptable")


def test_a_second_406_is_the_last_word(web):
    in_turn(web, UNACCEPTABLE, UNACCEPTABLE)
    capture = web.fetch("/a")
    assert (capture.outcome, [hop.status for hop in capture.hops]) == (Outcome.FAILED, [406, 406])


def test_a_caller_that_named_its_types_is_told_the_406(web):
    in_turn(web, UNACCEPTABLE)
    assert [hop.status for hop in web.fetch("/a", accept="text/csv").hops] == [406]


def test_a_redirect_after_the_second_request_is_followed_with_any_type(web):
    in_turn(web, UNACCEPTABLE, b"HTTP/1.1 302 There\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n")
    web.answers["/b"] = ok(b"here")
    assert [hop.status for hop in web.fetch("/a").hops] == [406, 302, 200]
    assert accepted(web)[2] == b"*/*"

"""Good answers, damaged at random: whatever arrives, a fetch returns a capture and stays silent."""

import gzip
import random

import pytest
from loopback_web import go_anywhere, ok

from tamias.model.capture import Capture, Request
from tests.messages import unnamed

SOUND = [
    ok(b"hello world", b"Content-Type: text/plain"),
    ok(gzip.compress(b"hello " * 300), b"Content-Encoding: gzip"),
    b"HTTP/1.1 302 Found\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" + ok(b"x"),
]
SPLINTERS = [
    b"\r\n",
    b"\n",
    b" ",
    b"\x00",
    b":",
    b"\r",
    b"999",
    b"-1",
    b"\xff",
    b"\r\n\r\n",
    b"HTTP/2 200\r\n",
]
SPLINTERS += [b"Content-Length: 5\r\n", b"Content-Encoding: br\r\n", b"Location: http://[::\r\n", b"HTTP/"]


def mutilated(chance):
    raw = bytearray(chance.choice(SOUND))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(raw) + 1)
        blow = chance.choice(["insert", "insert", "delete", "change", "cut"])
        if blow == "insert":
            raw[at:at] = chance.choice(SPLINTERS)
        elif blow == "delete":
            del raw[at : at + chance.randint(1, 6)]
        elif blow == "change":
            raw[at : at + 1] = bytes([chance.randrange(256)])
        else:
            del raw[at:]
    return bytes(raw)


@pytest.mark.parametrize("seed", range(5))
def test_a_mutilated_answer_becomes_a_capture(web, seed, capfd):
    chance = random.Random(seed)

    async def say(writer):
        writer.write(mutilated(chance))

    web.answers["/a"] = say

    async def many(fetcher):
        return [await fetcher.fetch(Request(url=web.url("/a")), go_anywhere) for _ in range(100)]

    captures = web.run(many)
    assert all(isinstance(capture, Capture) and capture.reason for capture in captures)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("raw", [b"HTTP/1.1 200 OK\r\nContent-", b"HTTP/1.1 404 Not Found\r\n"])
def test_headers_that_break_off_are_worth_another_try(web, raw):
    async def say(writer):
        writer.write(raw)

    web.answers["/a"] = say
    capture = web.fetch("/a")
    assert (unnamed(capture.reason, "closed", "headers"), capture.retry) == ([], True)

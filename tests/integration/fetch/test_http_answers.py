"""What servers answer when they behave, and what the capture tells of it."""

import asyncio
import gzip
import hashlib
import os
import stat

import pytest
import zstandard
from loopback_web import go_anywhere, ok

from tamias.model.capture import Outcome, Request


def test_a_plain_answer_is_captured_with_its_digest(web):
    web.answers["/a"] = ok(b"<s> <p> <o> .", b"Content-Type: text/turtle")
    capture = web.fetch("/a")
    assert capture.outcome is Outcome.OK
    assert capture.body.data == b"<s> <p> <o> ."
    assert capture.body.sha256 == hashlib.sha256(b"<s> <p> <o> .").hexdigest()


def test_a_capture_knows_status_type_peer_and_times(web):
    web.answers["/a"] = ok(b"x", b"Content-Type: text/turtle")
    capture = web.fetch("/a")
    assert (capture.status, capture.declared_type, capture.hops[0].address) == (
        200,
        "text/turtle",
        "127.0.0.1",
    )
    assert 0 < capture.started_at <= capture.ended_at


def test_an_empty_success_has_an_empty_body(web):
    web.answers["/a"] = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
    assert web.fetch("/a").body.data == b""


def test_headers_keep_order_case_and_repetition(web):
    web.answers["/a"] = ok(b"", b"X-b: 1", b"x-A:  2  ", b"X-b: \xe9")
    names = web.fetch("/a").hops[0].headers
    assert names == (("Content-Length", "0"), ("X-b", "1"), ("x-A", "2"), ("X-b", "é"))


def test_interim_responses_are_not_the_answer(web):
    web.answers["/a"] = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + ok(b"body")
    hop = web.fetch("/a").hops[0]
    assert (hop.status, hop.header("link")) == (200, None)


def test_trailers_are_not_headers(web):
    web.answers["/a"] = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Late: 1\r\n\r\n"
    )
    capture = web.fetch("/a")
    assert (capture.body.data, capture.hops[0].header("x-late")) == (b"abc", None)


def test_a_request_carries_our_name_and_asks_for_rdf(web):
    web.answers["/a"] = ok()
    web.fetch("/a")
    assert b"\r\nUser-Agent: Tamias/test\r\n" in web.requests[0]
    assert b"\r\nAccept: text/turtle, " in web.requests[0]


def test_a_request_may_name_its_own_media_types(web):
    web.answers["/a"] = ok()
    web.fetch("/a", accept="text/plain")
    assert b"\r\nAccept: text/plain\r\n" in web.requests[0]


def test_cookies_are_neither_kept_nor_sent(web):
    web.answers["/a"] = ok(b"", b"Set-Cookie: a=b")

    async def twice(fetcher):
        await fetcher.fetch(Request(url=web.url("/a")), go_anywhere)
        await fetcher.fetch(Request(url=web.url("/a")), go_anywhere)

    web.run(twice)
    assert b"cookie" not in web.requests[1].lower()


def test_proxies_of_the_environment_are_ignored(web, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    web.answers["/a"] = ok(b"x")
    assert web.fetch("/a").outcome is Outcome.OK


def test_validators_are_sent_and_304_means_unchanged(web):
    web.answers["/a"] = b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nContent-Length: 0\r\n\r\n'
    capture = web.fetch("/a", etag='"1"', last_modified="Sat, 01 Jan 2000 00:00:00 GMT")
    assert (capture.outcome, capture.body) == (Outcome.UNCHANGED, None)
    assert b'\r\nIf-None-Match: "1"\r\n' in web.requests[0]
    assert b"\r\nIf-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n" in web.requests[0]


def test_validators_do_not_stick_to_the_next_request(web):
    web.answers["/a"] = ok()

    async def twice(fetcher):
        await fetcher.fetch(Request(url=web.url("/a"), etag='"1"'), go_anywhere)
        await fetcher.fetch(Request(url=web.url("/a")), go_anywhere)

    web.run(twice)
    assert b"If-None-Match" not in web.requests[1]


def test_a_validator_cannot_smuggle_a_header(web):
    web.answers["/a"] = ok()
    web.fetch("/a", etag='"1"\r\nX-Smuggled: 1')
    assert b"Smuggled" not in web.requests[0]


def test_304_to_an_unconditional_request_is_a_failure(web):
    web.answers["/a"] = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 0\r\n\r\n"
    assert web.fetch("/a").outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("status", "outcome", "retry"),
    [
        (203, Outcome.OK, False),
        (206, Outcome.FAILED, False),
        (300, Outcome.FAILED, False),
        (401, Outcome.FAILED, False),
        (403, Outcome.FAILED, False),
        (404, Outcome.GONE, False),
        (408, Outcome.FAILED, True),
        (410, Outcome.GONE, False),
        (425, Outcome.FAILED, True),
        (429, Outcome.FAILED, True),
        (451, Outcome.FAILED, False),
        (500, Outcome.FAILED, True),
        (503, Outcome.FAILED, True),
        (999, Outcome.FAILED, False),
    ],
)
def test_a_status_decides_outcome_and_retry(web, status, outcome, retry):
    web.answers["/a"] = b"HTTP/1.1 %d So\r\nContent-Length: 2\r\n\r\nno" % status
    capture = web.fetch("/a")
    assert (capture.outcome, capture.retry) == (outcome, retry)


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_read_where_a_server_asks_for_a_pause(web, status):
    web.answers["/a"] = b"HTTP/1.1 %d Wait\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n" % status
    assert web.fetch("/a").retry_after_ms == 7000


def test_the_body_of_an_error_is_not_kept(web):
    web.answers["/a"] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nsorry"
    assert web.fetch("/a").body is None


def test_gzip_is_undone(web):
    web.answers["/a"] = ok(gzip.compress(b"x" * 5000), b"Content-Encoding: gzip")
    capture = web.fetch("/a")
    assert capture.body.data == b"x" * 5000
    assert capture.wire_bytes < 5000


@pytest.mark.parametrize("header", [b"Content-Encoding: zstd", b"content-encoding:  ZSTD "])
def test_zstd_that_nobody_offered_is_undone(web, header):
    content = os.urandom(5000) + b"x" * 50_000
    web.answers["/a"] = ok(zstandard.compress(content), header)
    capture = web.fetch("/a")
    assert (capture.outcome, capture.body.data) == (Outcome.OK, content)
    assert [hop.url for hop in capture.hops] == [web.url("/a")] * 2


def test_after_zstd_the_same_handle_undoes_gzip_again(web):
    web.answers["/a"] = ok(zstandard.compress(b"one"), b"Content-Encoding: zstd")
    web.answers["/b"] = ok(gzip.compress(b"two"), b"Content-Encoding: gzip")

    async def both(fetcher):
        return [
            (await fetcher.fetch(Request(url=web.url(path)), go_anywhere)).body.data for path in ("/a", "/b")
        ]

    assert web.run(both) == [b"one", b"two"]


def test_a_large_body_goes_to_a_private_spool_file(web):
    content = os.urandom(70_000)
    web.answers["/a"] = ok(content)
    body = web.fetch("/a", settings={"memory_bytes": 50_000}).body
    [spooled] = web.spooled()
    assert (body.data, body.path, body.size) == (None, str(spooled), 70_000)
    assert (spooled.read_bytes(), body.sha256) == (content, hashlib.sha256(content).hexdigest())
    assert stat.S_IMODE(spooled.stat().st_mode) == 0o600


def test_a_connection_is_used_again(web):
    web.answers["/a"] = ok(b"x")

    async def three_times(fetcher):
        for _ in range(3):
            await fetcher.fetch(Request(url=web.url("/a")), go_anywhere)

    web.run(three_times)
    assert (len(web.requests), web.connections) == (3, 1)


def test_a_connection_the_server_closed_in_the_meantime_does_no_harm(web):
    async def say_and_close(writer):
        writer.write(ok(b"x"))

    web.answers["/a"] = say_and_close

    async def twice(fetcher):
        await fetcher.fetch(Request(url=web.url("/a")), go_anywhere)
        await asyncio.sleep(0.05)
        return await fetcher.fetch(Request(url=web.url("/a")), go_anywhere)

    assert web.run(twice).outcome is Outcome.OK


def test_many_hosts_are_fetched_at_once(web):
    web.answers["/a"] = ok(b"x" * 30_000)
    addresses = [web.url("/a", f"127.0.{i // 100}.{1 + i % 100}") for i in range(200)]

    async def all_of_them(fetcher):
        return await asyncio.gather(*(fetcher.fetch(Request(url=url), go_anywhere) for url in addresses))

    captures = web.run(all_of_them)
    assert [capture.body and capture.body.size for capture in captures] == [30_000] * 200


def test_a_trusted_certificate_is_accepted(tls_web, certificate):
    tls_web.answers["/a"] = ok(b"x")
    assert tls_web.fetch("/a", settings={"ca_file": str(certificate[0])}).outcome is Outcome.OK

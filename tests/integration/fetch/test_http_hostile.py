"""Servers that break, stall, lie or attack: the capture says so, nothing is raised or left behind."""

import asyncio
import gzip
import socket
import zlib

import pytest
import zstandard
from loopback_web import go_anywhere, ok, until

from tamias.model.capture import Outcome, Request
from tests.messages import unsaid


def says(web, raw):
    """Makes /a answer with these bytes and a closed connection."""

    async def say(writer):
        writer.write(raw)

    web.answers["/a"] = say


async def silence(writer):
    await asyncio.sleep(60)


def test_a_body_of_exactly_the_limit_is_kept(web):
    web.answers["/a"] = ok(b"x" * 1000)
    assert web.fetch("/a", settings={"max_bytes": 1000}).body.size == 1000


def test_a_body_one_byte_over_the_limit_is_a_failure_that_names_it(web):
    says(web, b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001)
    capture = web.fetch("/a", settings={"max_bytes": 1000})
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, False)
    assert not unsaid(capture.reason, "max_bytes", "1000")


def test_a_body_announced_over_the_limit_is_not_read(web):
    async def announce(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n")
        await writer.drain()
        await silence(writer)

    web.answers["/a"] = announce
    assert not unsaid(web.fetch("/a", settings={"max_bytes": 1000}).reason, "max_bytes", "1000")


def test_a_failed_body_leaves_no_spool_file(web):
    says(web, b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000)
    web.fetch("/a", settings={"max_bytes": 90_000, "memory_bytes": 1000})
    assert web.spooled() == []


def test_a_gzip_bomb_is_stopped_by_the_byte_limit(web):
    web.answers["/a"] = ok(gzip.compress(bytes(5_000_000)), b"Content-Encoding: gzip")
    capture = web.fetch("/a", settings={"max_bytes": 1_000_000})
    assert not unsaid(capture.reason, "max_bytes", "1000000")


def test_a_zstd_bomb_is_stopped_by_the_byte_limit(web):
    web.answers["/a"] = ok(zstandard.compress(bytes(500_000_000)), b"Content-Encoding: zstd")
    capture = web.fetch("/a", settings={"max_bytes": 1_000_000})
    assert not unsaid(capture.reason, "max_bytes", "1000000")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"no zstd at all", "cannot be decoded from zstd"),
        (zstandard.compress(b"x" * 5000)[:-5], "ends inside its content coding"),
        (
            zstandard.ZstdCompressor(
                compression_params=zstandard.ZstdCompressionParameters(window_log=27)
            ).compress(bytes(1)),
            None,
        ),
    ],
    ids=["something else", "cut off", "a small body"],
)
def test_what_is_not_whole_zstd_is_a_failure_that_says_so(web, body, reason):
    web.answers["/a"] = ok(body, b"Content-Encoding: zstd")
    capture = web.fetch("/a")
    assert (capture.outcome is Outcome.OK) == (reason is None)
    assert (reason or "") in capture.reason


def test_a_gzip_bomb_is_stopped_by_the_ratio(web):
    web.answers["/a"] = ok(gzip.compress(bytes(30_000_000)), b"Content-Encoding: gzip")
    capture = web.fetch("/a")
    assert (capture.outcome, capture.body) == (Outcome.FAILED, None)
    assert "(max_ratio)" in capture.reason


def test_the_ratio_is_checked_while_a_bomb_without_length_arrives(web):
    says(web, b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(bytes(60_000_000)))
    capture = web.fetch("/a", settings={"max_bytes": 50_000_000})
    assert "(max_ratio)" in capture.reason


def test_two_layers_of_coding_are_undone(web):
    twice = gzip.compress(gzip.compress(b"deep"))
    web.answers["/a"] = ok(twice, b"Content-Encoding: gzip, gzip")
    assert web.fetch("/a").body.data == b"deep"


def test_many_layers_of_coding_are_a_failure(web):
    body = b"deep"
    for _ in range(20):
        body = gzip.compress(body)
    web.answers["/a"] = ok(body, b"Content-Encoding: " + b", ".join([b"gzip"] * 20))
    capture = web.fetch("/a")
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, False)
    assert "Content-Encoding" in capture.reason


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd-of-tomorrow"])
def test_a_body_that_is_not_in_its_coding_is_a_failure(web, coding):
    web.answers["/a"] = ok(b"this is plain text", b"Content-Encoding: " + coding)
    capture = web.fetch("/a")
    assert (capture.outcome, capture.body) == (Outcome.FAILED, None)


def test_deflate_with_a_zlib_wrapper_is_undone(web):
    web.answers["/a"] = ok(zlib.compress(b"wrapped"), b"Content-Encoding: deflate")
    assert web.fetch("/a").body.data == b"wrapped"


def test_a_truncated_body_is_never_a_success(web):
    says(web, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    capture = web.fetch("/a")
    assert (capture.outcome, capture.retry, capture.body) == (Outcome.FAILED, True, None)
    assert capture.reason.startswith("body cut short")


def test_a_truncated_chunked_body_is_never_a_success(web):
    says(web, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhalf")
    capture = web.fetch("/a")
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, True)


def test_a_truncated_error_page_is_still_that_error(web):
    says(web, b"HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nhalf")
    assert web.fetch("/a").outcome is Outcome.GONE


def test_a_silent_server_is_given_up(web):
    web.answers["/a"] = silence
    capture = web.fetch("/a", settings={"first_byte_timeout": 0.3})
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, True)
    assert not unsaid(capture.reason, "0.3", "first_byte_timeout")


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-Slow: "])
def test_a_trickle_is_given_up(web, start):
    async def trickle(writer):
        writer.write(start)
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    web.answers["/a"] = trickle
    capture = web.fetch("/a", settings={"min_rate": 1000, "min_rate_window": 0.5})
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, True)
    assert not unsaid(capture.reason, "1000", "0.5", "min_rate")


def test_an_endless_answer_is_given_up(web):
    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 1000)
            await writer.drain()
            await asyncio.sleep(0.02)

    web.answers["/a"] = endless
    capture = web.fetch("/a", settings={"total_timeout": 0.6})
    assert not unsaid(capture.reason, "0.6", "total_timeout")


@pytest.mark.parametrize(
    "headers",
    [b"X-Huge: " + b"x" * 70_000, b"\r\n".join(b"X-%d: many" % i for i in range(6000))],
    ids=["one", "many"],
)
def test_huge_headers_are_a_failure_that_names_the_limit(web, headers):
    says(web, b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n\r\nbody")
    capture = web.fetch("/a")
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, False)
    assert not unsaid(capture.reason, "max_header_bytes", "65536")


def test_endless_interim_responses_are_a_failure(web):
    async def endless(writer):
        while True:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
            await writer.drain()

    web.answers["/a"] = endless
    assert "max_header_bytes" in web.fetch("/a").reason


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"<html>HTTP/0.9 has no headers</html>",
        b"\x00\x01\x02\x03" * 50,
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nbody",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nbody",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbody",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"",
    ],
)
def test_garbage_is_a_failure(web, raw):
    says(web, raw)
    capture = web.fetch("/a")
    assert (capture.outcome, capture.body) == (Outcome.FAILED, None)


def test_a_refused_connection_says_by_whom(web):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    capture = web.run(lambda f: f.fetch(Request(url=f"http://127.0.0.1:{port}/"), go_anywhere))
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, True)
    assert capture.reason == f"connection refused by 127.0.0.1:{port}"


def test_an_unknown_name_is_named(web):
    capture = web.run(lambda f: f.fetch(Request(url="http://nowhere.invalid/"), go_anywhere))
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, True)
    assert not unsaid(capture.reason, "nowhere.invalid")


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1/", "file:///etc/passwd", "http://u:p@127.0.0.1/", "nonsense"]
)
def test_an_address_that_is_not_for_the_web_is_refused(web, url):
    assert web.run(lambda f: f.fetch(Request(url=url), go_anywhere)).outcome is Outcome.REFUSED


def test_a_forbidden_literal_address_is_not_connected_to(web):
    web.forbidden = lambda address: f"{address} is a loopback address"
    capture = web.fetch("/a")
    assert (capture.outcome, capture.reason) == (Outcome.REFUSED, "127.0.0.1 is a loopback address")
    assert web.connections == 0


def test_a_name_of_a_forbidden_address_is_not_connected_to(web):
    web.forbidden = lambda address: f"{address} is a loopback address"
    url = web.url("/a", "harmless.example")
    capture = web.run(
        lambda f: f.fetch(Request(url=url), go_anywhere), {"resolve": {"harmless.example": "127.0.0.3"}}
    )
    assert (capture.outcome, capture.reason) == (Outcome.REFUSED, "127.0.0.3 is a loopback address")
    assert web.connections == 0


def test_a_resolved_name_is_asked_for_by_its_name(web):
    web.answers["/a"] = ok(b"x")
    url = web.url("/a", "data.example")
    capture = web.run(
        lambda f: f.fetch(Request(url=url), go_anywhere), {"resolve": {"data.example": "127.0.0.3"}}
    )
    assert (capture.outcome, capture.hops[0].address) == (Outcome.OK, "127.0.0.3")
    assert b"Host: data.example:" in web.requests[0]


def test_a_self_signed_certificate_is_a_failure_that_says_so(tls_web):
    tls_web.answers["/a"] = ok(b"x")
    capture = tls_web.fetch("/a")
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, False)
    assert "self-signed certificate" in capture.reason


def test_a_certificate_for_another_host_is_a_failure(tls_web, certificate):
    tls_web.answers["/a"] = ok(b"x")
    url = tls_web.url("/a", "127.0.0.2")
    capture = tls_web.run(lambda f: f.fetch(Request(url=url), go_anywhere), {"ca_file": str(certificate[0])})
    assert (capture.outcome, capture.hops) == (Outcome.FAILED, ())


def test_tls_with_a_server_that_speaks_none_is_a_failure(web):
    web.answers["/a"] = ok(b"x")
    url = web.url("/a").replace("http:", "https:")

    capture = web.run(lambda f: f.fetch(Request(url=url), go_anywhere), {"first_byte_timeout": 0.5})
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, True)


def test_a_cancelled_fetch_leaves_nothing_behind(web):
    async def half(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50_000)
        await writer.drain()
        await silence(writer)

    web.answers |= {"/a": half, "/b": ok(b"fine")}

    async def cancel(fetcher):
        task = asyncio.create_task(fetcher.fetch(Request(url=web.url("/a")), go_anywhere))
        await until(web.spooled)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await fetcher.fetch(Request(url=web.url("/b")), go_anywhere)

    assert web.run(cancel, {"memory_bytes": 10_000}).outcome is Outcome.OK
    assert web.spooled() == []


def test_closing_gives_up_what_is_under_way(web):
    web.answers["/a"] = silence

    async def close(fetcher):
        task = asyncio.create_task(fetcher.fetch(Request(url=web.url("/a")), go_anywhere))
        await until(lambda: web.requests)
        await fetcher.close()
        return await task

    capture = web.run(close)
    assert (capture.outcome, capture.reason) == (Outcome.FAILED, "the fetcher was closed")


def test_a_body_that_cannot_be_spooled_is_an_error_of_ours(web):
    web.answers |= {"/a": ok(b"x" * 5000), "/b": ok(b"x")}

    async def without_folder(fetcher):
        web.spool_dir.rmdir()
        with pytest.raises(FileNotFoundError):
            await fetcher.fetch(Request(url=web.url("/a")), go_anywhere)
        return await fetcher.fetch(Request(url=web.url("/b")), go_anywhere)

    assert web.run(without_folder, {"memory_bytes": 1000}).outcome is Outcome.OK

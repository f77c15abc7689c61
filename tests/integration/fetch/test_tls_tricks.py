"""Servers that play tricks with TLS: endless handshakes, old versions, wide names, unsealed ends."""

import asyncio
import ssl
import subprocess

import pytest
from loopback_web import go_anywhere, ok

from tamias.model.capture import Outcome, Request

HELLO = b"\x02\x00\xff\xff\x03\x03"
HANDSHAKES = {
    "silence": [],
    "a byte at a time": [b"\x16", b"\x03", b"\x03"] + [b"\x00"] * 600,
    "empty records": [b"\x16\x03\x03\x00\x00"] * 4000,
    "warnings without end": [b"\x15\x03\x03\x00\x02\x01\x5a"] * 4000,
    "a hello of 16 MB": [b"\x16\x03\x03\x40\x00\x02\xff\xff\xff" + bytes(0x3FFC)] * 200,
    "a record of another version": [b"\x16\x07\x07\x00\x06" + HELLO],
    "an answer in plain text": [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"],
    "SSL 2": [b"\x80\x2e\x04\x00\x00\x00\x02\x00\x00\x00\x10" + bytes(36)],
}


@pytest.mark.parametrize("name", HANDSHAKES)
def test_a_handshake_that_is_none_is_given_up(web, name):
    shaking = []

    async def shake(reader, writer):
        shaking.append(asyncio.current_task())
        try:
            for piece in HANDSHAKES[name]:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.02 if len(piece) == 1 else 0)
            await reader.read()
        except OSError:
            pass
        writer.close()

    async def main():
        server = await asyncio.start_server(shake, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        fetcher = web.fetcher({"first_byte_timeout": 0.5})
        async with asyncio.timeout(60):
            capture = await fetcher.fetch(Request(url=f"https://127.0.0.1:{port}/"), go_anywhere)
        await fetcher.close()
        server.close()
        await asyncio.wait(shaking)
        return capture

    capture = asyncio.run(main())
    assert (capture.outcome, capture.body) == (Outcome.FAILED, None)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_an_old_version_of_tls_is_not_spoken(tls_web, certificate):
    tls_web.answers["/a"] = ok(b"x")
    tls_web.tls.set_ciphers("ALL:@SECLEVEL=0")
    tls_web.tls.minimum_version = tls_web.tls.maximum_version = ssl.TLSVersion.TLSv1_1
    assert tls_web.fetch("/a", settings={"ca_file": str(certificate[0])}).outcome is Outcome.FAILED


def test_a_body_whose_end_is_not_sealed_is_cut(tls_web, certificate):
    """Who sits between could have cut it."""

    async def cut(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/turtle\r\n\r\n<a> <b> <c> .\n")
        await writer.drain()
        await asyncio.sleep(0.2)
        writer.transport.abort()

    tls_web.answers["/a"] = cut
    capture = tls_web.fetch("/a", settings={"ca_file": str(certificate[0])})
    assert (capture.outcome, capture.retry) == (Outcome.FAILED, True)


@pytest.mark.parametrize(
    "names",
    [
        "DNS:*",
        "DNS:*.example",
        "DNS:data.*",
        "DNS:*ta.example",
        "DNS:.example",
        "DNS:example",
        "IP:127.0.0.1",
    ],
)
def test_a_name_that_is_too_wide_proves_nothing(web, tmp_path, names):
    made, key = tmp_path / "made.pem", tmp_path / "key.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=data.example"
    words += f" -addext subjectAltName={names} -keyout {key} -out {made}"
    subprocess.run(["openssl", *words.split()], check=True, capture_output=True)
    web.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    web.tls.load_cert_chain(made, key)
    web.answers["/a"] = ok(b"x")
    url = web.url("/a", "data.example")
    settings = {"ca_file": str(made), "resolve": {"data.example": "127.0.0.1"}}
    capture = web.run(lambda fetcher: fetcher.fetch(Request(url=url), go_anywhere), settings)
    assert (capture.outcome, capture.hops) == (Outcome.FAILED, ())
    assert "alternative certificate subject name" in capture.reason

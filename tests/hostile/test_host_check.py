"""On the loopback address the service answers only to its own names: a page elsewhere may have renamed us."""

import asyncio

import pytest
from starlette.responses import PlainTextResponse

from tamias.features.service.http.middleware import KnownNames


def status(host, server="127.0.0.1", address="https://archive.example/", more=()):
    """What is said to a request under this name."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request"}

    headers = [*([] if host is None else [(b"host", host.encode())]), *more]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers, "server": (server, 8080)}
    asyncio.run(KnownNames(PlainTextResponse("here"), address)(scope, receive, send))
    return sent[0]["status"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "x"]
)
def test_a_foreign_name_is_refused_on_loopback(host):
    assert status(host) == 421


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8080",
        "localhost",
        "LOCALHOST:8080",
        "[::1]:8080",
        "archive.example",
        "archive.example.",
        None,
    ],
)
def test_our_own_names_are_answered(host):
    assert status(host) == 200


@pytest.mark.parametrize("server", ["127.0.0.1", "192.0.2.1"])
def test_two_names_are_no_request(server):
    assert status("localhost", server, more=[(b"host", b"evil.example")]) == 400
    assert status("localhost", server, more=[(b"host", b"localhost")]) == 400


def test_where_others_may_reach_it_any_name_is_answered():
    assert status("any.example", server="192.0.2.1") == 200

"""A second request hidden in the body of a first: the service and a proxy read the same requests."""

import re
import shutil
import socket
import subprocess
import time
from contextlib import closing

import pytest

from .conftest import free_port

HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
EMPTY = b"0\r\n\r\n" + HIDDEN
CHUNKED = b"Transfer-Encoding: chunked"
LENGTH = b"Content-Length: %d" % len(EMPTY)
BODIES = {
    "size beyond 64 bits": b"10000000000000000\r\n",
    "size in C": b"0x0\r\n\r\n",
    "negative size": b"-1\r\n\r\n",
    "size with a sign": b"+0\r\n\r\n",
    "size after a space": b" 0\r\n\r\n",
    "size and a bare return": b"0\r\r\n",
    "size with an underscore": b"1_0\r\n\r\n",
    "bare line feeds": b"0\n\n",
    "line feed in an extension": b"0;a\nb\r\n\r\n",
    "data longer than its size": b"1\r\nXX0\r\n\r\n",
    "line feed after data": b"1\r\nX\n0\r\n\r\n",
    "empty line before the size": b"\r\n0\r\n\r\n",
    "endless extension": b"0;" + b"a" * 100_000 + b"\r\n\r\n",
}
CODINGS = [
    b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding : chunked",
    b"Transfer-Encoding: \x0bchunked",
    b"Transfer-Encoding:\r\n chunked",
    b"Transfer-Encoding: identity",
    b"Transfer-Encoding: chunked, identity",
    CHUNKED + b"\r\nTransfer-Encoding: x",
    b'Transfer-Encoding: "chunked"',
    CHUNKED + b"\x00",
    b"X: y\r" + CHUNKED,
]
LENGTHS = [b"0\r\n" + LENGTH, b"0, 9", b"0, 0", b"+9", b"-1", b"0x9", b"1 0", b"18446744073709551616", b""]


def head(*lines, verb=b"POST /sparql", version=b"HTTP/1.1"):
    return b"\r\n".join([verb + b" " + version, b"Host: localhost", *lines, b"", b""])


REFUSED = {
    **{f"coding {coding!r}": head(coding) + EMPTY for coding in CODINGS},
    **{f"coding {coding!r} and length": head(LENGTH, coding) + EMPTY for coding in CODINGS},
    **{f"length {length!r}": head(b"Content-Length: " + length) + HIDDEN for length in LENGTHS},
    "length before a space": head(b"Content-Length : 9") + HIDDEN,
    **{f"chunk: {name}": head(CHUNKED) + body + HIDDEN for name, body in BODIES.items()},
    "chunks in HTTP/1.0": head(CHUNKED, version=b"HTTP/1.0") + EMPTY,
    "chunks and length in HTTP/1.0": head(b"Content-Length: 0", CHUNKED, version=b"HTTP/1.0") + EMPTY,
    "length and chunks": head(LENGTH, CHUNKED) + EMPTY,
    "folded header": b"GET / HTTP/1.1\r\n Host: localhost\r\n\r\n" + HIDDEN,
    "HTTP/0.9": b"GET /\r\n" + HIDDEN,
    "tabs": b"GET\t/\tHTTP/1.1\r\nHost: localhost\r\n\r\n" + HIDDEN,
}
"""The connection ends, and nothing behind the first request is read."""
ONE = {
    "body of a GET": head(b"Content-Length: %d" % len(HIDDEN), verb=b"GET /healthz") + HIDDEN,
    "body of a HEAD": head(b"Content-Length: %d" % len(HIDDEN), verb=b"HEAD /healthz") + HIDDEN,
    "length as an option": head(b"Connection: Content-Length", b"Content-Length: %d" % len(HIDDEN)) + HIDDEN,
    "underscore": head(b"Transfer_Encoding: chunked", LENGTH) + EMPTY,
}
"""What is hidden is the body of the first."""


def talk(port, sent, patience=10):
    """What a connection says until it ends or is silent; short where it stays open."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=patience)) as line:
        line.sendall(sent)
        got = b""
        try:
            while piece := line.recv(65536):
                got += piece
                line.settimeout(0.5)
        except (TimeoutError, ConnectionResetError):
            pass
        return got


def statuses(got):
    return [int(each) for each in re.findall(rb"HTTP/1\.1 (\d{3})", got)]


@pytest.mark.parametrize("name", REFUSED)
def test_a_request_that_can_be_read_in_two_ways_is_answered_once_and_the_last(served, name):
    got = talk(served.port, REFUSED[name])
    assert b"/hidden" not in got
    assert statuses(got) in ([400], [415])


@pytest.mark.parametrize("name", ONE)
def test_what_a_body_holds_is_no_request(served, name):
    got = talk(served.port, ONE[name])
    assert b"/hidden" not in got
    assert statuses(got) in ([200], [415])


@pytest.fixture(scope="module")
def proxy(served, tmp_path_factory):
    """nginx, which uses its connections to the service for requests of all its clients."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    paths = " ".join(
        f"{kind}_temp_path {folder};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/log; events {{ }} http {{ access_log off; {paths}"
        f" upstream service {{ server 127.0.0.1:{served.port}; keepalive 2; }}"
        f" server {{ listen 127.0.0.1:{port}; proxy_request_buffering off; location / {{"
        ' proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection "";'
        " proxy_set_header Host localhost; } } }"
    )
    process = subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf")], stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                time.sleep(0.05)
            else:
                break
        yield port
    finally:
        process.terminate()
        process.wait()


def test_behind_a_proxy_nobody_gets_the_answer_of_another(proxy):
    wanted = head(b"Connection: close", verb=b"GET /healthz")
    for name, attack in (REFUSED | ONE).items():
        with closing(socket.create_connection(("127.0.0.1", proxy), timeout=10)) as attacker:
            attacker.sendall(attack)
            for _ in range(3):
                got = talk(proxy, wanted)
                assert (name, statuses(got)) == (name, [200])
                assert b'"status":"ok"' in got

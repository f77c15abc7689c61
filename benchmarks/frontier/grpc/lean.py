"""A lean gRPC client: the libraries' own top out near 10,000 messages a second and hide the server's speed.

It knows as much of HTTP/2 and of the messages as a benchmark on the same machine needs, and shares no code
with what it measures."""

import select
import socket
import struct
from collections import deque
from collections.abc import Iterable

import hpack

from tamias.model.errors import TamiasError

SERVICE = "urlfrontier.URLFrontier"


def item(name: str, url: str, key: str) -> bytes:
    """A `URLItem` that was discovered."""
    return _nested(1, _nested(1, _info(url, key))) + _text(3, name)


def done(name: str, url: str, key: str) -> bytes:
    """A `URLItem` that is known, and not to be visited again."""
    return _nested(2, _nested(1, _info(url, key))) + _text(3, name)


def batch(name: str, infos: list[tuple[str, str]]) -> bytes:
    """A `DiscoveredBatch` of URLs with their keys."""
    return _text(1, name) + b"".join(_nested(2, _info(url, key)) for url, key in infos)


def wish(urls: int, queues: int, hold: int) -> bytes:
    """`GetParams` for any crawl.

    >>> wish(10, 100, 300)
    b'\\x08\\n\\x10d \\xac\\x02'
    """
    return _number(1, urls) + _number(2, queues) + _number(4, hold)


def _info(url: str, key: str) -> bytes:
    return _text(1, url) + _text(2, key) + _text(4, "DEFAULT")


def _text(field: int, value: str) -> bytes:
    return _nested(field, value.encode())


def _nested(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD = struct.Struct(">HBBBI")
_PREFIX = struct.Struct(">BI")
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_INITIAL_WINDOW = 4
_LARGEST_WINDOW = 2**31 - 1
_FRAME = 16_384


class GrpcCallFailed(TamiasError):
    """The server ended a call with an error."""


class LeanClient:
    """One connection, one call at a time."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), 10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(120)
        self._authority = address
        self._encoder, self._decoder = hpack.Encoder(), hpack.Decoder()
        self._received = b""
        self._out = bytearray()
        self._window = self._first_window = 65_535
        self._stream_window = 0
        self._stream = -1
        self._over = True
        self._answer: list[bytes] = []
        settings = struct.pack(">HI", _INITIAL_WINDOW, _LARGEST_WINDOW)
        grown = struct.pack(">I", _LARGEST_WINDOW - 65_535)
        self._socket.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, settings) + _frame(_WINDOW, 0, 0, grown))

    def ask(self, path: str, request: bytes) -> list[bytes]:
        """All answers to one message."""
        self._begin(path)
        self._socket.sendall(_frame(_DATA, _END_STREAM, self._stream, prefixed(request)))
        while not self._over:
            self._read()
        return split(b"".join(self._answer))[0]

    def tell(self, path: str, requests: Iterable[bytes], in_flight: int) -> int:
        """Sends messages, each in a frame of its own, with at most so many unanswered; counts the answers."""
        self._begin(path)
        waiting = deque(requests)
        sent = answered = 0
        rest = b""
        ended = False
        while not self._over:
            while waiting and sent - answered < in_flight and self._fits(len(waiting[0]) + 5):
                data = prefixed(waiting.popleft())
                self._window -= len(data)
                self._stream_window -= len(data)
                for start in range(0, len(data), _FRAME):
                    self._out += _frame(_DATA, 0, self._stream, data[start : start + _FRAME])
                sent += 1
            if not waiting and not ended:
                self._out += _frame(_DATA, _END_STREAM, self._stream, b"")
                ended = True
            self._exchange()
            if self._answer:
                found, rest = split(b"".join([rest, *self._answer]))
                self._answer = []
                answered += len(found)
        return answered

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()

    def _begin(self, path: str) -> None:
        self._stream += 2
        self._over, self._answer, self._stream_window = False, [], self._first_window
        headers = [
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", self._authority),
            ("content-type", "application/grpc"), ("te", "trailers"),
        ]  # fmt: skip
        self._socket.sendall(_frame(_HEADERS, _END_HEADERS, self._stream, self._encoder.encode(headers)))

    def _fits(self, length: int) -> bool:
        return length <= self._window and length <= self._stream_window and len(self._out) < 1 << 18

    def _exchange(self) -> None:
        readable, writable, _ = select.select([self._socket], [self._socket] if self._out else [], [], 120)
        if not readable and not writable:
            raise GrpcCallFailed("the server has not moved for two minutes")
        if writable:
            self._socket.setblocking(False)
            try:
                del self._out[: self._socket.send(self._out)]
            finally:
                self._socket.settimeout(120)
        if readable:
            self._read()

    def _read(self) -> None:
        data = self._socket.recv(1 << 18)
        if not data:
            raise GrpcCallFailed("the server closed the connection")
        data = self._received + data
        at, end = 0, len(data)
        while end - at >= 9:
            high, low, kind, flags, stream = _HEAD.unpack_from(data, at)
            length = high << 8 | low
            if end - at - 9 < length:
                break
            at += 9 + length
            self._take(kind, flags, stream, data[at - length : at])
        self._received = data[at:]

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _DATA:
            self._answer.append(payload)
        elif kind == _HEADERS:
            self._headers({str(name): str(value) for name, value in self._decoder.decode(payload)})
        elif kind == _SETTINGS and not flags & _ACK:
            self._settings(payload)
        elif kind == _PING and not flags & _ACK:
            self._out += _frame(_PING, _ACK, 0, payload)
        elif kind == _WINDOW:
            (more,) = struct.unpack(">I", payload)
            if stream:
                self._stream_window += more
            else:
                self._window += more
        elif kind in (_RESET, _GOAWAY):
            raise GrpcCallFailed(f"the server broke off: {payload.hex()}")
        if flags & _END_STREAM and kind in (_DATA, _HEADERS):
            self._over = True

    def _headers(self, headers: dict[str, str]) -> None:
        if headers.get("grpc-status", "0") != "0":
            raise GrpcCallFailed(f"status {headers['grpc-status']}: {headers.get('grpc-message', '')}")

    def _settings(self, payload: bytes) -> None:
        for name, value in struct.iter_unpack(">HI", payload):
            if name == _INITIAL_WINDOW:
                self._stream_window += value - self._first_window
                self._first_window = value
        self._out += _frame(_SETTINGS, _ACK, 0, b"")


def prefixed(message: bytes) -> bytes:
    """A message as gRPC frames it."""
    return _PREFIX.pack(0, len(message)) + message


def split(data: bytes) -> tuple[list[bytes], bytes]:
    """The messages in some bytes, and what is left of them."""
    found, at = [], 0
    while len(data) - at >= 5:
        length = int.from_bytes(data[at + 1 : at + 5], "big")
        if len(data) - at - 5 < length:
            break
        at += 5 + length
        found.append(data[at - length : at])
    return found, data[at:]


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return _HEAD.pack(len(payload) >> 8, len(payload) & 255, kind, flags, stream) + payload

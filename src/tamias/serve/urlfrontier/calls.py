"""One call: messages in, messages out, and how it ends. Knows gRPC's framing, not HTTP/2's."""

import asyncio
import re
import struct
from collections.abc import AsyncIterator, Iterable
from typing import Protocol

from tamias.serve.urlfrontier.status import Code, Refused

MAX_MESSAGE = 4 << 20
_PREFIX = struct.Struct(">BI")
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}


class Channel(Protocol):
    """What a call needs of its connection."""

    async def send(self, stream: int, data: bytes) -> None:
        """Sends when the client has room; raises `asyncio.CancelledError` or `ConnectionError` if it left."""
        ...

    def consumed(self, stream: int, length: int) -> None:
        """The client may send so many bytes more."""
        ...


class Call:
    """A client's call. Bytes wait here until they are read; only then may the client send more."""

    def __init__(self, channel: Channel, stream: int, path: str, metadata: dict[str, str]) -> None:
        self._channel = channel
        self._stream = stream
        self.path = path
        self.metadata = metadata
        self._chunks: list[bytes] = []
        self._rest = b""
        self._credit = 0
        self.ended = False
        self._news = asyncio.Event()

    def feed(self, data: bytes, length: int) -> None:
        """Bytes of the client, and how many of its window they took."""
        self._chunks.append(data)
        self._credit += length
        self._news.set()

    def end(self) -> None:
        """The client has sent all it has to send."""
        self.ended = True
        self._news.set()

    def seconds(self) -> float | None:
        """How long the client is willing to wait, if it says so."""
        told = _TIMEOUT.fullmatch(self.metadata.get("grpc-timeout", ""))
        return int(told[1]) * _UNITS[told[2]] if told else None

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """The client's messages, as many at a time as have come."""
        while not (self.ended and not self._chunks):
            await self._news.wait()
            self._news.clear()
            if messages := self._split():
                yield messages
            self._give_credit()
        if self._rest:
            raise Refused(Code.INTERNAL, "the last message is cut off")

    async def one(self) -> bytes:
        """The only message of a call that has one."""
        found: list[bytes] = []
        async for batch in self.batches():
            found += batch
            if len(found) > 1:
                break
        if len(found) != 1:
            raise Refused(Code.UNIMPLEMENTED, "this call takes exactly one message")
        return found[0]

    async def send(self, messages: Iterable[bytes]) -> None:
        """Sends messages, all in one piece, when the client has room."""
        pack = _PREFIX.pack
        framed = b"".join([part for each in messages for part in (pack(0, len(each)), each)])
        if framed:
            await self._channel.send(self._stream, framed)

    def _split(self) -> list[bytes]:
        data, self._chunks = b"".join([self._rest, *self._chunks]), []
        messages, at, end = [], 0, len(data)
        while end - at >= _PREFIX.size:
            packed, length = _PREFIX.unpack_from(data, at)
            if packed:
                raise Refused(Code.UNIMPLEMENTED, "compressed messages are not understood")
            if length > MAX_MESSAGE:
                raise Refused(
                    Code.RESOURCE_EXHAUSTED, f"a message of {length} bytes is longer than {MAX_MESSAGE}"
                )
            if end - at - _PREFIX.size < length:
                break
            at += _PREFIX.size + length
            messages.append(data[at - length : at])
        self._rest = data[at:]
        return messages

    def _give_credit(self) -> None:
        credit, self._credit = self._credit, 0
        if credit and not self.ended:
            self._channel.consumed(self._stream, credit)

"""A gRPC call: messages in, messages out, and how it ends. Knows gRPC's framing, not HTTP/2's."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterable
from typing import Protocol

from tamias.features.remote_workers.grpc.connection import framed, split_messages
from tamias.features.remote_workers.grpc.status import CallError, Code

STREAM_WINDOW = 1 << 20
MAX_MESSAGE = 4 << 20
MOST_AT_ONCE = 1024
"""Messages of one call that are handed over together."""
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}


class CallConnection(Protocol):
    """The connection of a call, as far as the call needs it."""

    async def send(self, stream: int, data: bytes) -> None:
        """Sends when the client has room; raises `asyncio.CancelledError` or `ConnectionError` if it left."""
        ...

    def consumed(self, stream: int, length: int) -> None:
        """The client may send so many bytes more."""
        ...

    def hold(self, length: int) -> None:
        """Count bytes that wait to be worked off; a negative length removes some."""
        ...


class Call:
    """A client's call. Bytes wait here until they are read; only then may the client send more."""

    def __init__(self, channel: CallConnection, stream: int, path: str, metadata: dict[str, str]) -> None:
        self._channel = channel
        self._stream = stream
        self.path = path
        self.metadata = metadata
        self._buffer = bytearray()
        self._credit = 0
        self._refused: CallError | None = None
        self.targets: list[str] = []
        """Names of what it concerns, for the audit log."""
        self.held = 0
        """Bytes that were received and are not worked off."""
        self._begun_at: float | None = None
        """When the message that is not complete yet was begun."""
        self._is_waited_for = False
        self.ended = False
        self._news = asyncio.Event()

    def feed(self, data: bytes, length: int) -> None:
        """Bytes of the client, and how many of its window they took."""
        if self._begun_at is None and data:
            self._begun_at = time.monotonic()
        self._buffer += data
        self._credit += length
        self._news.set()
        self._hold(len(data))

    def end(self) -> None:
        """The client has sent all it has to send."""
        self.ended = True
        self._news.set()

    def refuse(self, refused: CallError) -> None:
        """Ends the call where it reads next."""
        self._refused = refused
        self._buffer.clear()
        self._news.set()

    def forget(self) -> None:
        """The call is over: nothing waits any more."""
        self._hold(-self.held)
        self._give_credit()

    def seconds(self) -> float | None:
        """Return how long the client is willing to wait, if it says so."""
        found = _TIMEOUT.fullmatch(self.metadata.get("grpc-timeout", ""))
        return int(found[1]) * _UNITS[found[2]] if found else None

    @property
    def stalled_since(self) -> float | None:
        """Return when the message was begun whose rest is waited for."""
        return self._begun_at if self._is_waited_for else None

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """The client's messages, as many at a time as have come, within bounds."""
        while self._refused is None:
            before = len(self._buffer)
            messages = split_messages(self._buffer, MAX_MESSAGE, MOST_AT_ONCE)
            taken = before - len(self._buffer)
            if messages:
                yield messages
                # What we took for those is not the client's fault.
                self._begun_at = time.monotonic() if self._buffer else None
            self._hold(-taken)
            has_more = len(messages) == MOST_AT_ONCE
            self._give_credit(len(self._buffer) if has_more else 0)
            if has_more:
                await asyncio.sleep(0)  # other clients have their turn
            elif self.ended and not self._news.is_set():
                break
            else:
                self._is_waited_for = True
                await self._news.wait()
                self._is_waited_for = False
                self._news.clear()
        if self._refused is not None:
            raise self._refused
        if self._buffer:
            raise CallError(Code.INTERNAL, "the last message is cut off")

    async def one(self) -> bytes:
        """The only message of a call that has one."""
        found: list[bytes] = []
        async for batch in self.batches():
            found += batch
            if len(found) > 1:
                break
        if len(found) != 1:
            raise CallError(Code.UNIMPLEMENTED, "this call takes exactly one message")
        return found[0]

    async def send(self, messages: Iterable[bytes]) -> None:
        """Sends messages, all in one piece, when the client has room."""
        if data := framed(messages):
            await self._channel.send(self._stream, data)

    def _hold(self, length: int) -> None:
        self.held += length
        self._channel.hold(length)

    def _give_credit(self, waiting: int = 0) -> None:
        """Let the client send more, except for bytes of whole messages that wait to be read."""
        credit = self._credit - waiting
        if credit > 0:
            self._credit = waiting
            self._channel.consumed(self._stream, credit)

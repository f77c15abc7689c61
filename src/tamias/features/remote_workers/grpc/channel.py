"""A gRPC client connection with parallel calls over HTTP/2, opened again when it is lost."""

import asyncio
import logging
import random
import ssl
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote

import h2.events
import h2.exceptions
import h2.settings
import msgspec

from tamias.features.remote_workers.grpc.connection import (
    CallError,
    Code,
    GrpcConnection,
    framed,
    split_messages,
)
from tamias.model.errors import ConfigError, TamiasError

MOST_ANSWER = 64 << 20
"""Bytes of all answers to one call."""
CRAWL_HEADER = "tamias-crawl"
"""Names the crawl that a worker works for, percent-encoded; without it, the one without a name."""
_WINDOW = 4 << 20


class CallFailed(TamiasError):
    """The service ended a call with an error: its gRPC status, and what it said."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(f"{sentence or 'no reason given'} (gRPC status {code})")
        self.code = code


class _Stream:
    """A call under way."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.headers: dict[str, str] = {}
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(self, error: Exception | None = None) -> None:
        if self.over.done():
            return
        if error is None:
            self.over.set_result(None)
        else:
            self.over.set_exception(error)


class Channel(GrpcConnection):
    """A connection. Every loss of it is a `ConnectionError` of the calls under way."""

    def __init__(self, authority: str, scheme: str, token: str | None, crawl: str | None) -> None:
        settings = {h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW}
        super().__init__(client=True, window=_WINDOW, settings=settings)
        self._common = [
            (":method", "POST"), (":scheme", scheme), (":authority", authority),
            ("content-type", "application/grpc"), ("te", "trailers"),
            *([("authorization", f"Bearer {token}")] if token else []),
            *([(CRAWL_HEADER, quote(crawl, safe=""))] if crawl else []),
        ]  # fmt: skip
        self._streams: dict[int, _Stream] = {}
        self._lost = asyncio.Event()

    @classmethod
    async def open(
        cls, address: str, *, token: str | None, crawl: str | None, tls: ssl.SSLContext | None
    ) -> "Channel":
        """Connects; `OSError` where nobody answers."""
        host, _, port = address.rpartition(":")
        name = host.strip("[]")
        _, made = await asyncio.get_running_loop().create_connection(
            lambda: cls(address, "https" if tls else "http", token, crawl),
            name, int(port), ssl=tls, server_hostname=name if tls else None,
        )  # fmt: skip
        return made

    def close(self) -> None:
        """Ends it, with the calls under way."""
        super().close()
        self._fail_all("the connection was closed")

    def abort(self) -> None:
        """Ends it at once, whether or not the other end reads."""
        if self._transport is not None:
            self._transport.abort()

    async def close_and_wait(self, seconds: float) -> None:
        """Ends it, and returns when its socket is closed: with TLS when the other end agrees, or in time."""
        self.close()
        try:
            async with asyncio.timeout(seconds):
                await self._lost.wait()
        except TimeoutError:
            self.abort()
            await self._lost.wait()

    async def call(self, path: str, messages: Iterable[bytes]) -> list[bytes]:
        """Send all messages of one call and return all answers. Raises `CallFailed` or `ConnectionError`."""
        number, stream = await self._begin(path)
        try:
            for message in messages:
                await self._send(number, stream, framed([message]))
            if not stream.over.done():
                self._h2.end_stream(number)
                self._flush()
            await stream.over
        finally:
            self._streams.pop(number, None)
            self._give_up(number, stream)
            self._room.set()
        return _answers(stream)

    async def _begin(self, path: str) -> tuple[int, _Stream]:
        """A new call, as soon as the service takes another one beside those under way."""
        while not self.closed and (
            self._h2.open_outbound_streams >= self._h2.remote_settings.max_concurrent_streams
        ):
            self._room.clear()
            await self._room.wait()
        if self.closed:
            raise ConnectionError("the connection is lost")
        try:
            number, stream = self._h2.get_next_available_stream_id(), _Stream()
        except h2.exceptions.NoAvailableStreamIDError as error:
            self.close()
            raise ConnectionError("the connection has no numbers left for calls") from error
        self._streams[number] = stream
        self._h2.send_headers(number, [(":path", path), *self._common])
        return number, stream

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._lost.set()
        self._fail_all(str(exc) if exc else "the service closed the connection")

    def data_received(self, data: bytes) -> None:
        if self._receive(data) is not None:
            self.close()

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.DataReceived():
                self._data(event)
            case h2.events.ResponseReceived() | h2.events.TrailersReceived():
                headers = {str(name): str(value) for name, value in event.headers or ()}
                if event.stream_id in self._streams:
                    self._streams[event.stream_id].headers |= headers
            case h2.events.StreamEnded() if event.stream_id in self._streams:
                self._streams[event.stream_id].end()
            case h2.events.StreamReset() if event.stream_id in self._streams:
                stream = self._streams[event.stream_id]
                stream.end(None if "grpc-status" in stream.headers else ConnectionError("the call was reset"))
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                self._room.set()
            case h2.events.ConnectionTerminated():
                self.close()

    def _data(self, event: h2.events.DataReceived) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is not None:
            stream.data += event.data or b""
            if len(stream.data) > MOST_ANSWER:
                stream.end(
                    CallFailed(Code.RESOURCE_EXHAUSTED, f"the answer has more than {MOST_ANSWER} bytes")
                )
        self._h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)

    async def _send(self, number: int, stream: _Stream, data: bytes) -> None:
        view = memoryview(data)
        while view and not stream.over.done():
            before, view = len(view), self._send_some(number, view)
            if len(view) == before:
                waiting: asyncio.Future[Any] = asyncio.ensure_future(self._room.wait())
                either: list[asyncio.Future[Any]] = [waiting, stream.over]
                await asyncio.wait(either, return_when="FIRST_COMPLETED")
                waiting.cancel()

    def _give_up(self, number: int, stream: _Stream) -> None:
        """A call that is given up is reset, so that the service stops working on it."""
        if self.closed or (stream.over.done() and not stream.over.cancelled()):
            return
        try:
            self._h2.reset_stream(number)
        except h2.exceptions.ProtocolError:
            return
        self._flush()

    def _fail_all(self, why: str) -> None:
        self._room.set()
        for stream in list(self._streams.values()):
            stream.end(ConnectionError(why))


def _answers(stream: _Stream) -> list[bytes]:
    if stream.headers.get(":status") != "200":
        raise CallFailed(Code.UNAVAILABLE, f"not a gRPC service: HTTP status {stream.headers.get(':status')}")
    code = int(stream.headers.get("grpc-status", "2"))
    if code:
        raise CallFailed(code, unquote(stream.headers.get("grpc-message", "")))
    try:
        return split_messages(stream.data, MOST_ANSWER)
    except CallError as error:
        raise CallFailed(error.code, error.sentence) from error


FIRST_PAUSE = 0.05
LONGEST_PAUSE = 5.0
CALL_SECONDS = 60.0
CLOSE_SECONDS = 1.0
_UNAUTHENTICATED = 16
_PASSING = frozenset({1, 2, 4, 8, 14})
"""Statuses that may be gone at the next try: cancelled, unknown, too late, no room, unavailable."""
_log = logging.getLogger(__name__)


class ServiceTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The address of the service, and how to connect to it."""

    address: str
    """Host and port."""
    token: str | None = None
    crawl: str | None = None
    """The name of the crawl to work for."""
    tls: bool = False
    authority: str | None = None
    """A file of certificates to trust instead of the system's."""


class NotReached(Exception):
    """The service did not answer; trying again later can help."""


class HungUp(TamiasError):
    """The client has closed the connection."""


class ReconnectingChannel:
    """Calls of one service. One channel for all of them."""

    def __init__(self, target: ServiceTarget) -> None:
        self._target = target
        self._tls = _context(target)
        self._channel: Channel | None = None
        self._opening = asyncio.Lock()
        self._hung_up = False
        self._away = False

    async def try_once(self, path: str, messages: Iterable[bytes], seconds: float) -> list[bytes]:
        """Return all answers. Raises `NotReached`, or `CallFailed` if the service refuses the call."""
        try:
            async with asyncio.timeout(seconds):
                channel = await self._opened()
                answers = await channel.call(path, messages)
        except TimeoutError:
            if self._channel is not None:
                self._channel.abort()
                self._channel = None
            raise self._not_reached(path, f"no answer within {seconds:g} seconds") from None
        except OSError as error:
            raise self._not_reached(path, str(error)) from error
        except CallFailed as error:
            if error.code == _UNAUTHENTICATED:
                raise ConfigError(f"{self._target.address} does not know us: {error}") from error
            if error.code in _PASSING:
                raise self._not_reached(path, str(error)) from error
            raise
        if self._away:
            self._away = False
            _log.warning("%s answers again", self._target.address)
        return answers

    def _not_reached(self, path: str, why: str) -> NotReached:
        """Told once, and again only after it was reached meanwhile."""
        if not self._away and not self._hung_up:
            self._away = True
            _log.warning("%s does not answer %s, trying again: %s", self._target.address, path, why)
        return NotReached(why)

    async def call(self, path: str, messages: Iterable[bytes]) -> list[bytes]:
        """The same, tried until it is answered. Raises `HungUp` once this end has closed the line."""
        pause, sent = FIRST_PAUSE, list(messages)
        while True:
            try:
                return await self.try_once(path, sent, CALL_SECONDS)
            except NotReached:
                await self.wait(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)

    async def wait(self, pause: float) -> None:
        """Wait a random time before another try, so that workers do not retry together."""
        if not self._hung_up:
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        if self._hung_up:
            raise HungUp("the worker is ending")

    def hang_up(self) -> None:
        """Stop trying; a call under way ends at its next failure."""
        self._hung_up = True

    async def close(self) -> None:
        """Closes the line."""
        self._hung_up = True
        if self._channel is not None:
            await self._channel.close_and_wait(CLOSE_SECONDS)

    async def _opened(self) -> Channel:
        async with self._opening:
            if self._channel is None or self._channel.closed:
                target = self._target
                self._channel = await Channel.open(
                    target.address, token=target.token, crawl=target.crawl, tls=self._tls
                )
            return self._channel


def _context(target: ServiceTarget) -> ssl.SSLContext | None:
    if not target.tls:
        return None
    try:
        context = ssl.create_default_context(cafile=target.authority)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot use the certificates in {target.authority}: {error}") from error
    context.set_alpn_protocols(["h2"])
    return context

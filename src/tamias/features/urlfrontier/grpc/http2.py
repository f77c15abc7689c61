"""gRPC over HTTP/2: the connections of a service, whose streams become calls.

The h2 library knows the protocol; here are the bounds, so that who floods or stalls hurts nobody else.
"""

import asyncio
import contextlib
import logging
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from urllib.parse import quote

import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from hyperframe.frame import GoAwayFrame

from tamias.features.remote_workers.grpc.connection import (
    CallError,
    Code,
    GrpcConnection,
    framed,
    refusal,
    split_messages,
)
from tamias.model.errors import TamiasError

MOST_HELD_BY_ALL = 64 << 20
"""Bytes of messages that were received and not worked off yet, of all clients together."""
GREETING_SECONDS = 10.0
"""Until the first call of a connection must have come."""
IDLE_SECONDS = 300.0
"""A connection without a call for so long is closed; gRPC clients open another when they need one."""
BUSY_SECONDS = 5.0
"""So much longer than others may a connection with a call be quiet; not for ever: calls can be idle too."""
MESSAGE_SECONDS = 30.0
"""A message must be complete so long after its first byte."""


class Connections:
    """The connections that are open, and the bytes they hold."""

    def __init__(self, most: int, most_of_one_address: int) -> None:
        self._most = most
        self._most_of_one_address = most_of_one_address
        self._members: set[Http2Connection] = set()
        self._by_address: Counter[str] = Counter()
        self._held = 0

    def __iter__(self) -> Iterator["Http2Connection"]:
        return iter(list(self._members))

    def add(self, member: "Http2Connection") -> None:
        """Takes one in; where there are too many, another has to leave."""
        self._members.add(member)
        self._by_address[member.peer] += 1
        if self._by_address[member.peer] > self._most_of_one_address:
            self._expel_one_of(member.peer, member)
        elif len(self._members) > self._most:
            self._expel_one_of(self._by_address.most_common(1)[0][0], member)

    def discard(self, member: "Http2Connection") -> None:
        """Remove a connection that is closed."""
        if member in self._members:
            self._members.remove(member)
            self._by_address[member.peer] -= 1
            self._by_address += Counter()  # forgets addresses without connections
            self._held -= member.held

    def hold(self, member: "Http2Connection", length: int) -> None:
        """Count bytes that a connection holds; over the bound, the one that holds the most loses a call."""
        member.held += length
        self._held += length
        if length > 0 and self._held > MOST_HELD_BY_ALL:
            largest = max(self._members, key=lambda each: each.held)
            largest.drop_newest_call("the service holds too many bytes; try again later")

    def sweep(self) -> None:
        """Closes what is idle, and ends calls whose message does not come to its end."""
        now = time.monotonic()
        for member in list(self._members):
            patience = IDLE_SECONDS if member.has_begun else GREETING_SECONDS
            if not member.is_busy and now - member.active_at > patience:
                _expel(member)
            else:
                member.drop_stalled_calls(now - MESSAGE_SECONDS)

    def _expel_one_of(self, peer: str, newest: "Http2Connection") -> None:
        others = (each for each in self._members if each.peer == peer and each is not newest)
        _expel(min(others, key=lambda each: each.active_at + BUSY_SECONDS * each.is_busy))


def _expel(member: "Http2Connection") -> None:
    member.go_away()
    member.close()


STREAM_WINDOW = 1 << 20
MAX_MESSAGE = 4 << 20
MOST_AT_ONCE = 1024
"""Messages of one call that are handed over together."""
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}


class Call:
    """A client's call. Bytes wait here until they are read; only then may the client send more."""

    def __init__(self, channel: "Http2Connection", stream: int, path: str, metadata: dict[str, str]) -> None:
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


_log = logging.getLogger(__name__)

CONNECTION_WINDOW = 8 << 20
MAX_STREAMS = 100
STALL_SECONDS = 120.0
MOST_HELD = 16 << 20
"""Bytes of messages of one connection that were received and not worked off yet."""
MOST_FUTILE = 500.0
FUTILE_A_SECOND = 20.0
"""Frames that carry nothing (dropped calls, pings, settings, empty data): at once, and in the long run."""
SLICE = 64 << 10
SMALL_SLICE = 4 << 10
"""Bytes that are parsed before others have their turn: less while a client has done nothing useful."""
_HEADERS = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-accept-encoding", "identity")]
_SETTINGS = {
    h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
    h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
    h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: 16384,
    h2.settings.SettingCodes.ENABLE_PUSH: 0,
}
_GRPC = re.compile(r"application/grpc(\+proto)?(;.*)?")

Handler = Callable[[Call], Awaitable[None]]


class Http2Connection(GrpcConnection):
    """The connection of one client."""

    def __init__(self, handler: Handler, connections: Connections) -> None:
        super().__init__(client=False, window=CONNECTION_WINDOW, settings=_SETTINGS)
        self._handler = handler
        self._connections = connections
        self._calls: dict[int, Call] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._begun: set[int] = set()
        self._unparsed = bytearray()
        self._is_parsing = False
        self._futile = 0.0
        self._futile_at = time.monotonic()
        self._leaving = False
        self.peer = ""
        self.held = 0
        self.active_at = time.monotonic()
        self._was_useful = False
        self.has_begun = False

    @property
    def is_busy(self) -> bool:
        return bool(self._tasks)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.peer = str((transport.get_extra_info("peername") or ("",))[0])
        self._connections.add(self)
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._transport = None
        self._room.set()
        for task in self._tasks.values():
            task.cancel()

    def pause_writing(self) -> None:
        """The client does not read: then it is not read from either."""
        super().pause_writing()
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._read_on()

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        if not self._is_parsing:
            self._parse()

    def _parse(self) -> None:
        """Parse one slice of the input, and the next slice after the other connections had their turn."""
        if self._transport is None or self._transport.is_closing():
            return
        size = SLICE if self._was_useful and self._futile < MOST_FUTILE / 2 else SMALL_SLICE
        piece = bytes(self._unparsed[:size])
        del self._unparsed[:size]
        self._receive_slice(piece)
        self._is_parsing = bool(self._unparsed)
        if self._is_parsing and self._transport is not None:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._parse)
        else:
            self._read_on()

    def _read_on(self) -> None:
        if self._transport is not None and self._writable and not self._is_parsing:
            self._transport.resume_reading()

    def _receive_slice(self, data: bytes) -> None:
        fault = self._receive(data)
        if fault is not None:
            _log.info("a client broke the protocol: %s", fault)
            self.close()
        elif self._futile > MOST_FUTILE:
            self._h2.close_connection(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
            self._flush()
            self.close()

    def hold(self, length: int) -> None:
        self._connections.hold(self, length)
        if length > 0 and self.held > MOST_HELD:
            self.drop_newest_call("this connection holds too many unfinished messages")

    def drop_newest_call(self, why: str) -> None:
        for stream in sorted(self._calls, reverse=True):
            if self._calls[stream].held:
                self._drop(stream, CallError(Code.RESOURCE_EXHAUSTED, why))
                return

    def drop_stalled_calls(self, begun_before: float) -> None:
        for stream, call in list(self._calls.items()):
            if call.stalled_since is not None and call.stalled_since < begun_before:
                self._drop(stream, CallError(Code.DEADLINE_EXCEEDED, "a message was not completed in time"))

    def _drop(self, stream: int, refused: CallError) -> None:
        call = self._calls[stream]
        call.refuse(refused)
        call.forget()

    def go_away(self) -> None:
        """Refuse further calls; those under way may end."""
        self._leaving = True
        if self._transport is not None:
            # Not through the library, for which the connection would be over at once.
            self._transport.write(GoAwayFrame(0, last_stream_id=max(self._calls, default=0)).serialize())

    def tasks(self) -> list[asyncio.Task[None]]:
        """The calls under way."""
        return list(self._tasks.values())

    async def send(self, stream: int, data: bytes) -> None:
        if stream not in self._begun:
            self._begun.add(stream)
            self._h2.send_headers(stream, _HEADERS)
        view = memoryview(data)
        while view:
            before, view = len(view), self._send_some(stream, view)
            if len(view) == before:
                async with asyncio.timeout(STALL_SECONDS):
                    await self._room.wait()
        self._was_useful = True

    def consumed(self, stream: int, length: int) -> None:
        with contextlib.suppress(h2.exceptions.ProtocolError):
            self._h2.acknowledge_received_data(length, stream)
        self._flush()

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.DataReceived():
                self._data(event)
            case h2.events.RequestReceived():
                self._begin(event)
            case h2.events.StreamEnded() if event.stream_id in self._calls:
                self._calls[event.stream_id].end()
            case h2.events.StreamReset():
                self._count_futile()
                if event.stream_id in self._tasks:
                    self._tasks[event.stream_id].cancel()
            case h2.events.RemoteSettingsChanged():
                self._count_futile()
                self._room.set()
            case h2.events.WindowUpdated():
                self._room.set()
            case h2.events.PingReceived() | h2.events.PriorityUpdated():
                self._count_futile()
            case h2.events.ConnectionTerminated() if not self._tasks:
                self.close()

    def _count_futile(self) -> None:
        now = time.monotonic()
        forgiven = (now - self._futile_at) * FUTILE_A_SECOND
        self._futile = max(0.0, self._futile - forgiven) + 1
        self._futile_at = now

    def _data(self, event: h2.events.DataReceived) -> None:
        """Give data to its call, which says when it is consumed; without a call it is at once."""
        call, length = self._calls.get(event.stream_id), event.flow_controlled_length or 0
        if call is None:
            self.consumed(event.stream_id, length)
            return
        if not event.data and event.stream_ended is None:
            self._count_futile()
        call.feed(event.data or b"", length)

    def _begin(self, event: h2.events.RequestReceived) -> None:
        headers = {str(name): str(value) for name, value in event.headers or ()}
        stream = event.stream_id
        self.has_begun, self.active_at = True, time.monotonic()
        if self._leaving:
            self._h2.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)
            return
        if headers.get(":method") != "POST" or not _GRPC.fullmatch(headers.get("content-type", "")):
            self._h2.send_headers(stream, [(":status", "415")], end_stream=True)
            return
        call = Call(self, stream, headers.get(":path", ""), headers)
        self._calls[stream] = call
        task = asyncio.get_running_loop().create_task(self._run(call, stream))
        self._tasks[stream] = task
        task.add_done_callback(lambda _done: self._forget(stream))

    def _forget(self, stream: int) -> None:
        if call := self._calls.pop(stream, None):
            call.forget()
        self._tasks.pop(stream, None)
        self._begun.discard(stream)

    async def _run(self, call: Call, stream: int) -> None:
        code, sentence = Code.OK, ""
        try:
            async with asyncio.timeout(call.seconds()):
                await self._handler(call)
            self.active_at, self._was_useful = time.monotonic(), True
        except CallError as refused:
            code, sentence = refused.code, refused.sentence
        except TimeoutError:
            code, sentence = Code.DEADLINE_EXCEEDED, "the time for the call is over"
        except TamiasError as error:
            problem = refusal(error)
            code, sentence = problem.code, problem.sentence
        except ConnectionError:
            return
        except Exception:  # noqa: BLE001 (the service goes on, whatever a call met)
            _log.exception("a call of %s failed", call.path)
            code, sentence = Code.INTERNAL, "the service made a mistake; its log says more"
        self._end(stream, code, sentence)

    def _end(self, stream: int, code: Code, sentence: str) -> None:
        trailers = [("grpc-status", str(int(code)))]
        if sentence:
            trailers.append(("grpc-message", quote(sentence, safe=" !\"#$&'()*+,-./:;<=>?@[]^_`{|}~")))
        try:
            head = [] if stream in self._begun else _HEADERS
            self._h2.send_headers(stream, head + trailers, end_stream=True)
            if not self._calls[stream].ended:
                self._h2.reset_stream(stream, h2.errors.ErrorCodes.NO_ERROR)
        except (h2.exceptions.ProtocolError, KeyError):
            return
        self._flush()

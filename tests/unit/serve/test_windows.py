"""The windows of a connection: a client may send on as its data is consumed, and never more than that."""

import asyncio

import h2.config
import h2.connection
import pytest
from hyperframe.frame import DataFrame

from tamias.features.remote_workers.grpc.connection import CallError, Code
from tamias.features.urlfrontier.grpc.http2 import (
    CONNECTION_WINDOW,
    MOST_AT_ONCE,
    STREAM_WINDOW,
    Connections,
    Http2Connection,
)

PATH = "/urlfrontier.URLFrontier/PutURLs"
MESSAGE = b"\0" + (60_000).to_bytes(4, "big") + bytes(60_000)
SMALL_MESSAGES = (b"\0" + (100).to_bytes(4, "big") + bytes(100)) * 150


class Wire:
    """The transport of a connection: what is written comes to the client's own library."""

    def __init__(self, client):
        self.client = client
        self.is_closed = False

    def write(self, data):
        self.client.receive_data(bytes(data))

    def get_extra_info(self, name):
        return ("127.0.0.1", 1)

    def is_closing(self):
        return self.is_closed

    def close(self):
        self.is_closed = True

    def pause_reading(self):
        pass

    resume_reading = pause_reading


class Client:
    """A client's library, and the connection it talks to."""

    def __init__(self, handler):
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.wire = Wire(self.h2)
        self.connection = Http2Connection(handler, Connections(10, 10))
        self.h2.initiate_connection()
        self.connection.connection_made(self.wire)
        self.flush()

    def begin(self):
        stream = self.h2.get_next_available_stream_id()
        headers = [(":method", "POST"), (":scheme", "http"), (":path", PATH), (":authority", "x")]
        self.h2.send_headers(stream, [*headers, ("content-type", "application/grpc"), ("te", "trailers")])
        return stream

    def flush(self):
        self.connection.data_received(self.h2.data_to_send())

    async def send(self, stream, data, *, ends):
        for at in range(0, len(data), 16_384):
            part = data[at : at + 16_384]
            while self.h2.local_flow_control_window(stream) < len(part):
                self.flush()
                await asyncio.sleep(0)
            self.h2.send_data(stream, part, end_stream=ends and at + 16_384 >= len(data))
        self.flush()


async def read_all(call):
    async for _ in call.batches():
        pass


async def read_nothing(_call):
    await asyncio.Event().wait()


async def leave(_call):
    pass


@pytest.mark.parametrize("handler", [read_all, leave])
def test_calls_may_follow_each_other_for_longer_than_the_window_of_the_connection(handler):
    async def work():
        client = Client(handler)
        for _ in range(2 * CONNECTION_WINDOW // len(MESSAGE)):
            async with asyncio.timeout(10):
                await client.send(client.begin(), MESSAGE, ends=True)
                await asyncio.sleep(0)

    asyncio.run(work())


def test_what_is_sent_to_a_call_that_is_over_ends_no_other_and_is_given_back():
    async def work():
        client = Client(leave)
        room, sent = client.h2.outbound_flow_control_window, 0
        while sent < 2 * CONNECTION_WINDOW:
            stream = client.begin()
            client.flush()
            for _ in range(3):
                await asyncio.sleep(0)
            on_their_way = [DataFrame(stream, bytes(16_000), pad_length=255, flags=["PADDED"])] * 4
            client.connection.data_received(b"".join(frame.serialize() for frame in on_their_way))
            sent += 4 * 16_256
            for _ in range(20):  # it is parsed in slices
                await asyncio.sleep(0)
            assert not client.wire.is_closed
        return sent, client.h2.outbound_flow_control_window - room  # its library has counted nothing sent

    sent, given_back = asyncio.run(work())
    assert sent - CONNECTION_WINDOW // 2 < given_back <= sent


def test_one_call_may_send_more_than_its_window():
    async def work():
        client = Client(read_all)
        stream = client.begin()
        for _ in range(3 * CONNECTION_WINDOW // len(MESSAGE)):
            async with asyncio.timeout(10):
                await client.send(stream, MESSAGE, ends=False)

    asyncio.run(work())


def test_what_a_quick_client_sends_to_a_slow_call_does_not_pile_up():
    async def read_slowly(call):
        async for _ in call.batches():
            for _ in range(100):
                await asyncio.sleep(0)

    async def work():
        client, held = Client(read_slowly), 0
        stream = client.begin()
        for _ in range(20 * STREAM_WINDOW // len(SMALL_MESSAGES)):
            async with asyncio.timeout(10):
                await client.send(stream, SMALL_MESSAGES, ends=False)
            held = max(held, client.connection.held)
        return held

    assert asyncio.run(work()) < 3 * STREAM_WINDOW


def test_only_a_client_that_is_waited_for_has_stalled():
    """Others wait for us, or have sent all they have to say by now."""

    async def work(*sent):
        proceed, read, refused = asyncio.Event(), [], []

        async def read_late(call):
            try:
                async for messages in call.batches():
                    read.extend(messages)
                    await proceed.wait()
            except CallError as error:
                refused.append(error.code)

        client = Client(read_late)
        stream = client.begin()
        for data in sent:
            client.h2.send_data(stream, data)
            client.flush()
            await asyncio.sleep(0)
        client.connection.drop_stalled_calls(float("inf"))
        proceed.set()
        client.h2.end_stream(stream)
        client.flush()
        for _ in range(10):
            await asyncio.sleep(0)
        return read, refused

    whole, cut_off = b"\0\0\0\0\1a", b"\0\0\0"
    assert asyncio.run(work(whole, b"\0\0\0\0\1b" * 3)) == ([b"a", b"b", b"b", b"b"], [])
    assert asyncio.run(work(b"")) == ([], [])
    assert asyncio.run(work(cut_off)) == ([], [Code.DEADLINE_EXCEEDED])
    assert asyncio.run(work(whole, cut_off)) == ([b"a"], [Code.INTERNAL])


@pytest.mark.parametrize("before", [1, MOST_AT_ONCE])
def test_a_message_longer_than_the_window_comes_after_others(before):
    async def work():
        client = Client(read_all)
        long = b"\0" + (2 * STREAM_WINDOW).to_bytes(4, "big") + bytes(2 * STREAM_WINDOW)
        async with asyncio.timeout(10):
            await client.send(client.begin(), b"\0\0\0\0\0" * before + long, ends=True)

    asyncio.run(work())


def test_who_sends_more_than_its_window_is_cut_off():
    async def work():
        client = Client(read_nothing)
        stream = client.begin()
        client.flush()
        sent = 0
        while not client.wire.is_closed and sent < 4 * STREAM_WINDOW:
            client.connection.data_received(DataFrame(stream, bytes(16_384)).serialize())
            sent += 16_384
            for _ in range(6):  # it is parsed in slices
                await asyncio.sleep(0)
        return sent

    assert asyncio.run(work()) == STREAM_WINDOW + 16_384

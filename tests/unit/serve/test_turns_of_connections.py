"""A client that sends much does not keep others waiting: after a part of it everybody else has a turn."""

import asyncio

import h2.config
import h2.connection
import pytest
from hpack import Encoder
from hyperframe.frame import DataFrame, HeadersFrame, PingFrame

from tamias.features.remote_workers.grpc.connection import framed
from tamias.features.urlfrontier.grpc.http2 import (
    MAX_MESSAGE,
    MOST_HELD,
    SMALL_SLICE,
    Connections,
    Http2Connection,
)

HOSTILE, MESSAGES = 20, 6_000
SLICES = 3
TURNS = 20_000


class Transport:
    def get_extra_info(self, _name):
        return "127.0.0.1", 1

    def write(self, _data):
        pass

    def close(self):
        pass

    def is_closing(self):
        return False

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


def request(path, messages, *, ended):
    """What a client sends first: its greeting, and one call."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.initiate_connection()
    client.send_headers(
        1,
        [
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
            ("content-type", "application/grpc"),
        ],
    )  # fmt: skip
    data, frame = framed(messages), client.max_outbound_frame_size
    for at in range(0, len(data), frame):
        client.send_data(1, data[at : at + frame], end_stream=ended and at + frame >= len(data))
    return client.data_to_send()


@pytest.mark.parametrize("size", [0, 5], ids=["empty messages", "messages"])
def test_a_call_is_answered_before_more_than_a_few_slices_of_each_flood_are_read(size):
    taken = dict.fromkeys(range(HOSTILE), 0)
    everybody, read_before = [], []

    async def handler(call):
        if call.path == "/good":
            await call.one()
            worked_off = sum(taken.values()) * (5 + size)
            read_before.append(worked_off + sum(each.held for each in everybody))
            return
        async for batch in call.batches():
            taken[int(call.path[1:])] += len(batch)

    async def attack():
        connections = Connections(HOSTILE + 1, HOSTILE + 1)
        floods = [request(f"/{number}", [b"x" * size] * MESSAGES, ended=False) for number in taken]
        everybody.extend(Http2Connection(handler, connections) for _ in [*floods, "good"])
        for each, sent in zip(everybody, [*floods, request("/good", [b"?"], ended=True)], strict=True):
            each.connection_made(Transport())
            each.data_received(sent)
        for _ in range(TURNS):
            await asyncio.sleep(0)
            if sum(taken.values()) == HOSTILE * MESSAGES:
                break
        tasks = [task for each in everybody for task in each.tasks()]
        for each in everybody:
            each.connection_lost(None)
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(attack())
    assert sum(taken.values()) == HOSTILE * MESSAGES
    assert read_before[0] <= HOSTILE * SLICES * SMALL_SLICE


class Closing(Transport):
    def __init__(self):
        self.closed = False

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed


def talk(frames, *, path="/held", turns=5):
    """What is left of a connection that says these frames one after another, with turns between."""

    async def handler(call):
        async for _ in call.batches():
            pass

    async def main():
        connection, transport, most = Http2Connection(handler, Connections(9, 9)), Closing(), 0
        connection.connection_made(transport)
        for frame in (request(path, [], ended=False), *frames):
            connection.data_received(frame)
            for _ in range(turns):
                await asyncio.sleep(0)
            most = max(most, connection.held)
        tasks = connection.tasks()
        connection.connection_lost(None)
        await asyncio.gather(*tasks, return_exceptions=True)
        return transport.closed, most

    return asyncio.run(main())


def test_a_client_that_sends_frames_without_anything_in_them_is_sent_away():
    pings = [PingFrame(0, opaque_data=b"12345678").serialize() * 50] * 30
    assert talk(pings)[0]
    assert not talk(pings[:5])[0]


def test_unfinished_messages_of_one_connection_are_bounded():
    def frames():
        for number in range(6):
            stream = 2 * number + 3
            opened = HeadersFrame(stream, data=headers, flags=["END_HEADERS"]).serialize()
            begun = DataFrame(stream, data=b"\0" + MAX_MESSAGE.to_bytes(4, "big")).serialize()
            yield opened + begun
            for _ in range((MAX_MESSAGE - 1) // len(piece)):
                yield DataFrame(stream, data=piece).serialize()

    piece = bytes(16_000)
    headers = Encoder().encode(
        [
            (":method", "POST"), (":scheme", "http"), (":path", "/held"), (":authority", "x"),
            ("content-type", "application/grpc"),
        ],
    )  # fmt: skip
    closed, most = talk(frames())
    assert not closed
    assert MOST_HELD // 2 < most <= MOST_HELD + len(piece) + 5

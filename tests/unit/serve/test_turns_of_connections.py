"""A client that sends much does not keep others waiting: after a part of it everybody else has a turn."""

import asyncio

import h2.config
import h2.connection
import pytest

from tamias.crawl.remote.grpc.connection import framed
from tamias.serve.urlfrontier.grpc.connections import Connections
from tamias.serve.urlfrontier.grpc.http2 import SMALL_SLICE, Http2Connection

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

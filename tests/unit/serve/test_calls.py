"""gRPC's framing: messages come out whole, however their bytes came in."""

import asyncio

import pytest

from tamias.features.remote_workers.grpc.connection import CallError
from tamias.features.urlfrontier.grpc.http2 import MAX_MESSAGE, Call


class Silence:
    """A connection that notes what it is told."""

    def __init__(self):
        self.sent = b""
        self.credit = 0
        self.held = 0

    async def send(self, stream, data):
        self.sent += data

    def consumed(self, stream, length):
        self.credit += length

    def hold(self, length):
        self.held += length


def framed(message):
    return b"\0" + len(message).to_bytes(4, "big") + message


def read(chunks):
    async def work():
        call = Call(Silence(), 1, "/x", {})
        for chunk in chunks:
            call.feed(chunk, len(chunk))
        call.end()
        return [message async for batch in call.batches() for message in batch]

    return asyncio.run(work())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_messages_come_out_whole_however_they_are_cut(size):
    messages = [b"", b"a", b"b" * 50]
    data = b"".join(map(framed, messages))
    assert read([data[at : at + size] for at in range(0, len(data), size)]) == messages


def test_a_message_that_is_cut_off_is_told():
    with pytest.raises(CallError, match="cut off"):
        read([framed(b"abc")[:-1]])


def test_a_compressed_message_is_refused():
    with pytest.raises(CallError, match="compressed"):
        read([b"\1" + framed(b"abc")[1:]])


def test_a_message_that_says_it_is_huge_is_refused_before_it_comes():
    with pytest.raises(CallError, match=str(MAX_MESSAGE)):
        read([b"\0\xff\xff\xff\xff"])


def test_what_was_worked_off_is_held_no_more():
    async def work():
        channel = Silence()
        call = Call(channel, 1, "/x", {})
        data = framed(b"a") * 3000 + framed(b"cut off")[:-1]
        call.feed(data, len(data))
        held, reading = [], call.batches()
        for _ in range(3):
            await anext(reading)
            held.append(channel.held)
        call.forget()
        return held, channel.held

    assert asyncio.run(work()) == ([6 * 3000 + 11, 6 * 1976 + 11, 6 * 952 + 11], 0)


def test_messages_go_out_in_one_piece():
    async def work():
        channel = Silence()
        await Call(channel, 1, "/x", {}).send([b"a", b"", b"bc"])
        return channel.sent

    assert asyncio.run(work()) == framed(b"a") + framed(b"") + framed(b"bc")


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("1S", 1.0), ("250m", 0.25), ("2H", 7200.0), ("nonsense", None), ("", None), ("123456789S", None)],
)
def test_how_long_a_client_waits(told, seconds):
    assert Call(Silence(), 1, "/x", {"grpc-timeout": told}).seconds() == seconds

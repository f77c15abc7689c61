"""Joined data frames say what the client's frames said, however the bytes come; hyperframe reads both."""

import random

import pytest
from hyperframe.frame import DataFrame, Frame, HeadersFrame, PingFrame, WindowUpdateFrame

from tamias.serve.urlfrontier.grpc.joined_frames import LARGEST, FrameJoiner

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frames_of_a_client(chance):
    for number in range(300):
        stream = chance.choice([1, 1, 1, 3])
        kind = chance.random()
        if kind < 0.8:
            size = chance.choice([0, 1, 90, 5_000, LARGEST - 4])
            frame = DataFrame(stream, bytes((number % 256,)) * size)
            if kind < 0.05:
                frame.pad_length = 3
                frame.flags.add("PADDED")
            elif kind < 0.1:
                frame.flags.add("END_STREAM")
        elif kind < 0.9:
            frame = HeadersFrame(stream, b"\x88", flags=["END_HEADERS"])
        elif kind < 0.95:
            frame = PingFrame(0, b"12345678")
        else:
            frame = WindowUpdateFrame(0, window_increment=7)
        yield frame.serialize()


def frames(data):
    found, at = [], 0
    while at < len(data):
        frame, length = Frame.parse_frame_header(memoryview(data)[at : at + 9])
        frame.parse_body(memoryview(data)[at + 9 : at + 9 + length])
        found.append((frame, length))
        at += 9 + length
    return found


def meaning(found):
    """What a library makes of frames: runs of data of one stream with nothing between them are one."""
    told = []
    for frame, length in found:
        plain = type(frame) is DataFrame and not frame.flags and length > 0
        if plain and told and told[-1][0] == ("data", frame.stream_id):
            told[-1][1].extend(frame.data)
        elif plain:
            told.append((("data", frame.stream_id), bytearray(frame.data)))
        else:
            told.append((type(frame).__name__, frame.stream_id, sorted(frame.flags), frame.serialize()))
    return told


@pytest.mark.parametrize("seed", range(20))
def test_the_library_is_told_the_same_in_fewer_frames(seed):
    chance = random.Random(seed)
    sent = b"".join(frames_of_a_client(chance))
    joiner, given, data = FrameJoiner(), b"", PREFACE + sent
    while data:
        size = chance.choice([1, 8, 100, 20_000, 65_536])
        given += joiner.join(data[:size])
        data = data[size:]
    assert given.startswith(PREFACE)
    before, after = frames(sent), frames(given.removeprefix(PREFACE))
    assert meaning(after) == meaning(before)
    assert len(after) < len(before)
    assert max(length for _, length in after) <= LARGEST


def test_a_run_of_small_messages_is_one_frame():
    joiner = FrameJoiner()
    joined = joiner.join(PREFACE + b"".join(DataFrame(1, b"x" * 100).serialize() for _ in range(160)))
    assert [length for _, length in frames(joined.removeprefix(PREFACE))] == [16_000]


def test_a_frame_that_is_too_large_goes_to_the_library_at_once():
    head = (LARGEST + 1).to_bytes(3, "big") + b"\0\0\0\0\0\1"
    assert FrameJoiner().join(PREFACE + head) == PREFACE + head


def test_other_bytes_than_a_preface_go_to_the_library_at_once():
    assert FrameJoiner().join(b"GET / HTTP/1.1\r\n") == b"GET / HTTP/1.1\r\n"

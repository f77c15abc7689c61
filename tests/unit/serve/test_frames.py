"""What frames say is the same after they were split, however the bytes come; hyperframe reads both."""

import random

import pytest
from hyperframe.frame import DataFrame, Frame, HeadersFrame, PingFrame, WindowUpdateFrame

from tamias.serve.urlfrontier.grpc.frames import LARGEST, FrameSplitter, ReceiveWindow

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
    """What frames and data say: data of one stream with nothing between is one, whatever its frames."""
    told = []
    for each in found:
        if isinstance(each, tuple) and isinstance(each[0], int):
            stream, data, length = each
        else:
            frame, length = each
            if type(frame) is not DataFrame or length == 0 or "END_STREAM" in frame.flags:
                told.append((type(frame).__name__, frame.stream_id, sorted(frame.flags), frame.serialize()))
                continue
            stream, data = frame.stream_id, frame.data
        if told and told[-1][0] == ("data", stream):
            told[-1] = (told[-1][0], told[-1][1] + data, told[-1][2] + length)
        else:
            told.append((("data", stream), data, length))
    return told


@pytest.mark.parametrize("seed", range(20))
def test_what_is_split_says_the_same_in_order(seed):
    chance = random.Random(seed)
    sent = b"".join(frames_of_a_client(chance))
    splitter, given, data = FrameSplitter(), [], PREFACE + sent
    while data:
        size = chance.choice([1, 8, 100, 20_000, 65_536])
        given += splitter.split(data[:size])
        data = data[size:]
    preface = b""
    while len(preface) < len(PREFACE):
        preface += given.pop(0)
    given.insert(0, preface.removeprefix(PREFACE))
    found = [one for each in given for one in (frames(each) if isinstance(each, bytes) else [each])]
    assert meaning(found) == meaning(frames(sent))
    for each in found:  # data that the library need not read
        assert not isinstance(each[0], DataFrame) or each[1] == 0 or "END_STREAM" in each[0].flags


def test_a_run_of_small_messages_is_one_piece():
    sent = PREFACE + b"".join(DataFrame(1, b"x" * 100).serialize() for _ in range(160))
    assert list(FrameSplitter().split(sent)) == [PREFACE, (1, b"x" * 16_000, 16_000)]


def test_padding_takes_from_the_window_and_is_not_data():
    sent = PREFACE + DataFrame(1, b"abc", pad_length=7, flags=["PADDED"]).serialize()
    assert list(FrameSplitter().split(sent)) == [PREFACE, (1, b"abc", 11)]


def test_more_padding_than_a_frame_has_is_for_the_library():
    wrong = (2).to_bytes(3, "big") + b"\0\x08\0\0\0\1" + b"\x02x"
    assert list(FrameSplitter().split(PREFACE + wrong)) == [PREFACE + wrong]


def test_a_frame_that_is_too_large_goes_to_the_library_at_once():
    head = (LARGEST + 1).to_bytes(3, "big") + b"\0\0\0\0\0\1"
    assert list(FrameSplitter().split(PREFACE + head)) == [PREFACE + head]
    whole = DataFrame(1, b"x" * (LARGEST + 1)).serialize()
    assert list(FrameSplitter().split(PREFACE + whole)) == [PREFACE + whole]


def test_other_bytes_than_a_preface_go_to_the_library_at_once():
    assert list(FrameSplitter().split(b"GET / HTTP/1.1\r\n")) == [b"GET / HTTP/1.1\r\n"]


def test_a_window_is_widened_by_what_is_consumed_a_quarter_at_a_time():
    window = ReceiveWindow(100)
    assert window.take(100)
    assert [window.consume(10) for _ in range(6)] == [0, 0, 30, 0, 0, 30]
    assert window.take(60)
    assert not window.take(1)

"""Every codec gives back exactly the bytes that it was given."""

import gzip
import random
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamias.archive.blobs import frames
from tamias.archive.blobs.blob import Codec
from tamias.archive.blobs.frames import Text
from tamias.archive.blobs.lines import MOST_LINES, decode_rows, encode_rows
from tamias.archive.blobs.trial import Base, decode, encode

bodies = st.one_of(st.binary(max_size=3000), st.text("ab\r\n,;", max_size=500).map(str.encode))
lines = st.lists(st.sampled_from([b"a", b"bb", b"", b"c\r", b"dddd", b"e,f"]), min_size=2, max_size=60)


def table(rows, seed=1):
    """Lines that no codec can guess."""
    chance = random.Random(seed)
    return [b"%d,%032x" % (number, chance.getrandbits(128)) for number in range(rows)]


def with_base(content, codec=Codec.ZSTD, full=1 << 30, spent=0):
    return Base(content, codec, full, spent)


@given(bodies)
def test_raw_gives_back_every_body(body):
    assert frames.unpack_raw(frames.raw(body)) == body


@given(bodies)
def test_zstd_gives_back_every_body(body):
    assert frames.decompress(frames.compress(body), len(body)) == body


@given(bodies, st.binary(min_size=8, max_size=3000))
def test_a_delta_gives_back_every_body(body, base):
    payload = frames.compress_delta(body, base, 1 << 20)
    assert frames.decompress(payload, len(body), base) == body


@given(lines, st.randoms(use_true_random=False))
def test_rows_give_back_every_body_that_they_take(base, chance):
    body = chance.sample(base, len(base)) + chance.choices([b"new", b"", b"\r"], k=len(base) // 6)
    payload = encode_rows(b"\n".join(body), b"\n".join(base))
    if payload is not None:
        content = b"\n".join(body)
        assert decode_rows(payload, len(content), Text(b"\n".join(base))).content == content


@given(bodies, bodies, st.sampled_from([Codec.ZSTD, Codec.ROWS]))
def test_whatever_the_trial_chooses_gives_back_every_body(body, base, codec):
    payload = encode(body, with_base(base, codec))
    assert decode(payload.codec, payload.content, len(body), Text(base)).content == body


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n"], ids=repr)
@pytest.mark.parametrize("line_break", [b"\n", b"\r\n"], ids=repr)
def test_shuffled_rows_keep_their_line_ends(end, line_break):
    rows = table(20_000)
    base = line_break.join(rows) + end
    random.Random(2).shuffle(rows)
    body = line_break.join([*rows, b"a new one"]) + end
    payload = encode(body, with_base(base))
    assert payload.codec is Codec.ROWS
    assert decode(payload.codec, payload.content, len(body), Text(base)).content == body


def test_rows_in_another_order_are_told_by_their_numbers():
    rows = table(20_000)
    base = b"\n".join(rows)
    random.Random(3).shuffle(rows)
    payload = encode_rows(b"\n".join(rows), base)
    assert len(payload) < len(base) / 15


def test_rows_may_have_a_line_much_longer_than_the_others_and_zeros_at_ends():
    rows = [*table(500), b"x" * 100_000, b"a\x00", b"a", b""]
    base = b"\n".join(rows)
    random.Random(6).shuffle(rows)
    body = b"\n".join(rows)
    payload = encode_rows(body, base)
    assert len(payload) < 2000
    assert decode_rows(payload, len(body), Text(base)).content == body


def test_rows_are_not_for_files_of_other_lines():
    assert encode_rows(b"\n".join(table(100, 1)), b"\n".join(table(100, 2))) is None


def test_rows_are_not_for_more_lines_than_memory_holds():
    body = b"\n" * MOST_LINES
    assert encode_rows(body, body) is None


def test_an_edited_file_becomes_a_delta():
    rows = table(5000)
    base = b"\n".join(rows)
    rows[1234] = b"1234,edited"
    payload = encode(b"\n".join(rows), with_base(base))
    assert payload.codec is Codec.ZDELTA
    assert len(payload.content) < 1000


def test_a_zip_of_which_one_member_changed_becomes_a_delta():
    chance = random.Random(4)
    members = [chance.randbytes(20_000) for _ in range(10)]
    base = b"".join(members)
    members[3] = chance.randbytes(20_000)
    assert encode(b"".join(members), with_base(base)).codec is Codec.ZDELTA


def test_a_body_unlike_its_base_stands_alone():
    body, base = (b"\n".join(table(3000, seed)) for seed in (1, 2))
    assert encode(body, with_base(base)).codec is Codec.ZSTD


def test_what_is_compressed_already_is_kept_raw():
    assert encode(gzip.compress(b"\n".join(table(3000)), 9)).codec is Codec.RAW


def test_what_is_compressed_already_is_kept_raw_when_large():
    assert encode(zlib.compress(b"\n".join(table(60_000)), 9)).codec is Codec.RAW


def test_when_deltas_have_come_to_a_key_frame_a_key_frame_is_due():
    rows = table(3000)
    base = b"\n".join(rows)
    rows[5] = b"5,edited"
    full = len(frames.compress(base))
    assert encode(b"\n".join(rows), with_base(base, full=full, spent=full + 1000)).codec is Codec.ZSTD


def test_a_delta_is_given_up_as_soon_as_it_is_too_large():
    chance = random.Random(5)
    assert frames.compress_delta(chance.randbytes(4_000_000), b"base", 100_000) is None


def test_an_empty_body_has_a_payload():
    payload = encode(b"")
    assert decode(payload.codec, payload.content, 0, None).content == b""


@pytest.mark.parametrize("codec", [Codec.RAW, Codec.ZSTD, Codec.ZDELTA, Codec.ROWS])
@given(damaged=st.binary(max_size=200))
def test_a_broken_payload_is_told_as_such(codec, damaged):
    with suppress(frames.PayloadError):
        decode(codec, damaged, 50, Text(b"a base\nof lines"))


@given(st.data())
def test_broken_rows_are_told_as_such_even_in_a_sound_frame(data):
    inside = data.draw(
        st.one_of(st.binary(max_size=60), st.binary(max_size=40).map(lambda rest: b"3 1\n" + rest))
    )
    with suppress(frames.PayloadError):
        decode_rows(frames.compress(inside), 20, Text(b"a\nb\nc"))


def test_a_frame_that_holds_more_than_was_recorded_is_broken():
    with pytest.raises(frames.PayloadError):
        frames.decompress(frames.compress(b"a" * 1000), 999)

"""Packs describe themselves: every record can be found without the database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamias.archive.blobs.blob import MAGIC, Codec, Description, described, description_frame, scan
from tamias.archive.blobs.frames import compress, raw

payloads = st.lists(
    st.one_of(st.binary(max_size=300).map(raw), st.binary(max_size=300).map(compress)), max_size=8
)


def record(number, payload):
    told = Description(f"{number:064x}", 5, Codec.RAW, len(payload), base=f"{number + 1:064x}", depth=1)
    return description_frame(told) + payload


def scanned(pack):
    return list(scan(lambda start, length: pack[start : start + length], len(pack)))


def numbers(pack):
    return [int(each.description.sha256, 16) for each in scanned(pack)]


def test_a_description_is_read_as_it_was_written():
    told = Description("ab" * 32, 12, Codec.ZDELTA, 7, base="cd" * 32, depth=3)
    assert described(description_frame(told)) == told


@given(payloads)
def test_all_records_of_a_pack_are_found_at_their_places(payloads):
    records = [record(number, payload) for number, payload in enumerate(payloads)]
    found = scanned(b"".join(records))
    assert [(each.start, each.length) for each in found] == [
        (sum(map(len, records[:at])), len(each)) for at, each in enumerate(records)
    ]


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_anywhere_hides_one_record_at_most(bit):
    records = [record(number, raw(b"body %d" % number)) for number in range(3)]
    pack = b"".join(records)
    for at in range(len(records[0]), len(records[0]) + len(records[1])):
        broken = bytearray(pack)
        broken[at] ^= 1 << bit
        assert numbers(bytes(broken)) in ([0, 1, 2], [0, 2])


def test_a_torn_tail_is_no_record():
    pack = record(0, raw(b"whole")) + record(1, raw(b"torn"))[:-1]
    assert numbers(pack) == [0]


def test_a_pack_inside_a_body_is_not_taken_for_records():
    inside = record(7, raw(b"x"))
    assert numbers(record(0, raw(inside)) + record(1, raw(b"y"))) == [0, 1]


def test_records_behind_a_long_stretch_of_nonsense_are_found():
    pack = record(0, raw(b"a")) + (MAGIC + b"nonsense") * 200_000 + record(1, raw(b"b"))
    assert numbers(pack) == [0, 1]


def test_many_records_behind_a_large_one_are_found():
    pack = record(0, raw(bytes(3_000_000))) + b"".join(record(number, raw(b"b")) for number in range(1, 9000))
    assert numbers(pack) == list(range(9000))

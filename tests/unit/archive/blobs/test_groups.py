"""Several bodies in one payload, and each of them out of it again."""

import hashlib

import pytest

from tamias.archive.blobs.frames import PayloadError
from tamias.archive.blobs.groups import decode_group, encode_group, members, part
from tests.messages import saying


def with_digests(*bodies):
    return [(hashlib.sha256(body).hexdigest(), body) for body in bodies]


BODIES = with_digests(b"a,b\n1,2\n" * 50, b"", b"\n\n", b"a,b\n1,3\n" * 50)


@pytest.mark.parametrize("base", [None, b"a,b\n1,2\n" * 49, b"eight..."])
def test_every_body_comes_out_as_it_went_in(base):
    group = encode_group(BODIES, base)
    content = decode_group(group.payload, group.size, base)
    assert hashlib.sha256(content).hexdigest() == group.sha256
    assert [(sha256, part(content, sha256)) for sha256, _ in BODIES] == BODIES
    assert [(each.sha256, each.size) for each in members(group.payload)] == [(d, len(b)) for d, b in BODIES]


def test_the_list_is_read_from_the_beginning_of_a_payload():
    group = encode_group(BODIES * 1, None)
    assert len(members(group.payload[:400])) == len(BODIES)


def test_a_body_that_is_not_in_the_group_is_refused():
    group = encode_group(BODIES, None)
    content = decode_group(group.payload, group.size, None)
    with pytest.raises(PayloadError, check=saying()):
        part(content, "0" * 64)


@pytest.mark.parametrize("at", range(0, 200, 7))
def test_a_damaged_payload_is_an_error_or_other_bytes_and_never_a_crash(at):
    group = encode_group(BODIES, None)
    damaged = bytearray(group.payload)
    damaged[at % len(damaged)] ^= 255
    try:
        content = decode_group(bytes(damaged), group.size, None)
    except PayloadError:
        return
    assert hashlib.sha256(content).hexdigest() != group.sha256

"""The `group` codec: several bodies in one frame, so that what they share is stored once; a `part` is one.

`docs/blobs.md` says what a payload holds.
"""

import hashlib
from collections.abc import Iterator, Sequence

import msgspec
import zstandard

from tamias.archive.blobs.frames import PayloadError, compress, compress_best, decompress

MOST_MEMBERS = 1000
_LINE_BYTES = 90
"""Of a line of the list, at most: a digest, a size."""
LIST_BYTES = MOST_MEMBERS * _LINE_BYTES
"""Of the list, at most, packed or not."""
_BREAK = b"\n"


class GroupMember(msgspec.Struct, frozen=True):
    """A body of a group, and where it starts behind the list."""

    sha256: str
    size: int
    start: int


class Group(msgspec.Struct, frozen=True):
    """A group as it is stored."""

    sha256: str
    """Of the list and the bodies."""
    size: int
    payload: bytes


def encode_group(bodies: Sequence[tuple[str, bytes]], base: bytes | None) -> Group:
    """Bodies with their digests, in the order in which each is most like the one before."""
    listing = b"".join(b"%s %d\n" % (sha256.encode(), len(body)) for sha256, body in bodies) + _BREAK
    content = b"".join(body for _, body in bodies)
    digest = hashlib.sha256(listing)
    digest.update(content)
    payload = compress(listing) + compress_best(content, base)
    return Group(digest.hexdigest(), len(listing) + len(content), payload)


def decode_group(payload: bytes, size: int, base: bytes | None) -> bytes:
    """The list and the bodies, one after another."""
    listing, rest = _split(payload)
    return listing + decompress(rest, size - len(listing), base)


def part(group: bytes, sha256: str) -> bytes:
    """Return one body of an unpacked group."""
    end = group.find(_BREAK * 2, 0, LIST_BYTES) + 2
    for member in _listed(group[:end]):
        if member.sha256 == sha256:
            return group[end + member.start : end + member.start + member.size]
    raise PayloadError("its group does not list it")


def members(payload: bytes) -> list[GroupMember]:
    """Return what is in a group, by the beginning of its payload; without its base."""
    return list(_listed(_split(payload)[0]))


def _split(payload: bytes) -> tuple[bytes, bytes]:
    """The list, and the frame behind it."""
    try:
        if not 0 <= zstandard.frame_content_size(payload[:18]) <= LIST_BYTES:
            raise PayloadError("the list of its members is too long")
        unpacking = zstandard.ZstdDecompressor().decompressobj()
        return unpacking.decompress(payload), unpacking.unused_data
    except zstandard.ZstdError as error:
        raise PayloadError(f"zstd says of the list of its members: {error}") from error


def _listed(listing: bytes) -> Iterator[GroupMember]:
    start = 0
    for line in listing.splitlines()[:-1]:
        sha256, _, size = line.partition(b" ")
        if len(sha256) != 64 or not size.isdigit():
            raise PayloadError("the list of its members cannot be read")
        yield GroupMember(sha256.decode("ascii", "replace"), int(size), start)
        start += int(size)

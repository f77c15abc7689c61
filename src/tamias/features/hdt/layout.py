"""The words, numbers and checksums of an HDT file, and how its parts are put into bytes."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from google_crc32c import extend
from numpy.typing import NDArray

_SLICE = 1 << 24


def crc8(data: bytes) -> bytes:
    """Return the checksum of the few bytes before an array or a section."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = ((value << 1) ^ (0x07 if value & 0x80 else 0)) & 0xFF
    return bytes((value,))


def crc16(data: bytes) -> bytes:
    """Return the checksum of a control information."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0xA001 if value & 1 else 0)
    return value.to_bytes(2, "little")


def crc32c(data: memoryview | bytes) -> bytes:
    """Return the checksum of the data of an array or a section."""
    value = 0
    for start in range(0, len(data), _SLICE):
        value = extend(value, bytes(data[start : start + _SLICE]))
    return value.to_bytes(4, "little")


MAGIC = b"$HDT"
GLOBAL, HEADER, DICTIONARY, TRIPLES = 1, 2, 3, 4
VERSION_1 = "<http://purl.org/HDT/hdt#HDTv1>"
N_TRIPLES = "ntriples"
FOUR_SECTIONS = "<http://purl.org/HDT/hdt#dictionaryFour>"
BITMAP_TRIPLES = "<http://purl.org/HDT/hdt#triplesBitmap>"
BY_SUBJECT = "1"
"""The order subject, predicate, object; there are five others, which nobody was seen to use."""

PLAIN, FRONT_CODED = 1, 2
BLOCK = 16
"""Strings from one that is written whole to the next."""

_PACKED_AT_ONCE = 1 << 16

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def vbyte(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the high bit marks the last byte.

    >>> vbyte(5), vbyte(128)
    (b'\\x85', b'\\x00\\x81')
    """
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F)
        number >>= 7
    out.append(number | 0x80)
    return bytes(out)


def control(kind: int, form: str, properties: Mapping[str, object]) -> bytes:
    """Return the header of one of the four parts."""
    words = "".join(f"{key}={value};" for key, value in properties.items())
    data = MAGIC + bytes((kind,)) + form.encode() + b"\0" + words.encode() + b"\0"
    return data + crc16(data)


def log_array(numbers: Numbers) -> Iterator[bytes]:
    """Numbers of equal width."""
    width = max(1, int(numbers.max(initial=0)).bit_length())
    yield _begun(bytes((PLAIN, width)) + vbyte(len(numbers)))
    yield from _checked(_packed(numbers, width))


def bitmap(flags: Flags) -> Iterator[bytes]:
    """Yield the bytes of an array with a bit for each flag."""
    yield _begun(bytes((PLAIN,)) + vbyte(len(flags)))
    yield from _checked(iter((np.packbits(flags, bitorder="little").tobytes(),)))


def section(strings: Sequence[bytes]) -> Iterator[bytes]:
    """A part of the dictionary: strings in order, of which only what differs from the one before is kept."""
    buffer, starts = front_coded(strings)
    yield _begun(bytes((FRONT_CODED,)) + vbyte(len(strings)) + vbyte(len(buffer)) + vbyte(BLOCK))
    yield from log_array(np.array(starts, dtype=np.int64))
    yield from _checked(iter((buffer,)))


def front_coded(strings: Sequence[bytes]) -> tuple[bytes, list[int]]:
    """The strings in blocks, and where each block starts, with the end as the last."""
    buffer, starts, previous = bytearray(), [], b""
    for index, string in enumerate(strings):
        if index % BLOCK == 0:
            starts.append(len(buffer))
            buffer += string
        else:
            shared = _shared(previous, string)
            buffer += vbyte(shared)
            buffer += string[shared:]
        buffer.append(0)
        previous = string
    return bytes(buffer), [*starts, len(buffer)]


def _shared(one: bytes, other: bytes) -> int:
    """The length of their common start. As numbers, the first difference is the highest bit of the XOR."""
    size = min(len(one), len(other))
    difference = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return size - (difference.bit_length() + 7) // 8


def _packed(numbers: Numbers, width: int) -> Iterator[bytes]:
    places = np.arange(width, dtype=np.int64)
    for start in range(0, len(numbers), _PACKED_AT_ONCE):
        bits = (numbers[start : start + _PACKED_AT_ONCE, None] >> places) & 1
        yield np.packbits(bits.astype(np.uint8).ravel(), bitorder="little").tobytes()


def _begun(data: bytes) -> bytes:
    return data + crc8(data)


def _checked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    data = b"".join(pieces)
    yield data
    yield crc32c(data)

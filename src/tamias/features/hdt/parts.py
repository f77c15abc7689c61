"""Takes the parts of an HDT file out of bytes that nobody vouches for.

Every length is held against the bytes that are there before anything is made of it.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from tamias.features.hdt.layout import FRONT_CODED, MAGIC, PLAIN, Numbers, crc8, crc16, crc32c

MAX_CONTROL = 1 << 16
MAX_VBYTE = 10
MAX_WIDTH = 57
"""Bits of a number that eight bytes hold from any bit on; more than any count of things can need."""

_JOINED_AT_ONCE = 1 << 15


class HdtError(Exception):
    """A file that does not follow the layout; says where."""


class HdtTooLarge(Exception):
    """A dictionary that would take more memory than is allowed."""


class Control(msgspec.Struct, frozen=True):
    """The words before a part of the file."""

    form: str
    properties: dict[str, str]


class LogArray(msgspec.Struct, frozen=True):
    """Numbers of equal width, unpacked where they are looked at."""

    data: NDArray[np.uint8]
    width: int
    count: int

    def numbers(self, start: int, stop: int) -> Numbers:
        """Return the numbers from `start` to before `stop`."""
        places = np.arange(start, stop, dtype=np.int64) * self.width
        first = int(start * self.width >> 3)
        last = int((stop * self.width + 7) >> 3)
        window = np.zeros(last - first + 8, dtype=np.uint8)
        window[: last - first] = self.data[first:last]
        eights = window[((places >> 3) - first)[:, None] + np.arange(8)].view("<u8").ravel()
        numbers: Numbers = (eights >> (places & 7).astype(np.uint64)).astype(np.int64)
        return numbers & ((1 << self.width) - 1)


class Bitmap(msgspec.Struct, frozen=True):
    """Bits, unpacked where they are looked at."""

    data: NDArray[np.uint8]
    count: int

    def bits(self, start: int, stop: int) -> Numbers:
        """Return the bits from `start` to before `stop`, as 0 and 1."""
        window = np.unpackbits(self.data[start >> 3 : (stop + 7) >> 3], bitorder="little")
        return window[start & 7 : (start & 7) + stop - start].astype(np.int64)


class Strings(msgspec.Struct, frozen=True):
    """A section of the dictionary, one string after another, and where each ends."""

    text: bytes
    ends: Numbers

    @property
    def count(self) -> int:
        """Return the number of strings, without the empty first one."""
        return len(self.ends) - 1


class Cursor:
    """Walks through the bytes of a file."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._at = 0

    def control(self, kind: int) -> Control:
        """The control information of a part."""
        start = self._at
        window = bytes(self._data[start : start + MAX_CONTROL])
        form_end = window.find(b"\0", 5)
        words_end = window.find(b"\0", form_end + 1)
        if not window.startswith(MAGIC + bytes((kind,))) or form_end < 0 or words_end < 0:
            raise HdtError(f"no control information of kind {kind} at byte {start}")
        data = bytes(self.take(words_end + 1))
        self._verify(crc16(data), f"control information at byte {start}")
        words = window[form_end + 1 : words_end].decode("utf-8", "replace").split(";")
        pairs = (word.partition("=") for word in words if word)
        return Control(window[5:form_end].decode("utf-8", "replace"), {key: value for key, _, value in pairs})

    def take(self, size: int) -> memoryview:
        """The next bytes."""
        if size > len(self._data) - self._at:
            raise HdtError(f"claims {size} bytes at byte {self._at}, where {self.left} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    @property
    def left(self) -> int:
        """Bytes that were not taken."""
        return len(self._data) - self._at

    def log_array(self) -> LogArray:
        """An array of numbers."""
        start = self._begin(PLAIN, "array of numbers")
        width = self.take(1)[0]
        count = self._end_of_claims(start, 1)[0]
        if not 1 <= width <= MAX_WIDTH:
            raise HdtError(f"numbers of {width} bits at byte {start}")
        return LogArray(np.frombuffer(self._checked((count * width + 7) // 8), np.uint8), width, count)

    def bitmap(self) -> Bitmap:
        """An array of bits."""
        start = self._begin(PLAIN, "bitmap")
        count = self._end_of_claims(start, 1)[0]
        return Bitmap(np.frombuffer(self._checked((count + 7) // 8), np.uint8), count)

    def strings(self, most: int) -> Strings:
        """A section of the dictionary; of more than `most` bytes, it is `HdtTooLarge`."""
        start = self._begin(FRONT_CODED, "dictionary section with front coding")
        count, size, block = self._end_of_claims(start, 3)
        self.log_array()  # where the blocks start; they follow each other anyway
        buffer = bytes(self._checked(size))
        if count > size or (count and block < 1):
            raise HdtError(f"claims {count} strings in {size} bytes at byte {start}")
        return _unfolded(buffer, count, block, most)

    def _begin(self, kind: int, word: str) -> int:
        start = self._at
        if self.take(1)[0] != kind:
            raise HdtError(f"no {word} at byte {start}, or of a kind that is not read")
        return start

    def _end_of_claims(self, start: int, numbers: int) -> list[int]:
        claims = [self._vbyte() for _ in range(numbers)]
        self._verify(crc8(bytes(self._data[start : self._at])), f"lengths at byte {start}")
        return claims

    def _vbyte(self) -> int:
        start = self._at
        number, at = read_vbyte(self._data[start : start + MAX_VBYTE], 0)
        self.take(at)
        return number

    def _checked(self, size: int) -> memoryview:
        start = self._at
        data = self.take(size)
        self._verify(crc32c(data), f"data at byte {start}")
        return data

    def _verify(self, checksum: bytes, what: str) -> None:
        if self.take(len(checksum)) != checksum:
            raise HdtError(f"checksum does not match the {what}")


def read_vbyte(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A number and where it ends."""
    number = 0
    for place in range(MAX_VBYTE):
        if at + place >= len(data):
            break
        byte = data[at + place]
        number |= (byte & 0x7F) << (7 * place)
        if byte & 0x80:
            return number, at + place + 1
    raise HdtError("unterminated number")


def _unfolded(buffer: bytes, count: int, block: int, most: int) -> Strings:
    text, ends = bytearray(), np.zeros(count + 1, dtype=np.int64)
    pieces: list[bytes] = []
    string, at = b"", 0
    for index in range(count):
        shared = 0
        if index % block:
            shared, at = (
                read_vbyte(buffer, at) if buffer[at : at + 1] < b"\x80" else (buffer[at] & 0x7F, at + 1)
            )
        end = buffer.find(b"\0", at)
        if end < 0 or shared > len(string):
            raise HdtError(f"string {index + 1} of a dictionary section is damaged")
        string = string[:shared] + buffer[at:end]
        at = end + 1
        pieces.append(string)
        ends[index + 1] = len(string)
        if len(pieces) == _JOINED_AT_ONCE or len(string) > _JOINED_AT_ONCE:
            text += b"".join(pieces)
            pieces.clear()
            _expect_room(text, most)
    text += b"".join(pieces)
    _expect_room(text, most)
    return Strings(bytes(text), np.cumsum(ends))


def _expect_room(text: bytearray, most: int) -> None:
    if len(text) > most:
        raise HdtTooLarge

"""Reads an HDT file: its terms as strings, its triples in batches of their numbers.

Its parts are bytes that nobody vouches for: every length is held against the bytes that are there before
anything is made of it.
"""

from collections.abc import Iterator
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from tamias.features.hdt.writer import (
    BITMAP_TRIPLES,
    BY_SUBJECT,
    DICTIONARY,
    FOUR_SECTIONS,
    FRONT_CODED,
    GLOBAL,
    HEADER,
    MAGIC,
    PLAIN,
    TRIPLES,
    VERSION_1,
    Numbers,
    crc8,
    crc16,
    crc32c,
)

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


class Terms(msgspec.Struct, frozen=True):
    """The terms of one position, by their numbers from 1: first those it shares with another."""

    shared: Strings
    own: Strings

    @property
    def count(self) -> int:
        """Return the number of terms."""
        return self.shared.count + self.own.count

    def strings(self, numbers: Numbers) -> list[bytes]:
        """The terms of these numbers, which must ascend."""
        first = int(np.searchsorted(numbers, self.shared.count, side="right"))
        return [
            *_slices(self.shared, numbers[:first]),
            *_slices(self.own, numbers[first:] - self.shared.count),
        ]


class Triples(msgspec.Struct, frozen=True):
    """The numbers of subject, predicate and object of some triples, in order."""

    subjects: Numbers
    predicates: Numbers
    objects: Numbers


class Hdt:
    """An open file. Raises `HdtError` where it is damaged, `HdtTooLarge` for `most` bytes of terms."""

    def __init__(self, data: bytes, most: int) -> None:
        cursor = Cursor(data)
        _expect(cursor.control(GLOBAL), VERSION_1)
        cursor.take(_length(cursor.control(HEADER)))
        _expect(cursor.control(DICTIONARY), FOUR_SECTIONS)
        sections: list[Strings] = []
        for _ in range(4):
            sections.append(cursor.strings(most))
            most -= len(sections[-1].text)
        shared, subjects, predicates, objects = sections
        self.subjects = Terms(shared, subjects)
        self.predicates = Terms(_NONE, predicates)
        self.objects = Terms(shared, objects)
        self._read_triples(cursor)

    def _read_triples(self, cursor: Cursor) -> None:
        control = cursor.control(TRIPLES)
        _expect(control, BITMAP_TRIPLES)
        if control.properties.get("order", BY_SUBJECT) != BY_SUBJECT:
            raise HdtError(f"triples in order {control.properties['order']}, of which only 1 is read")
        self._last_pairs, self._last_objects = cursor.bitmap(), cursor.bitmap()
        self._predicates, self._objects = cursor.log_array(), cursor.log_array()
        _expect_fit(self._last_pairs, self._predicates)
        _expect_fit(self._last_objects, self._objects)

    @property
    def count(self) -> int:
        """Return the number of triples."""
        return self._objects.count

    def batches(self, size: int) -> Iterator[Triples]:
        """Yield all triples in order, `size` at a time."""
        pair, subject = 0, 1
        for start, stop in pairwise([*range(0, self.count, size), self.count]):
            ends = self._last_objects.bits(start, stop)
            pairs = np.cumsum(ends) - ends
            pair_stop = min(pair + int(pairs[-1]) + 1, self._predicates.count)
            pair_ends = self._last_pairs.bits(pair, pair_stop)
            subjects = subject + np.cumsum(pair_ends) - pair_ends
            predicates = self._predicates.numbers(pair, pair_stop)
            if len(predicates) <= int(pairs[-1]):
                raise HdtError(f"triple {stop} belongs to a predicate that is not there")
            triples = Triples(subjects[pairs], predicates[pairs], self._objects.numbers(start, stop))
            _expect_known(triples.subjects, self.subjects, "subject")
            _expect_known(triples.predicates, self.predicates, "predicate")
            _expect_known(triples.objects, self.objects, "object")
            yield triples
            done = int(ends.sum())
            subject += int(pair_ends[:done].sum())
            pair += done


_NONE = Strings(b"", np.zeros(1, dtype=np.int64))


def _slices(strings: Strings, numbers: Numbers) -> list[bytes]:
    text = strings.text
    starts, ends = strings.ends[numbers - 1].tolist(), strings.ends[numbers].tolist()
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _length(control: Control) -> int:
    try:
        return max(0, int(control.properties.get("length", "")))
    except ValueError:
        raise HdtError("header without a length") from None


def _expect(control: Control, form: str) -> None:
    if control.form != form:
        raise HdtError(f"{control.form[:200]} is not read, only {form}")


def _expect_fit(bits: Bitmap, numbers: LogArray) -> None:
    if bits.count != numbers.count:
        raise HdtError(f"{numbers.count} numbers for {bits.count} bits")


def _expect_known(numbers: Numbers, terms: Terms, word: str) -> None:
    if int(numbers.min(initial=1)) < 1 or int(numbers.max(initial=1)) > terms.count:
        raise HdtError(f"{word} {int(numbers.max())} of {terms.count}")

"""JSON of any length in little memory: read a value at a time, and digested without regard to its order.

Taken apart are objects down to `LEVELS`, and the arrays that they hold; every other value is read as a whole.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from enum import Enum
from hashlib import sha256
from heapq import merge
from itertools import chain, groupby, pairwise
from operator import itemgetter
from typing import IO, Final

import msgspec

from tamias.content.canonical import Unreadable
from tamias.content.canonical.canonical_json import (
    COLLECTION,
    FEATURES,
    IN_ORDER,
    SMALL,
    canonical,
    canonical_pieces,
    is_identifier,
    key_of,
    key_paths,
    parts_of_array,
    parts_of_object,
    value_of,
)

LEVELS: Final = 3
"""Objects within objects that are taken apart."""
MOST_VALUES: Final = 4_000_000
"""Values and names that are read one by one: a text of many small ones would take minutes."""
_ITEM_LEVELS: Final = 2
_HELD: Final = 50_000
_BLOCK: Final = 1 << 14
_READ: Final = 1 << 20

_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_WORD: Final = re.compile(rb"[^\s,:\[\]{}\"]*")
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NESTING: Final = re.compile(rb"([\[{])|([\]}])|" + _STRING.pattern, re.DOTALL)


class JsonText:
    """Goes through a JSON text. Raises `Unreadable` where it is none, or has too long or too many values."""

    def __init__(self, chunks: Iterator[bytes], longest: int) -> None:
        self._chunks = chunks
        self._longest = longest
        self._text = b""
        self._at = 0
        self._before = 0
        self._values = 0

    @property
    def place(self) -> int:
        """Number of bytes read so far."""
        return self._before + self._at

    def sign(self) -> bytes:
        """Return the next byte after white space; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._text):
                return self._text[self._at : self._at + 1]
            if not self._more():
                return b""

    def take(self, *expected: bytes) -> bytes:
        """Goes past one of these signs."""
        sign = self.sign()
        if sign not in expected:
            raise Unreadable(f"not JSON: {sign!r} at byte {self.place}")
        self._at += 1
        return sign

    def value(self) -> bytes:
        """The text of the next value, which need not be valid."""
        self._values += 1
        if self._values > MOST_VALUES:
            raise Unreadable(f"more than {MOST_VALUES} values of JSON")
        nested = self.sign() in {b"[", b"{"}
        end = self._end_of_nested() if nested else self._end_of_plain()
        self._check(end - self._at)
        text = self._text[self._at : end]
        self._at = end
        return text

    def members(self) -> Iterator[str]:
        """The names of an object's members; the value of each must be read before the next."""
        sign = self.take(b"{")
        if self.sign() == b"}":
            sign = self.take(b"}")
        while sign != b"}":
            name = value_of(self.value())
            if not isinstance(name, str):
                raise Unreadable(f"not JSON: a member without a name at byte {self.place}")
            self.take(b":")
            yield name
            sign = self.take(b",", b"}")

    def items(self) -> Iterator[bytes]:
        """The texts of an array's items."""
        sign = self.take(b"[")
        if self.sign() == b"]":
            sign = self.take(b"]")
        while sign != b"]":
            yield self.value()
            sign = self.take(b",", b"]")

    def end(self) -> None:
        """Raise `Unreadable` if anything follows."""
        if self.sign():
            raise Unreadable(f"not JSON: more than one value, the next at byte {self.place}")

    def _end_of_plain(self) -> int:
        pattern = _STRING if self._text[self._at : self._at + 1] == b'"' else _WORD
        while True:
            found = pattern.match(self._text, self._at)
            assert found is not None
            if found.end() < len(self._text) or not self._more():
                return found.end()

    def _end_of_nested(self) -> int:
        depth, passed = 0, 0
        while True:
            size = len(self._text)
            for found in _NESTING.finditer(self._text, self._at + passed):
                if found.lastindex == 1:
                    depth += 1
                elif found.lastindex == 2:
                    depth -= 1
                    if not depth:
                        return found.end()
                elif found.end() == size:  # a string that may go on
                    passed = found.start() - self._at
                    break
            else:
                passed = size - self._at
            if not self._more():
                return len(self._text)

    def _more(self) -> bool:
        """Reads on, twice as much as is held."""
        left = self._text[self._at :]
        self._check(len(left))
        self._before += self._at
        self._at, size = 0, 0
        read = [left]
        for chunk in self._chunks:
            read.append(chunk)
            size += len(chunk)
            if size >= max(_READ, len(left)):
                break
        self._text = b"".join(read)
        return size > 0

    def _check(self, size: int) -> None:
        if size > self._longest:
            raise Unreadable(f"a value of more than {self._longest} bytes")


class HeldJson:
    """The same for a text that is in memory, in less time."""

    def __init__(self, text: bytes) -> None:
        self._next = msgspec.Raw(text.strip(b" \t\r\n"))

    def sign(self) -> bytes:
        """Return the first byte of the next value; empty at the end."""
        return bytes(memoryview(self._next)[:1])

    def value(self) -> bytes:
        """The text of the next value."""
        return bytes(self._next)

    def members(self) -> Iterator[str]:
        """The names of an object's members, each once; the value of each must be read before the next."""
        for name, value in parts_of_object(self._next).items():
            self._next = value
            yield name

    def items(self) -> Iterator[bytes]:
        """The texts of an array's items."""
        return map(bytes, parts_of_array(self._next))

    def end(self) -> None:
        """Do nothing: text after the last value is part of it, and makes it invalid."""


class _SortedRecords:
    """Records of one length, given back in order. Most of them are in a file, as runs that are sorted."""

    def __init__(self, length: int, stack: ExitStack) -> None:
        """The file is closed with the stack, if not before."""
        self._length = length
        self._stack = stack
        self._held: list[bytes] = []
        self._file: IO[bytes] | None = None
        self._runs: list[int] = []

    def add(self, record: bytes) -> None:
        self._held.append(record)
        if len(self._held) < _HELD:
            return
        if self._file is None:
            self._file = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        self._file.write(b"".join(sorted(self._held)))
        self._runs.append(self._file.tell())
        self._held = []

    def sorted(self) -> Iterator[bytes]:
        """Return all texts in order; nothing can be added later."""
        self._held.sort()
        runs = [self._run(start, end) for start, end in pairwise([0, *self._runs])]
        return merge(*runs, self._held) if runs else iter(self._held)

    def is_without_repetition(self) -> bool:
        before = None
        for record in self.sorted():
            if record == before:
                return False
            before = record
        return True

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _run(self, start: int, end: int) -> Iterator[bytes]:
        assert self._file is not None
        size = _BLOCK - _BLOCK % self._length
        for place in range(start, end, size):
            self._file.seek(place)
            block = self._file.read(min(size, end - place))
            for at in range(0, len(block), self._length):
                yield block[at : at + self._length]


class Regard(Enum):
    """The order that counts in a comparison."""

    CONTENT = "content"
    """Not the order of keys, nor that of items which are a set."""
    ORDER_OF_ITEMS = "order of items"
    """Not the order of keys."""
    ALL_ORDER = "all order"


def json_digest(
    chunks: Iterator[bytes], longest: int, regard: Regard = Regard.CONTENT, *, held: int | None = None
) -> tuple[bytes, int]:
    """The digest of a JSON text, and how many items it has. Raises `Unreadable`.

    Items are those of its array, or of the longest array near its surface; else it has one. With regard to
    the content, two texts have the same digest just when `canonical` makes them the same. No value that is
    read as a whole may be longer than so many bytes; a text that is not longer than that, or than `held`, is
    taken into memory, where it is read in less time.
    """
    with ExitStack() as stack:
        reader = _reader(chunks, longest, longest if held is None else held)
        found = _Digester(reader, regard, stack).value(0, in_order=regard is not Regard.CONTENT)
        reader.end()
    return found


def _reader(chunks: Iterator[bytes], longest: int, most_held: int) -> JsonText | HeldJson:
    held, size = [], 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size > most_held:
            return JsonText(chain(held, chunks), longest)
    return HeldJson(b"".join(held))


class _Digester:
    def __init__(self, reader: JsonText | HeldJson, regard: Regard, stack: ExitStack) -> None:
        self._reader = reader
        self._regard = regard
        self._stack = stack

    def value(self, level: int, *, in_order: bool) -> tuple[bytes, int]:
        sign = self._reader.sign()
        if sign == b"{" and level < LEVELS:
            return self._object(level, in_order)
        if sign == b"[":
            items = self._items(in_order)
            digest = items.digest(as_set=False)
            items.close()
            return digest, items.count if level <= _ITEM_LEVELS else 1
        return self._text_digest(self._reader.value(), in_order), 1

    def _object(self, level: int, in_order: bool) -> tuple[bytes, int]:
        members, most, number = self._sorted(72), None, 0
        features: tuple[int, _ArrayDigest] | None = None
        is_collection = False
        for number, name in enumerate(self._reader.members()):
            below = in_order or name in IN_ORDER
            if name == FEATURES and not below and self._reader.sign() == b"[":
                items = self._items(below, as_set=True)
                features, count = (number, items), items.count
            else:
                start = self._reader.sign()
                if name == "type" and start not in {b"[", b"{"}:
                    text = self._reader.value()
                    is_collection = len(text) < SMALL and value_of(text) == COLLECTION
                    digest, count = self._text_digest(text, below), 1
                else:
                    if name == "type":
                        is_collection = False
                    digest, count = self.value(level + 1, in_order=below)
                members.add(self._member(name, number, digest))
            most = max(count, most or 0)
        if features is not None:
            number, items = features
            members.add(self._member(FEATURES, number, items.digest(as_set=is_collection)))
            items.close()
        whole = sha256(b"object")
        for _, same in groupby(members.sorted(), key=itemgetter(slice(32))):
            *_, last = same  # of members of one name the last counts
            whole.update(last[:32] + last[40:])
        members.close()
        return whole.digest(), 1 if most is None or level >= _ITEM_LEVELS else most

    def _member(self, name: str, number: int, digest: bytes) -> bytes:
        place = number.to_bytes(8, "big")
        if self._regard is Regard.ALL_ORDER:
            return sha256(place + name.encode()).digest() + place + digest
        return sha256(name.encode()).digest() + place + digest

    def _items(self, in_order: bool, *, as_set: bool = False) -> "_ArrayDigest":
        items = _ArrayDigest(self._sorted, self._text_digest, in_order, as_set)
        for text in self._reader.items():
            items.add(text)
        return items

    def _sorted(self, length: int) -> _SortedRecords:
        return _SortedRecords(length, self._stack)

    def _text_digest(self, text: bytes, in_order: bool) -> bytes:
        whole = sha256()
        if self._regard is Regard.ALL_ORDER and len(text) <= SMALL:
            whole.update(msgspec.json.encode(value_of(text)))
        else:
            for piece in canonical_pieces(text, in_order=in_order):
                whole.update(piece)
        return whole.digest()


class _ArrayDigest:
    """The items of an array: in their order, and in any, where all have an identifier or they are a set."""

    def __init__(
        self,
        sorted_records: Callable[[int], _SortedRecords],
        text_digest: Callable[[bytes, bool], bytes],
        in_order: bool,
        as_set: bool,
    ) -> None:
        self._sorted_records = sorted_records
        self._text_digest = text_digest
        self._in_order = in_order
        self._as_set = as_set
        self._list = sha256(b"list")
        self._set: _SortedRecords | None = None
        self._keys: list[tuple[Sequence[str], _SortedRecords]] = []
        self.count = 0

    def add(self, text: bytes) -> None:
        if self.count == 0 and not self._in_order:
            paths = [names for names in key_paths([msgspec.Raw(text)]) if is_identifier(names)]
            self._keys = [(names, self._sorted_records(16)) for names in paths]
            if self._keys or self._as_set:
                self._set = self._sorted_records(32)
        self.count += 1
        if self._set is None:
            digest = self._text_digest(text, self._in_order)
            self._list.update(digest)
            return
        if len(text) <= SMALL:
            value = value_of(text)
            digest = sha256(canonical(value)).digest()
        else:
            value = None
            digest = self._text_digest(text, False)
        self._list.update(digest)
        self._set.add(digest)
        self._note_keys(text, value)

    def _note_keys(self, text: bytes, value: object) -> None:
        for place in reversed(range(len(self._keys))):
            names, keys = self._keys[place]
            key = key_of(msgspec.Raw(text) if value is None else value, names)
            if key is None:
                keys.close()
                del self._keys[place]
            else:
                keys.add(sha256(key).digest()[:16])

    def digest(self, *, as_set: bool) -> bytes:
        if self._set is None or not (as_set or any(keys.is_without_repetition() for _, keys in self._keys)):
            return self._list.digest()
        whole = sha256(b"set")
        for record in self._set.sorted():
            whole.update(record)
        return whole.digest()

    def close(self) -> None:
        for records in (self._set, *(keys for _, keys in self._keys)):
            if records is not None:
                records.close()

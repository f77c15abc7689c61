"""JSON of any length: its text without a copy in memory, and its digest without regard to its order.

Digested part by part are objects down to `LEVELS`, and the arrays that they hold; all else as a whole.
"""

import mmap
import tempfile
from collections.abc import Iterator
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from tamias.features.archive.canonical.canonical_json import (
    FEATURES,
    IN_ORDER,
    SMALL,
    canonical_pieces,
    is_collection,
    is_set,
    parts_of_array,
    parts_of_object,
    raw_json,
    value_of,
)
from tamias.features.archive.canonical.text import Source, marked_chunks
from tamias.model.document import Unreadable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVELS: Final = 3
"""Objects within objects that are taken apart."""
MOST_VALUES: Final = 4_000_000
"""Values near the surface of a text that is not held in memory."""
_ITEM_LEVELS: Final = 2


def json_text(source: Source, held: int, most: int) -> msgspec.Raw:
    """The one value of a text: in memory up to so many bytes, beyond that in a file. Raises `Unreadable`."""
    chunks, read, size = marked_chunks(source), [], 0
    for chunk in chunks:
        read.append(chunk)
        size += len(chunk)
        if size > held:
            return raw_json(_mapped(b"".join(read), chunks, most))
    return raw_json(b"".join(read))


def _mapped(begun: bytes, rest: Iterator[bytes], most: int) -> mmap.mmap:
    """Write a text into a file that is gone with its last use. Raises `Unreadable`."""
    brackets, values, size, chunk = Brackets(), 0, 0, begun
    with tempfile.TemporaryFile(prefix="tamias-json-") as file:
        while chunk:
            size += file.write(chunk)
            if size > most:
                raise Unreadable(f"more than {most} bytes of JSON")
            values += brackets.separators(chunk, LEVELS + 1)
            if values > MOST_VALUES:
                raise Unreadable(f"more than {MOST_VALUES} values of JSON")
            chunk = next(rest, b"")
        file.flush()
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)


class Brackets:
    """Counts how deep each byte of a JSON text is; the text comes in chunks."""

    def __init__(self) -> None:
        self.level = 0
        self._in_string = False
        self._is_escaped = False

    def levels(self, text: bytes) -> "tuple[NDArray[np.uint8], NDArray[np.int8], NDArray[np.int64]]":
        """Return the bytes outside of strings, 0 for others, their steps up and down, and the levels."""
        import numpy as np

        bare = np.frombuffer(self._without_escapes(text), np.uint8)
        quotes = np.cumsum(bare == ord('"')) + self._in_string
        bare = np.where(quotes % 2 == 0, bare, 0)
        steps = np.isin(bare, (ord("["), ord("{"))).astype(np.int8)
        steps -= np.isin(bare, (ord("]"), ord("}")))
        levels = np.cumsum(steps, dtype=np.int64) + self.level
        if len(bare):
            self._in_string, self.level = bool(quotes[-1] % 2), int(levels[-1])
        return bare, steps, levels

    def _without_escapes(self, text: bytes) -> bytes:
        """Return a text of the same length in which a quotation mark always begins or ends a string."""
        first, self._is_escaped = self._is_escaped, False
        if first:
            text = b"_" + text[1:]
        if b"\\" in text:
            text = text.replace(b"\\\\", b"__")
            self._is_escaped = text.endswith(b"\\")
            text = text.replace(b'\\"', b"__")
        return text

    def separators(self, text: bytes, deepest: int) -> int:
        """Count the commas down to a level."""
        bare, _, levels = self.levels(text)
        return int(((bare == ord(",")) & (levels <= deepest)).sum())


class Regard(Enum):
    """The order that counts in a comparison."""

    CONTENT = "content"
    """Not the order of keys, nor that of items which are a set."""
    ORDER_OF_ITEMS = "order of items"
    """Not the order of keys."""
    ALL_ORDER = "all order"


def json_digest(text: msgspec.Raw, longest: int, regard: Regard = Regard.CONTENT) -> tuple[bytes, int]:
    """The digest of a JSON text, and how many items it has. Raises `Unreadable`.

    Items are those of its array, or of the longest array near its surface; else it has one. With regard to
    the content, two texts have the same digest just when `canonical` makes them the same. No value that is
    digested as a whole may be longer than so many bytes.
    """
    return _Digester(longest, regard).value(text, 0, in_order=regard is not Regard.CONTENT)


class _Digester:
    def __init__(self, longest: int, regard: Regard) -> None:
        self._longest = longest
        self._regard = regard

    def value(
        self, text: msgspec.Raw, level: int, *, in_order: bool, as_set: bool = False
    ) -> tuple[bytes, int]:
        sign = bytes(memoryview(text)[:1])
        if sign == b"{" and level < LEVELS:
            return self._object(text, level, in_order)
        if sign == b"[":
            digest, count = self._array(text, in_order, as_set)
            return digest, count if level <= _ITEM_LEVELS else 1
        return self._whole(text, in_order), 1

    def _object(self, text: msgspec.Raw, level: int, in_order: bool) -> tuple[bytes, int]:
        parts, members, most = parts_of_object(text), [], 0
        features = FEATURES if is_collection(parts) else None
        for number, (name, part) in enumerate(parts.items()):
            below = in_order or name in IN_ORDER
            digest, count = self.value(part, level + 1, in_order=below, as_set=name == features and not below)
            place = number.to_bytes(8, "big") if self._regard is Regard.ALL_ORDER else b""
            members.append(sha256(place + name.encode()).digest() + digest)
            most = max(count, most)
        whole = sha256(b"object" + b"".join(sorted(members)))
        return whole.digest(), 1 if not parts or level >= _ITEM_LEVELS else most

    def _array(self, text: msgspec.Raw, in_order: bool, as_set: bool) -> tuple[bytes, int]:
        parts = parts_of_array(text)
        digests = [self._whole(part, in_order) for part in parts]
        in_any_order = bool(parts) and not in_order and (as_set or is_set(parts))
        whole = sha256(b"set" if in_any_order else b"list")
        for digest in sorted(digests) if in_any_order else digests:
            whole.update(digest)
        return whole.digest(), len(parts)

    def _whole(self, text: msgspec.Raw, in_order: bool) -> bytes:
        size = len(memoryview(text))
        if size > self._longest:
            raise Unreadable(f"a value of more than {self._longest} bytes")
        if self._regard is Regard.ALL_ORDER and size <= SMALL:
            return sha256(msgspec.json.encode(value_of(text))).digest()
        whole = sha256()
        for piece in canonical_pieces(text, in_order=in_order):
            whole.update(piece)
        return whole.digest()

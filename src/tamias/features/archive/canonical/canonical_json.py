"""Canonical text of JSON: keys in order, numbers in one notation, no space.

An array of objects that all have an identifier is a set: its items are put in order too, unless it describes
columns, whose order is that of the cells. The features of GeoJSON are a set, with identifiers or without. A
large value is gone through part by part, so that little more than its text is held in memory.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from mmap import mmap
from operator import itemgetter
from typing import Any

import msgspec

from tamias.model.document import Unreadable

SMALL = 1 << 18
"""Texts up to this length become objects at once."""
_LARGE_LEVELS = 100
_PLAIN_DIGITS = 40
_USUAL = Context(prec=40)
_FRACTION = re.compile(r"-?[0-9]{1,20}\.[0-9]{0,19}[1-9]")
"""Numbers that are in their one spelling already, as most coordinates are."""
_KEYS = (
    "@id",
    "id",
    "_id",
    "identifier",
    "uuid",
    "uri",
    "url",
    "code",
    "key",
    "objectid",
    "OBJECTID",
    "name",
)
_NO_IDENTIFIERS = frozenset({"name"})
"""Enough to find an item again, and too little to say that the order of the items means nothing."""
IN_ORDER = frozenset({"fields", "columns", "headers", "dimensions"})
"""Names of members in which nothing is a set."""
FEATURES = "features"
"""The member of a GeoJSON FeatureCollection whose items are in no order."""
COLLECTION = "FeatureCollection"
_CONTAINERS = (dict, list)

Raws = Sequence[msgspec.Raw]


def number(text: str) -> Decimal | int:
    """The value of a JSON number with a point or an exponent; equal numbers become equal values.

    >>> number("1.50"), number("1e2"), number("-0.0"), number("2.0")
    (Decimal('1.5'), 100, 0, 2)
    """
    if _FRACTION.fullmatch(text):
        return Decimal(text)
    exact_to = _USUAL if len(text) <= _USUAL.prec else Context(prec=len(text) + 1)
    try:
        value = exact_to.create_decimal(text).normalize(exact_to)
    except ArithmeticError as fault:
        raise ValueError(f"number out of range: {text[:40]}") from fault
    is_whole = value == value.to_integral_value() and value.adjusted() < _PLAIN_DIGITS
    return int(value) if is_whole else value


_values = msgspec.json.Decoder(float_hook=number)
_raws = msgspec.json.Decoder(msgspec.Raw)
_lists = msgspec.json.Decoder(list[msgspec.Raw])
_objects = msgspec.json.Decoder(dict[str, msgspec.Raw])
_canonical = msgspec.json.Encoder(order="sorted", decimal_format="number")


def value_of(text: bytes | msgspec.Raw) -> Any:
    """The value of a JSON text, its numbers exact. Raises `Unreadable`."""
    return _decoded(_values, text)


def canonical(value: Any, *, as_set: bool = False) -> bytes:
    """The one text of a value; of an array in any order with `as_set`."""
    return _canonical.encode(_with_sets(value, as_set))


def _with_sets(value: Any, as_set: bool = False) -> Any:
    if isinstance(value, dict):
        features = FEATURES if FEATURES in value and value.get("type") == COLLECTION else None
        return {
            name: _with_sets(part, name == features)
            if isinstance(part, _CONTAINERS) and name not in IN_ORDER
            else part
            for name, part in value.items()
        }
    if not isinstance(value, list):
        return value
    parts = [_with_sets(part) if isinstance(part, _CONTAINERS) else part for part in value]
    if len(parts) < 2 or not (as_set or isinstance(parts[0], dict)):
        return parts
    texts = list(map(_canonical.encode, parts))
    if not (as_set or is_set(list(map(msgspec.Raw, texts)))):
        return parts
    return list(map(parts.__getitem__, sorted(range(len(parts)), key=texts.__getitem__)))


def is_collection(parts: dict[str, msgspec.Raw]) -> bool:
    """Return whether the members are those of a GeoJSON FeatureCollection."""
    kind = parts.get("type")
    return kind is not None and len(memoryview(kind)) < SMALL and value_of(kind) == COLLECTION


def key_paths(values: Raws) -> Iterator[Sequence[str]]:
    """Yield the paths at which the objects of an array may have their identifier, judged by the first."""
    if not values or bytes(memoryview(values[0])[:1]) != b"{":
        return
    first = parts_of_object(values[0])
    yield from ((name,) for name in _KEYS if name in first)
    inner = first.get("properties")
    if inner is not None and bytes(memoryview(inner)[:1]) == b"{":
        names = parts_of_object(inner)
        yield from (("properties", name) for name in _KEYS if name in names)


def key_of(value: msgspec.Raw, names: Sequence[str]) -> bytes | None:
    """The identifier of an item as JSON text; None if it has none there."""
    for name in names:
        if bytes(memoryview(value)[:1]) != b"{":
            return None
        part = parts_of_object(value).get(name)
        if part is None:
            return None
        value = part
    if bytes(memoryview(value)[:1]) in {b"{", b"[", b"n"}:
        return None
    return _canonical.encode(value_of(value))


def is_set(values: Raws) -> bool:
    """Return whether all items of an array have an identifier, no two the same."""
    return any(_distinct(values, names) for names in key_paths(values) if is_identifier(names))


def _distinct(values: Raws, names: Sequence[str]) -> bool:
    found: set[int] = set()
    for value in values:
        key = key_of(value, names)
        if key is None or hash(key) in found:
            return False
        found.add(hash(key))
    return True


def is_identifier(names: Sequence[str]) -> bool:
    """Return whether the last name of a path identifies an item independently of its place."""
    return names[-1] not in _NO_IDENTIFIERS


def raw_json(text: bytes | mmap) -> msgspec.Raw:
    """The text of the one value in a text, without space around it. Raises `Unreadable`."""
    found: msgspec.Raw = _decoded(_raws, text)
    return found


def parts_of_object(text: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """The members of an object. Raises `Unreadable`."""
    found: dict[str, msgspec.Raw] = _decoded(_objects, text)
    return found


def parts_of_array(text: bytes | msgspec.Raw) -> list[msgspec.Raw]:
    """The items of an array. Raises `Unreadable`."""
    found: list[msgspec.Raw] = _decoded(_lists, text)
    return found


def canonical_pieces(
    text: bytes | msgspec.Raw, levels: int = _LARGE_LEVELS, *, in_order: bool = False, as_set: bool = False
) -> Iterator[bytes]:
    """The canonical text of a JSON text, in pieces; `in_order` without sets. Raises `Unreadable`."""
    view = memoryview(text)
    opening = bytes(view[:1])
    if len(view) <= SMALL or levels == 0 or opening not in {b"[", b"{"}:
        value = value_of(text)
        yield _canonical.encode(value) if in_order else canonical(value, as_set=as_set)
    elif opening == b"[":
        yield from _list_pieces(text, levels - 1, in_order, as_set)
    else:
        yield from _object_pieces(text, levels - 1, in_order)


def _list_pieces(text: bytes | msgspec.Raw, levels: int, in_order: bool, as_set: bool) -> Iterator[bytes]:
    sign = b"["
    parts = parts_of_array(text)
    in_any_order = not in_order and (as_set or is_set(parts))
    pieces = (canonical_pieces(part, levels, in_order=in_order) for part in parts)
    for each in sorted([b"".join(piece)] for piece in pieces) if in_any_order else pieces:
        yield sign
        yield from each
        sign = b","
    yield b"]" if sign == b"," else b"[]"


def _object_pieces(text: bytes | msgspec.Raw, levels: int, in_order: bool) -> Iterator[bytes]:
    sign = b"{"
    parts = parts_of_object(text)
    in_any_order = FEATURES if is_collection(parts) else None
    for name, part in sorted(parts.items(), key=itemgetter(0)):
        yield sign + canonical(name) + b":"
        yield from canonical_pieces(
            part, levels, in_order=in_order or name in IN_ORDER, as_set=name == in_any_order
        )
        sign = b","
    yield b"}" if sign == b"," else b"{}"


def _decoded(decoder: "msgspec.json.Decoder[Any]", text: bytes | mmap | msgspec.Raw) -> Any:
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, ValueError) as fault:
        raise Unreadable(f"not JSON: {fault}") from fault
    except RecursionError as fault:
        raise Unreadable("JSON nested too deep") from fault

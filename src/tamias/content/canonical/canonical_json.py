"""One text for all JSON texts that say the same: keys in order, numbers in one spelling, no space.

A large value is gone through part by part, so that little more than its text is held in memory.
"""

from collections.abc import Iterator
from decimal import Context, Decimal
from operator import itemgetter
from typing import Any

import msgspec

from tamias.content.canonical import Unreadable

SMALL = 1 << 18
"""Texts up to this length become objects at once."""
_LARGE_LEVELS = 100
_PLAIN_DIGITS = 40


def number(text: str) -> Decimal | int:
    """The value of a JSON number with a point or an exponent; equal numbers become equal values.

    >>> number("1.50"), number("1e2"), number("-0.0"), number("2.0")
    (Decimal('1.5'), 100, 0, 2)
    """
    exact_to = Context(prec=len(text) + 1)
    try:
        value = exact_to.create_decimal(text).normalize(exact_to)
    except ArithmeticError as fault:
        raise ValueError(f"number out of range: {text[:40]}") from fault
    is_whole = value == value.to_integral_value() and value.adjusted() < _PLAIN_DIGITS
    return int(value) if is_whole else value


_values = msgspec.json.Decoder(float_hook=number)
_lists = msgspec.json.Decoder(list[msgspec.Raw])
_objects = msgspec.json.Decoder(dict[str, msgspec.Raw])
_canonical = msgspec.json.Encoder(order="sorted", decimal_format="number")


def value_of(text: bytes | msgspec.Raw) -> Any:
    """The value of a JSON text, its numbers exact. Raises `Unreadable`."""
    return _decoded(_values, text)


def canonical(value: Any) -> bytes:
    """The one text of a value."""
    return _canonical.encode(value)


def canonical_pieces(text: bytes | msgspec.Raw, levels: int = _LARGE_LEVELS) -> Iterator[bytes]:
    """The canonical text of a JSON text, in pieces. Raises `Unreadable`."""
    view = memoryview(text)
    opening = bytes(view[:1])
    if len(view) <= SMALL or levels == 0 or opening not in {b"[", b"{"}:
        yield canonical(value_of(text))
    elif opening == b"[":
        yield from _list_pieces(text, levels - 1)
    else:
        yield from _object_pieces(text, levels - 1)


def _list_pieces(text: bytes | msgspec.Raw, levels: int) -> Iterator[bytes]:
    sign = b"["
    for part in _decoded(_lists, text):
        yield sign
        yield from canonical_pieces(part, levels)
        sign = b","
    yield b"]" if sign == b"," else b"[]"


def _object_pieces(text: bytes | msgspec.Raw, levels: int) -> Iterator[bytes]:
    sign = b"{"
    for name, part in sorted(_decoded(_objects, text).items(), key=itemgetter(0)):
        yield sign + canonical(name) + b":"
        yield from canonical_pieces(part, levels)
        sign = b","
    yield b"}" if sign == b"," else b"{}"


def _decoded(decoder: "msgspec.json.Decoder[Any]", text: bytes | msgspec.Raw) -> Any:
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, ValueError) as fault:
        raise Unreadable(f"not JSON: {fault}") from fault
    except RecursionError as fault:
        raise Unreadable("JSON nested too deep") from fault

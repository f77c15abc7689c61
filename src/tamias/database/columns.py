"""Columns of values on their way into a statement, written as PostgreSQL's binary arrays.

The database library writes lists element by element in Python, which would be half the cost of a put.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEADER = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i")
_EMPTY = struct.Struct(">iiI")
_NULL = _LENGTH.pack(-1)
_FEW = 24
"""So many numbers are packed one by one in less time than an array of them needs."""


class Shorts(list[int | None]):
    """A column of int2."""


class Ints(list[int | None]):
    """A column of int4."""


class Longs(list[int | None]):
    """A column of int8."""


class Floats(list[float | None]):
    """A column of float8."""


class Bools(list[bool | None]):
    """A column of bool."""


class Texts(list[str | None]):
    """A column of text, each as PostgreSQL can hold it (see `storable`)."""


class Jsons(list[Any]):
    """A column of values as JSON; what is empty is null."""


class Uuids(list[UUID | str | None]):
    """A column of uuid."""


class Digests(list[bytes | str | None]):
    """A column of bytea, each as it is or in hexadecimal digits."""


Kinds = Mapping[str, type[list[Any]]]


def storable(value: str | None) -> str | None:
    """The text as PostgreSQL can hold it: it has no NUL, and servers send anything."""
    if value is None or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


class _Kind(NamedTuple):
    """Format of the columns of a type; `code` is for `struct`, and empty where sizes vary."""

    oid: int
    array: type[bytes]
    code: str


_KINDS: dict[type, _Kind] = {}


def columns(kinds: Kinds, rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """Return rows as parameters: a column for each name, of its kind."""
    return packed(kinds, list(zip(*rows, strict=True)) or [()] * len(kinds))


def packed(kinds: Kinds, listed: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """Return columns as they are sent: many rows are best packed before a transaction begins."""
    parameters = {}
    for (name, kind), column in zip(kinds.items(), listed, strict=True):
        oid, array_type, code = _KINDS[kind]
        nulls, count = None in column, len(column)
        if code and (nulls or count > _FEW):
            cells = _numbers(code, column, nulls)
        elif code:
            flat = [struct.calcsize(">" + code)] * (2 * count)
            flat[1::2] = column
            cells = struct.pack(f">{f'i{code}' * count}", *flat)
        else:
            parts = []
            for each in column:
                if each is None or (kind is Jsons and not each):
                    parts.append(_NULL)
                    continue
                if kind is Texts:
                    cell = each.replace("\0", "\ufffd").encode("utf-8", "replace")
                elif kind is Jsons:
                    cell = _json(each)
                else:
                    cell = each if isinstance(each, bytes) else bytes.fromhex(str(each).replace("-", ""))
                parts += (_LENGTH.pack(len(cell)), cell)
            cells = b"".join(parts)
        head = _HEADER.pack(1, nulls, oid, count, 1) if count else _EMPTY.pack(0, 0, oid)
        parameters[name] = array_type(head + cells)
    return parameters


def _numbers(code: str, column: Sequence[Any], nulls: bool) -> bytes:
    """Return numbers of one width, each after its size.

    Byte by byte of all at once it is as quick as numpy, which a worker would load for this alone.
    """
    size = struct.calcsize(">" + code)
    if nulls:
        pack = struct.Struct(">i" + code).pack
        return b"".join([_NULL if each is None else pack(size, each) for each in column])
    numbers = array("b" if code == "?" else code, column)
    if sys.byteorder == "little":
        numbers.byteswap()
    digits, width = numbers.tobytes(), _LENGTH.size + size
    cells = bytearray(width * len(column))
    cells[_LENGTH.size - 1 :: width] = bytes((size,)) * len(column)
    for place in range(size):
        cells[_LENGTH.size + place :: width] = digits[place::size]
    return bytes(cells)


def _json(value: Any) -> bytes:
    try:
        text = msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = b""
    if text and b"\\u0000" not in text:
        return text
    return msgspec.json.encode(_storable_all(msgspec.to_builtins(value)))


def _storable_all(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list | tuple):
        return [_storable_all(each) for each in value]
    if isinstance(value, dict):
        return {key: _storable_all(each) for key, each in value.items()}
    return value


def _register(column: type[list[Any]], name: str, code: str = "") -> None:
    kind = psycopg.adapters.types[name]
    array_type = type("PackedColumn", (bytes,), {})
    kinds = {name: column}

    def dump(values: Sequence[Any]) -> bytes:
        return bytes(packed(kinds, (values,))[name])

    for sent, how in ((column, dump), (array_type, bytes)):
        words = {"format": Format.BINARY, "oid": kind.array_oid, "dump": staticmethod(how)}
        psycopg.adapters.register_dumper(sent, type("ColumnDumper", (Dumper,), words))
    _KINDS[column] = _Kind(kind.oid, array_type, code)


_register(Shorts, "int2", "h")
_register(Ints, "int4", "i")
_register(Longs, "int8", "q")
_register(Floats, "float8", "d")
_register(Bools, "bool", "?")
_register(Texts, "text")
_register(Jsons, "text")
_register(Uuids, "uuid")
_register(Digests, "bytea")

"""Columns of values on their way into a statement, written as PostgreSQL's binary arrays.

The database library writes lists element by element in Python, which would be half the cost of a put.
"""

import struct
import sys
from array import array
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEADER = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i")
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
    """A column of text."""


class Uuids(list[UUID | str | None]):
    """A column of uuid."""


class Digests(list[bytes | str | None]):
    """A column of bytea, each as it is or in hexadecimal digits."""


def storable(value: str | None) -> str | None:
    """The text as PostgreSQL can hold it: it has no NUL, and servers send anything."""
    if value is None or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _numbers(oid: int, code: str) -> Callable[[list[Any]], bytes]:
    """Return a function that dumps numbers of one width, each after its size; `code` is for `struct`."""
    pack_one = struct.Struct(">i" + code).pack
    size = struct.calcsize(">" + code)

    def dump(column: list[Any]) -> bytes:
        if None in column:
            cells = [_NULL if each is None else pack_one(size, each) for each in column]
            return _HEADER.pack(1, 1, oid, len(column), 1) + b"".join(cells)
        if len(column) > _FEW:
            return _HEADER.pack(1, 0, oid, len(column), 1) + _cells(code, size, column)
        flat = [size] * (2 * len(column))
        flat[1::2] = column
        return _HEADER.pack(1, 0, oid, len(column), 1) + struct.pack(f">{f'i{code}' * len(column)}", *flat)

    return dump


def _cells(code: str, size: int, column: list[Any]) -> bytes:
    """Byte by byte of all numbers at once: as quick as numpy, which a worker would load for this alone."""
    numbers = array("b" if code == "?" else code, column)
    if sys.byteorder == "little":
        numbers.byteswap()
    digits, width = numbers.tobytes(), _LENGTH.size + size
    cells = bytearray(width * len(column))
    cells[_LENGTH.size - 1 :: width] = bytes((size,)) * len(column)
    for place in range(size):
        cells[_LENGTH.size + place :: width] = digits[place::size]
    return bytes(cells)


def _byte_strings(oid: int, encode: Callable[[Any], bytes]) -> Callable[[list[Any]], bytes]:
    """Return how values of any length are written."""

    def dump(column: list[Any]) -> bytes:
        pack = _LENGTH.pack
        parts = [_HEADER.pack(1, 1, oid, len(column), 1)]
        for each in column:
            if each is None:
                parts.append(_NULL)
            else:
                encoded = encode(each)
                parts += (pack(len(encoded)), encoded)
        return b"".join(parts)

    return dump


def _digest(value: bytes | str) -> bytes:
    return value if isinstance(value, bytes) else bytes.fromhex(value)


def _uuid(value: UUID | str) -> bytes:
    return bytes.fromhex(str(value).replace("-", ""))


_PACKERS: dict[type, Callable[[list[Any]], bytes]] = {}


def packed(column: list[Any]) -> bytes:
    """A column as it is sent: what takes long with many rows can be done before a transaction begins."""
    return _PACKERS[type(column)](column)


def _register(column: type, name: str, write: Callable[[int], Callable[[list[Any]], bytes]]) -> None:
    kind = psycopg.adapters.types[name]
    written = write(kind.oid)
    empty = struct.pack(">iiI", 0, 0, kind.oid)

    class ColumnDumper(Dumper):
        format = Format.BINARY
        oid = kind.array_oid

        def dump(self, obj: list[Any]) -> bytes:
            return written(obj) if obj else empty

    class PackedColumn(bytes):
        pass

    class PackedDumper(Dumper):
        format = Format.BINARY
        oid = kind.array_oid

        def dump(self, obj: bytes) -> bytes:
            return obj

    psycopg.adapters.register_dumper(column, ColumnDumper)
    psycopg.adapters.register_dumper(PackedColumn, PackedDumper)
    _PACKERS[column] = lambda values: PackedColumn(written(values) if values else empty)


_register(Shorts, "int2", lambda oid: _numbers(oid, "h"))
_register(Ints, "int4", lambda oid: _numbers(oid, "i"))
_register(Longs, "int8", lambda oid: _numbers(oid, "q"))
_register(Floats, "float8", lambda oid: _numbers(oid, "d"))
_register(Bools, "bool", lambda oid: _numbers(oid, "?"))
_register(Texts, "text", lambda oid: _byte_strings(oid, str.encode))
_register(Uuids, "uuid", lambda oid: _byte_strings(oid, _uuid))
_register(Digests, "bytea", lambda oid: _byte_strings(oid, _digest))

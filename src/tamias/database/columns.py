"""Columns of values on their way into a statement, written as PostgreSQL's binary arrays.

The database library writes lists element by element in Python, which would be half the cost of a put.
"""

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEADER = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)
_FEW = 24
"""So many numbers are packed one by one in less time than numpy needs to begin."""


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


def _numbers(oid: int, code: str, kind: str) -> Callable[[list[Any]], bytes]:
    """How numbers of one width are written: their letter in `struct`, and their type in numpy."""
    size = int(kind[-1])
    cell = np.dtype([("length", ">i4"), ("number", kind)])
    pack_one = struct.Struct(">i" + code).pack

    def dump(column: list[Any]) -> bytes:
        if None in column:
            cells = [_NULL if each is None else pack_one(size, each) for each in column]
            return _HEADER.pack(1, 1, oid, len(column), 1) + b"".join(cells)
        if len(column) > _FEW:
            written = np.empty(len(column), dtype=cell)
            written["length"] = size
            written["number"] = column
            return _HEADER.pack(1, 0, oid, len(column), 1) + written.tobytes()
        flat = [size] * (2 * len(column))
        flat[1::2] = column
        return _HEADER.pack(1, 0, oid, len(column), 1) + struct.pack(f">{f'i{code}' * len(column)}", *flat)

    return dump


def _byte_strings(oid: int, encode: Callable[[Any], bytes]) -> Callable[[list[Any]], bytes]:
    """How values of any length are written."""

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


def _register(column: type, name: str, write: Callable[[int], Callable[[list[Any]], bytes]]) -> None:
    kind = psycopg.adapters.types[name]
    written = write(kind.oid)
    empty = struct.pack(">iiI", 0, 0, kind.oid)

    class ColumnDumper(Dumper):
        format = Format.BINARY
        oid = kind.array_oid

        def dump(self, obj: list[Any]) -> bytes:
            return written(obj) if obj else empty

    psycopg.adapters.register_dumper(column, ColumnDumper)


_register(Shorts, "int2", lambda oid: _numbers(oid, "h", ">i2"))
_register(Ints, "int4", lambda oid: _numbers(oid, "i", ">i4"))
_register(Longs, "int8", lambda oid: _numbers(oid, "q", ">i8"))
_register(Floats, "float8", lambda oid: _numbers(oid, "d", ">f8"))
_register(Bools, "bool", lambda oid: _numbers(oid, "?", "b1"))
_register(Texts, "text", lambda oid: _byte_strings(oid, str.encode))
_register(Uuids, "uuid", lambda oid: _byte_strings(oid, _uuid))
_register(Digests, "bytea", lambda oid: _byte_strings(oid, _digest))

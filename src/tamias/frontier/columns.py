"""Columns of numbers and texts on their way into a statement, written as PostgreSQL's binary arrays.

The database library writes lists element by element in Python, which would be half the cost of a put.
"""

import struct

import numpy as np
import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_INT4, _INT8, _TEXT, _FLOAT8 = 23, 20, 25, 701
_HEADER = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i")
_ABSENT = _LENGTH.pack(-1)


class Longs(list[int]):
    """A column of int8."""


class Ints(list[int]):
    """A column of int4."""


class Floats(list[float]):
    """A column of float8."""


class Texts(list[str | None]):
    """A column of text, some of it null."""


class _LongsDumper(Dumper):
    format = Format.BINARY
    oid = psycopg.adapters.types["int8"].array_oid

    def dump(self, obj: Longs) -> bytes:
        return _numbers(obj, _INT8, ">i8")


class _IntsDumper(Dumper):
    format = Format.BINARY
    oid = psycopg.adapters.types["int4"].array_oid

    def dump(self, obj: Ints) -> bytes:
        return _numbers(obj, _INT4, ">i4")


class _FloatsDumper(Dumper):
    format = Format.BINARY
    oid = psycopg.adapters.types["float8"].array_oid

    def dump(self, obj: Floats) -> bytes:
        return _numbers(obj, _FLOAT8, ">f8")


class _TextsDumper(Dumper):
    format = Format.BINARY
    oid = psycopg.adapters.types["text"].array_oid

    def dump(self, obj: Texts) -> bytes:
        pack = _LENGTH.pack
        parts = [_HEADER.pack(1, 1, _TEXT, len(obj), 1)] if obj else [_empty(_TEXT)]
        for each in obj:
            if each is None:
                parts.append(_ABSENT)
            else:
                encoded = each.encode()
                parts += (pack(len(encoded)), encoded)
        return b"".join(parts)


def _numbers(column: list[int] | list[float], oid: int, kind: str) -> bytes:
    if not column:
        return _empty(oid)
    cells = np.empty(len(column), dtype=[("length", ">i4"), ("number", kind)])
    cells["length"] = int(kind[-1])
    cells["number"] = column
    return _HEADER.pack(1, 0, oid, len(column), 1) + cells.tobytes()


def _empty(oid: int) -> bytes:
    return struct.pack(">iiI", 0, 0, oid)


_DUMPERS: tuple[tuple[type, type[Dumper]], ...] = (
    (Longs, _LongsDumper),
    (Ints, _IntsDumper),
    (Floats, _FloatsDumper),
    (Texts, _TextsDumper),
)
for _column, _dumper in _DUMPERS:
    psycopg.adapters.register_dumper(_column, _dumper)

"""Columns of values on their way into a statement, written as PostgreSQL's binary arrays; rows as structs.

The database library writes lists element by element in Python, which would be half the cost of a put.
"""

import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_args, get_origin
from uuid import UUID

import msgspec
import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from tamias.database.sql import SqlStatement, statements
from tamias.model.capture import Column

T = TypeVar("T", bound=msgspec.Struct)
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


def stored_json(value: object) -> str:
    """Return JSON that PostgreSQL can store: it has no NUL in text."""
    return msgspec.json.encode(value).decode().replace("\\u0000", "\\ufffd")


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


_KIND_OF: dict[str, type[list[Any]]] = {
    "int2": Shorts,
    "int4": Ints,
    "int8": Longs,
    "float8": Floats,
    "bool": Bools,
    "uuid": Uuids,
    "bytea": Digests,
    "text": Texts,
    "jsonb": Jsons,
}


class _Field(msgspec.Struct, frozen=True, kw_only=True):
    """A column, and the field it is made from."""

    column: str
    type: str
    name: str
    key: str
    """The name by which msgspec writes it."""
    within: str | None = None
    """The field that holds the struct it is a field of, if that is not the row itself."""
    leads: bool = False
    """Whether it is the first within: where it is null, there is no struct."""
    read: Callable[[Any], Any] | None = None


class RowSchema(Generic[T]):
    """The rows of one table as a struct declares them: its statements are made from its fields.

    A field whose type is annotated with `Column` (`tamias.model.capture`) belongs to the table; a field that
    is a struct with such fields stands there as all of them, each null where there is no struct.
    """

    def __init__(self, struct: type[T], table: str) -> None:
        self._struct = struct
        self.fields = tuple(_fields(struct))
        self._words = {
            "columns": ", ".join(field.column for field in self.fields),
            "parameters": ", ".join(f"%({field.column})b::{field.type}[]" for field in self.fields),
            "selected": ", ".join(f"{table}.{field.column}" for field in self.fields),
        }

    def statements(self, package: str, filename: str) -> dict[str, SqlStatement]:
        """Return those of a `.sql` file, with `{columns}`, `{parameters}` and `{selected}` written out.

        The parameters are arrays, for an unnest.
        """
        return statements(package, filename, **self._words)

    def parameters(self, rows: Sequence[Any], *columns: str) -> dict[str, Any]:
        """The columns of rows, or only those named, as arrays for a statement."""
        kinds, listed = {}, []
        for field in self.fields:
            if columns and field.column not in columns:
                continue
            kinds[field.column] = _KIND_OF[field.type]
            parts = rows if field.within is None else map(attrgetter(field.within), rows)
            listed.append(list(map(getattr, parts, repeat(field.name), repeat(None))))
        return packed(kinds, listed)

    def decode(self, row: Sequence[Any], **others: Any) -> T:
        """A row of what was `{selected}` as the struct; null is a field's default, or among the others."""
        values = others
        for field, found in zip(self.fields, row, strict=True):
            if found is None:
                continue
            value = found if field.read is None else field.read(found)
            if field.within is None:
                values[field.key] = value
            elif field.leads:
                values[field.within] = {field.key: value}
            elif field.within in values:
                values[field.within][field.key] = value
        return msgspec.convert(values, self._struct)


def _fields(struct: type[msgspec.Struct], within: str | None = None) -> Iterator[_Field]:
    for place, field in enumerate(msgspec.structs.fields(struct)):
        kind, *notes = get_args(field.type) if get_origin(field.type) is Annotated else (field.type,)
        for column in notes:
            if isinstance(column, Column):
                yield _Field(
                    column=column.name or field.encode_name,
                    type=column.type,
                    name=field.name,
                    key=field.encode_name,
                    within=within,
                    leads=within is not None and place == 0,
                    read=_reader(column.type, kind),
                )
        for part in (kind, *get_args(kind)):
            if within is None and isinstance(part, type) and issubclass(part, msgspec.Struct):
                yield from _fields(part, field.name)


def _reader(column: str, kind: Any) -> Callable[[Any], Any] | None:
    """Return how a value is read whose field is text, while its column is none."""
    readers: dict[str, Callable[[Any], Any]] = {"uuid": str, "bytea": bytes.hex}
    return readers.get(column) if str in (kind, *get_args(kind)) else None

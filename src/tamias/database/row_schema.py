"""Rows declared once: the columns of a table are fields of a struct, and its statements are made from them.

A field belongs to the table when its type is annotated with `tamias.model.capture.Column`; a field that is a
struct with such fields stands there as all of them, each null where there is no struct.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin

import msgspec

from tamias.database.columns import Bools, Digests, Floats, Ints, Jsons, Longs, Shorts, Texts, Uuids, packed
from tamias.database.sql import SqlStatement, statements
from tamias.model.capture import Column

T = TypeVar("T", bound=msgspec.Struct)


_KINDS: dict[str, type[list[Any]]] = {
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
    """The rows of one table as a struct declares them."""

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
            kinds[field.column] = _KINDS[field.type]
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

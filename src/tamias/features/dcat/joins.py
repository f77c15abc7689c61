"""Join candidates as rows: columns of current tables whose values are among those of another's."""

from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from tamias.archive.moments import of_row
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements

_SQL = statements("tamias.features.dcat", "joins.sql")
MOST_COLUMNS = 50_000
"""That are compared, those of the newest tables: the work is done in memory."""

LEAST_ALIKE = 0.5
MOST_ALIKE = 1000


class TableColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of the current version of a resource."""

    url: str = ""
    resource: str
    version: int
    table: int
    """Which table of it, from 1."""
    number: int
    """Which column, from 1."""
    name: str
    distinct: int
    """How many different values it has."""


class SketchedColumn(msgspec.Struct, frozen=True):
    """A column with the smallest hashes of its values."""

    column: TableColumn
    sketch: bytes


class JoinCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one column are, as far as sketches tell, among those of another."""

    of: TableColumn
    within: TableColumn
    containment: float
    """The share of the different values of `of` that `within` has, estimated."""
    shared: int
    """Hashes by which this is known: the more, the surer."""

    @property
    def sides(self) -> tuple[TableColumn, TableColumn]:
        """Return both columns."""
        return self.of, self.within


def sketched_columns(session: Session) -> Iterator[SketchedColumn]:
    """Yield every column of current tables that can be joined."""
    for *row, sketch in islice(session.rows(_SQL["sketches"].text), MOST_COLUMNS):
        yield SketchedColumn(of_row(TableColumn, row, url=""), b64decode(sketch))


def newest_table(session: Session) -> int:
    """Return when a table was last profiled, in milliseconds; 0 if none was."""
    rows = session.fetch_all(_SQL["newest_table"])
    return int(rows[0][0])


def keep_joins(session: Session, joins: Sequence[JoinCandidate]) -> None:
    """Replace all stored join candidates."""
    columns = _columns(joins)

    def work(cursor: Cursor) -> None:
        cursor.execute(_SQL["forget_joins"].text, columns)
        cursor.execute(_SQL["keep_joins"].text, columns)

    session.transact(work)


def read_joins(
    session: Session, resource: str | None = None, *, skip: int = 0, limit: int = 1000
) -> list[JoinCandidate]:
    """The surest first; with a resource, those that have it on either side."""
    rows = session.fetch_all(_SQL["read_joins"], {"resource": resource, "skip": skip, "limit": limit})
    return [_candidate(row) for row in rows]


class AlikeTables(msgspec.Struct, frozen=True, kw_only=True):
    """Two tables of different resources with most columns and values in common, by an estimate."""

    resource: str
    url: str
    table: int
    """Which table of it, from 1."""
    other: str
    other_url: str
    other_table: int
    columns: int
    """Columns of one name whose values are the same to four fifths or more."""
    most_columns: int
    """Of the wider table; columns of few different values are not counted."""
    values: float
    """The share of the values of those columns that both have."""
    alike: float
    """Of all: columns and values together."""


def read_alike(
    session: Session, resource: str | None = None, *, least: float = LEAST_ALIKE, limit: int = MOST_ALIKE
) -> list[AlikeTables]:
    """Tables that are alike, the most alike first; with a resource, its tables first in each pair.

    Of tables with equal bytes one is looked at, as for joins.
    """
    named = session.fetch_all(_SQL["near"], {"resource": resource}) if resource is not None else None
    near = None if named is None else [name for (name,) in named]
    params = {"resource": resource, "near": near, "least": least, "limit": limit}
    return [of_row(AlikeTables, row) for row in session.fetch_all(_SQL["alike"], params)]


def joins_of(session: Session, resources: Sequence[str]) -> dict[str, list[JoinCandidate]]:
    """Return for each of some resources the columns that contain the values of its own."""
    rows = session.fetch_all(_SQL["joins_of"], {"resource": list(resources)})
    found: dict[str, list[JoinCandidate]] = defaultdict(list)
    for join in map(_candidate, rows):
        found[join.of.resource].append(join)
    return found


def _candidate(row: Sequence[Any]) -> JoinCandidate:
    of, within = of_row(TableColumn, row[:7]), of_row(TableColumn, row[7:14])
    return JoinCandidate(of=of, within=within, containment=row[14], shared=row[15])


def _columns(joins: Sequence[JoinCandidate]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        "containment": [join.containment for join in joins],
        "shared": [join.shared for join in joins],
    }
    for prefix, side in (("", [join.of for join in joins]), ("within_", [join.within for join in joins])):
        columns |= {
            f"{prefix}{'place' if name == 'table' else name}": [getattr(column, name) for column in side]
            for name in TableColumn.__struct_fields__
            if name != "url"
        }
    return columns

"""Captures by month: the last partition is divided before its first month begins, so it is empty then.

It has no end, so a capture always finds its place; where nobody divided it in time, it holds several months.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
from psycopg import errors as pg
from psycopg import sql

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements

AHEAD = timedelta(days=7)
"""Clocks of workers differ, and visits take their time."""
_SQL = statements("tamias.database", "months.sql")


def divide_months(session: Session) -> str | None:
    """Make a partition for the months to come; return its name. None if there is time, or no way, yet."""
    now = datetime.fromtimestamp(session.now() / 1000, UTC)
    return session.transact(lambda cursor: _divide(cursor, now))


class MonthPartition(msgspec.Struct, frozen=True):
    """A partition of captures."""

    name: str
    written: int | None
    """How many rows the server has ever written to it, where it knows; None while more are expected."""


def partitions(cursor: Cursor, now: int) -> list[MonthPartition]:
    """Return the partitions of captures; `written` is set once no late visit can add to the month."""
    over = first_id(datetime.fromtimestamp(now / 1000, UTC) - AHEAD)
    rows = cursor.execute(_SQL["partitions"].text).fetchall()
    return [
        MonthPartition(name, written if end is not None and end < over else None)
        for name, end, written in rows
    ]


def _divide(cursor: Cursor, now: datetime) -> str | None:
    row = cursor.execute(_SQL["last_partition"].text).fetchone()
    owned = cursor.execute(_SQL["owns_captures"].text).fetchone()
    if row is None or owned != (True,) or _moment(row[1]) > now + AHEAD:
        return None
    name, begin = row
    end = next_month(max(_moment(begin), now + AHEAD))
    try:
        with cursor.connection.transaction():
            cursor.execute(_SQL["wait_briefly"].text)
            return _cut(cursor, name, begin, end)
    except (pg.LockNotAvailable, pg.DuplicateTable, pg.UndefinedTable):
        return None  # somebody reads all captures, or divides them at this moment; there is a week


def _cut(cursor: Cursor, name: str, begin: UUID, end: datetime) -> str:
    new = f"capture_{end:%Y_%m}"
    part, whole = sql.Identifier("tamias", name), sql.Identifier("tamias", "capture")
    cut = sql.Literal(str(first_id(end)))
    cursor.execute(sql.SQL("ALTER TABLE {} DETACH PARTITION {}").format(whole, part))
    cursor.execute(
        sql.SQL("ALTER TABLE {} ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})").format(
            whole, part, sql.Literal(str(begin)), cut
        )
    )
    cursor.execute(
        sql.SQL("CREATE TABLE {} PARTITION OF {} FOR VALUES FROM ({}) TO (MAXVALUE)").format(
            sql.Identifier("tamias", new), whole, cut
        )
    )
    return new


def next_month(after: datetime) -> datetime:
    """The beginning of the month after that of a moment.

    >>> f"{next_month(datetime(2026, 12, 31, 23, tzinfo=UTC)):%Y-%m-%d}"
    '2027-01-01'
    """
    return (after.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=32)).replace(
        day=1
    )


def months_before(moment: datetime, months: int) -> datetime:
    """The beginning of the month so many months before that of a moment.

    >>> f"{months_before(datetime(2027, 2, 14, tzinfo=UTC), 3):%Y-%m-%d}"
    '2026-11-01'
    """
    year, month = divmod(moment.year * 12 + moment.month - 1 - months, 12)
    return datetime(year, month + 1, 1, tzinfo=UTC)


def first_id(moment: datetime) -> UUID:
    """The least id of a capture that began then.

    >>> first_id(datetime(2027, 1, 1, tzinfo=UTC))
    UUID('01a2ce8b-d400-0000-0000-000000000000')
    """
    return UUID(int=int(moment.timestamp() * 1000) << 80)


def _moment(first: UUID) -> datetime:
    return datetime.fromtimestamp((first.int >> 80) / 1000, UTC)

"""Segments as rows: which files there are, whose they are, and how much of each is durable."""

from collections.abc import Sequence

import msgspec

from tamias.database.columns import Bools, Longs
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements

_SQL = statements("tamias.archive", "captures.sql")


class Durable(msgspec.Struct, frozen=True):
    """A segment and its durable length; sealed when nothing will be added."""

    segment: int
    committed: int
    sealed: bool = False


def new_segment(session: Session, worker: int) -> int:
    """The number of a fresh segment for a worker."""
    row = session.transact(
        lambda cursor: cursor.execute(_SQL["new_segment"].text, {"worker": worker}).fetchone()
    )
    assert row is not None
    return int(row[0])


def commit_segments(cursor: Cursor, news: Sequence[Durable]) -> None:
    """Writes durable lengths, inside the transaction of what relies on them."""
    if news:
        cursor.execute(
            _SQL["commit_segments"].text,
            {
                "segment": Longs([each.segment for each in news]),
                "committed": Longs([each.committed for each in news]),
                "sealed": Bools([each.sealed for each in news]),
            },
        )


def open_segments(session: Session, workers: Sequence[int]) -> list[Durable]:
    """What these workers left unsealed."""
    asked = {"workers": list(workers)}
    rows = session.transact(lambda cursor: cursor.execute(_SQL["open_segments"].text, asked).fetchall())
    return [Durable(segment, committed) for segment, committed in rows]

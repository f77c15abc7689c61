"""The attempts that brought versions: what was asked, what was answered, as far as it is kept."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.model.capture import Hop

_SQL = statements("tamias.archive.reader", "library.sql")


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt. Times are milliseconds UTC."""

    capture: str
    url: str
    final_url: str
    started_at: int
    ended_at: int
    status: int | None
    reason: str
    told_type: str | None
    hops: tuple[Hop, ...]
    agent: str


def read_exchanges(session: Session, captures: Sequence[str]) -> dict[str, Exchange]:
    """Attempts by their ids; those that are known."""
    asked = {"capture": [UUID(capture) for capture in captures]}
    rows = session.transact(lambda cursor: cursor.execute(_SQL["read_exchanges"].text, asked).fetchall())
    return {row[0]: _exchange(row) for row in rows}


def _exchange(row: tuple[Any, ...]) -> Exchange:
    capture, url, final_url, started_at, ended_at, status, reason, told_type, hops, agent = row
    return Exchange(
        capture=capture,
        url=url,
        final_url=final_url or url,
        started_at=started_at,
        ended_at=ended_at,
        status=status,
        reason=reason,
        told_type=told_type,
        hops=tuple(msgspec.convert(hops or [], list[Hop])),
        agent=agent,
    )

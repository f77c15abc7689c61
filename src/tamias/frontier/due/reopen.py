"""Opens visited URLs again whose links, or which themselves, were cut for a reason that is gone."""

from functools import partial
from typing import Any

import msgspec

from tamias.database.columns import Longs
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.put import queue_columns

_REOPEN = statements("tamias.frontier.due", "reopen.sql")
_FRONTIER = statements("tamias.frontier", "frontier.sql")
_PAGE = 1000
_BEFORE_ALL = (-(2**63), -(2**63))


class ReopenFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which URLs are meant, by their latest visit; None means all."""

    outcome: int | None = None
    reason: str | None = None
    """What its reason contains."""
    match: str | None = None
    """A regular expression for the URL, as PostgreSQL reads it."""


def reopen(session: Session, frontier: PostgresFrontier, crawl: int, reasons: int) -> int:
    """Makes due what was cut for one of `reasons`, bits of `tamias.model.cut`; returns how many.

    May be repeated. Each is read once more, and what then cuts its links is noted anew.
    """
    return _reopen(session, frontier, crawl, "find_cut", {"reasons": reasons})


def reopen_visited(session: Session, frontier: PostgresFrontier, crawl: int, which: ReopenFilter) -> int:
    """Makes due what was visited and is done with; returns how many. May be repeated."""
    return _reopen(session, frontier, crawl, "find_by_visit", msgspec.structs.asdict(which))


def count_cut(session: Session, buckets: int, crawl: int, reasons: int) -> int:
    """How many URLs `reopen` would open."""
    return _count(session, buckets, "count_cut", {"crawl": crawl, "reasons": reasons})


def count_visited(session: Session, buckets: int, crawl: int, reason: str) -> int:
    """How many URLs `reopen_visited` would open for a reason."""
    return _count(session, buckets, "count_by_visit", {"crawl": crawl, "reason": reason})


def _count(session: Session, buckets: int, name: str, asked: dict[str, Any]) -> int:
    def count(cursor: Cursor) -> int:
        parts = (
            cursor.execute(_REOPEN[name].text, {"bucket": bucket, **asked}).fetchone()
            for bucket in range(buckets)
        )
        return sum(row[0] for row in parts if row is not None)

    return session.transact(count)


def _reopen(
    session: Session, frontier: PostgresFrontier, crawl: int, name: str, wanted: dict[str, Any]
) -> int:
    opened = 0
    for bucket in range(frontier.buckets):
        after: tuple[int, int] | None = _BEFORE_ALL
        while after is not None:
            asked = {"bucket": bucket, "crawl": crawl, "page": _PAGE, **wanted}
            asked |= {"after_qid": after[0], "after_uid": after[1]}
            count, after = session.transact(partial(_reopen_page, name, asked, frontier))
            opened += count
    return opened


def _reopen_page(
    name: str, asked: dict[str, Any], frontier: PostgresFrontier, cursor: Cursor
) -> tuple[int, tuple[int, int] | None]:
    """How many of a page were opened, and where the next begins."""
    there = {"bucket": asked["bucket"], "crawl": asked["crawl"]}
    found = cursor.execute(_REOPEN[name].text, asked).fetchall()
    if not found:
        return 0, None
    now = frontier.now()
    places = {"qid": Longs([qid for qid, _ in found]), "uid": Longs([uid for _, uid in found])}
    cursor.execute(_FRONTIER["lock_hosts"].text, {**there, **places})
    opened = cursor.execute(_REOPEN["reopen_urls"].text, {**there, **places, "now": now}).fetchall()
    queues = queue_columns((), opened, now)
    cursor.execute(_FRONTIER["wake"].text, {**there, "now": now, **queues})
    return len(opened), found[-1]

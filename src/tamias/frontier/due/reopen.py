"""Opens visited URLs again whose links, or which themselves, were cut for a reason that is gone."""

from functools import partial
from typing import Any

import msgspec

from tamias.database.columns import Longs
from tamias.database.connect import Cursor, Session
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.put import queue_columns
from tamias.frontier.queries import done_by, rows_of
from tamias.frontier.rows import Row

_PAGE = 1000
Place = tuple[int, int, int]
"""A bucket, and the URL of it behind which the next page begins."""
FIRST: Place = (0, -(2**63), -(2**63))


class ReopenFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The URLs to reopen, by their latest visit; None means all."""

    outcome: int | None = None
    reason: str | None = None
    """What its reason contains."""
    match: str | None = None
    """A regular expression for the URL, as PostgreSQL reads it."""
    media_type: str | None = None
    """A regular expression for the media type that was found."""


def reopen(session: Session, frontier: PostgresFrontier, crawl: int, reasons: int) -> int:
    """Make due what was cut for one of `reasons`, bits of `tamias.model.cut`; return how many.

    May be repeated. Each is read once more, and what then cuts its links is noted anew.
    """
    return _reopen(session, frontier, crawl, "find_cut", {"reasons": reasons})


def reopen_visited(session: Session, frontier: PostgresFrontier, crawl: int, which: ReopenFilter) -> int:
    """Make due what was visited and is done with; return how many. May be repeated."""
    return _reopen(session, frontier, crawl, "find_by_visit", msgspec.structs.asdict(which))


def reopen_visited_page(
    session: Session, frontier: PostgresFrontier, crawl: int, which: ReopenFilter, after: Place
) -> tuple[int, Place | None]:
    """The same for one page of URLs: how many it opened, and where the next begins; None at the end."""
    return _reopen_page(session, frontier, crawl, "find_by_visit", msgspec.structs.asdict(which), after)


def count_cut(session: Session, buckets: int, crawl: int, reasons: int) -> tuple[int, int]:
    """Return how many queues have URLs that were cut for one of `reasons`, and how many URLs these are."""
    found = _each_bucket(session, buckets, "count_cut", {"crawl": crawl, "reasons": reasons})
    return sum(queues for queues, _ in found), sum(urls for _, urls in found)


def count_visited(session: Session, buckets: int, crawl: int, which: ReopenFilter) -> int:
    """Return how many URLs `reopen_visited` would open."""
    values = {"crawl": crawl, **msgspec.structs.asdict(which)}
    return sum(row[0] for row in _each_bucket(session, buckets, "count_by_visit", values))


def _each_bucket(session: Session, buckets: int, name: str, values: dict[str, Any]) -> list[Row]:
    def count(cursor: Cursor) -> list[Row]:
        return [rows_of(cursor, name, {"bucket": bucket, **values})[0] for bucket in range(buckets)]

    return session.transact(count)


def _reopen(
    session: Session, frontier: PostgresFrontier, crawl: int, name: str, wanted: dict[str, Any]
) -> int:
    opened = 0
    after: Place | None = FIRST
    while after is not None:
        count, after = _reopen_page(session, frontier, crawl, name, wanted, after)
        opened += count
    return opened


def _reopen_page(
    session: Session, frontier: PostgresFrontier, crawl: int, name: str, wanted: dict[str, Any], after: Place
) -> tuple[int, Place | None]:
    bucket, qid, uid = after
    query = {"bucket": bucket, "crawl": crawl, "page": _PAGE, **wanted, "after_qid": qid, "after_uid": uid}
    count, last = session.transact(partial(_open_found, name, query, frontier))
    if last is not None:
        return count, (bucket, *last)
    return count, (bucket + 1, *FIRST[1:]) if bucket + 1 < frontier.buckets else None


def _open_found(
    name: str, query: dict[str, Any], frontier: PostgresFrontier, cursor: Cursor
) -> tuple[int, tuple[int, int] | None]:
    """Return how many of a page were opened, and the last that was looked at."""
    there = {"bucket": query["bucket"], "crawl": query["crawl"]}
    found = rows_of(cursor, name, query)
    if not found:
        return 0, None
    now = frontier.now()
    places = {"qid": Longs([qid for qid, _ in found]), "uid": Longs([uid for _, uid in found])}
    done_by(cursor, "lock_hosts", {**there, **places})
    opened = rows_of(cursor, "reopen_urls", {**there, **places, "now": now})
    queues = queue_columns((), opened, now)
    done_by(cursor, "wake", {**there, "now": now, **queues})
    return len(opened), found[-1]

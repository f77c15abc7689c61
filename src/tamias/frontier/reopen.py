"""Opens visited URLs again whose links, or which themselves, were cut for a reason that is gone."""

from functools import partial

from tamias.database.columns import Longs
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.offer import queue_columns
from tamias.frontier.postgres import PostgresFrontier

_REOPEN = statements("tamias.frontier", "reopen.sql")
_FRONTIER = statements("tamias.frontier", "frontier.sql")
_PAGE = 1000
_BEFORE_ALL = (-(2**63), -(2**63))


def reopen(session: Session, frontier: PostgresFrontier, crawl: int, reasons: int) -> int:
    """Makes due what was cut for one of `reasons`, bits of `tamias.model.cut`; returns how many.

    May be repeated. Each is read once more, and what then cuts its links is noted anew.
    """
    opened = 0
    for bucket in range(frontier.buckets):
        after: tuple[int, int] | None = _BEFORE_ALL
        while after is not None:
            page = partial(_reopen_page, bucket, crawl, reasons, after, frontier)
            count, after = session.transact(page)
            opened += count
    return opened


def _reopen_page(
    bucket: int, crawl: int, reasons: int, after: tuple[int, int], frontier: PostgresFrontier, cursor: Cursor
) -> tuple[int, tuple[int, int] | None]:
    """How many of a page were opened, and where the next begins."""
    there = {"bucket": bucket, "crawl": crawl}
    asked = {**there, "reasons": reasons, "after_qid": after[0], "after_uid": after[1], "page": _PAGE}
    found = cursor.execute(_REOPEN["find_cut"].text, asked).fetchall()
    if not found:
        return 0, None
    now = frontier.now()
    places = {"qid": Longs([qid for qid, _ in found]), "uid": Longs([uid for _, uid in found])}
    cursor.execute(_FRONTIER["lock_hosts"].text, {**there, **places})
    opened = cursor.execute(_REOPEN["reopen_urls"].text, {**there, **places, "now": now}).fetchall()
    queues = queue_columns((), opened, now)
    cursor.execute(_FRONTIER["wake"].text, {**there, "now": now, **queues})
    return len(opened), found[-1]

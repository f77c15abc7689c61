"""Releases new URLs of a crawl with a budget, as `waiting.sql` says: so many at a time, the best first."""

from functools import partial
from heapq import nlargest
from typing import Any, Final

from tamias.database.columns import Longs
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.put import queue_columns

WAITING: Final = 2**63 - 2
"""The due time of a URL that waits to be released: later than any other, and not never."""

_SQL = statements("tamias.frontier.due", "waiting.sql")
_FRONTIER = statements("tamias.frontier", "frontier.sql")


def release_waiting(session: Session, frontier: PostgresFrontier, crawl: int, most: int) -> int:
    """Makes the best of those that wait due now; returns how many."""
    found = [
        (score, bucket, qid, uid)
        for bucket in range(frontier.buckets)
        for qid, uid, score in session.transact(
            partial(_rows, "find_waiting", {"bucket": bucket, "crawl": crawl, "most": most})
        )
    ]
    chosen: dict[int, list[tuple[int, int]]] = {}
    for _, bucket, qid, uid in nlargest(most, found):
        chosen.setdefault(bucket, []).append((qid, uid))
    return sum(
        session.transact(partial(_release, bucket, crawl, places, frontier))
        for bucket, places in chosen.items()
    )


def count_waiting(session: Session, frontier: PostgresFrontier, crawl: int, most: int) -> int:
    """How many wait; in each bucket no more are counted than `most`."""
    asked = [{"bucket": bucket, "crawl": crawl, "most": most} for bucket in range(frontier.buckets)]
    return sum(session.transact(partial(_rows, "count_waiting", each))[0][0] for each in asked)


def _release(
    bucket: int, crawl: int, places: list[tuple[int, int]], frontier: PostgresFrontier, cursor: Cursor
) -> int:
    now = frontier.now()
    there = {
        "bucket": bucket,
        "crawl": crawl,
        "now": now,
        "qid": Longs([qid for qid, _ in places]),
        "uid": Longs([uid for _, uid in places]),
    }
    cursor.execute(_FRONTIER["lock_hosts"].text, there)
    released = _rows("release", there, cursor)
    cursor.execute(_FRONTIER["wake"].text, {"bucket": bucket, "now": now, **queue_columns((), released, now)})
    return len(released)


def _rows(name: str, parameters: dict[str, Any], cursor: Cursor) -> list[tuple[Any, ...]]:
    return cursor.execute(_SQL[name].text, parameters).fetchall()

"""Releases new URLs of a crawl with a budget, as `waiting.sql` says: so many at a time, the best first."""

from functools import partial
from heapq import nlargest
from typing import Final

from tamias.database.columns import Longs
from tamias.database.connect import Cursor, Session
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.put import queue_columns
from tamias.frontier.queries import ask, done_by, rows_of

WAITING: Final = 2**63 - 2
"""The due time of a URL that waits to be released: later than any other, and not never."""


def release_waiting(session: Session, frontier: PostgresFrontier, crawl: int, most: int) -> int:
    """Make the best of those that wait due now; return how many."""
    found = [
        (score, bucket, qid, uid)
        for bucket in range(frontier.buckets)
        for qid, uid, score in ask(session, "find_waiting", bucket=bucket, crawl=crawl, most=most)
    ]
    chosen: dict[int, list[tuple[int, int]]] = {}
    for _, bucket, qid, uid in nlargest(most, found):
        chosen.setdefault(bucket, []).append((qid, uid))
    return sum(
        session.transact(partial(_release, bucket, crawl, places, frontier))
        for bucket, places in chosen.items()
    )


def count_waiting(session: Session, frontier: PostgresFrontier, crawl: int, most: int) -> int:
    """Return how many wait; in each bucket no more are counted than `most`."""
    query = [{"bucket": bucket, "crawl": crawl, "most": most} for bucket in range(frontier.buckets)]
    return sum(ask(session, "count_waiting", **each)[0][0] for each in query)


def is_first_visit_due(session: Session, frontier: PostgresFrontier, crawl: int) -> bool:
    """Return whether a URL is due that was never visited."""
    now = frontier.now()
    query = [{"bucket": bucket, "crawl": crawl, "now": now} for bucket in range(frontier.buckets)]
    return any(ask(session, "find_first_visit", **each) for each in query)


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
    done_by(cursor, "lock_hosts", there)
    released = rows_of(cursor, "release", there)
    done_by(cursor, "wake", {"bucket": bucket, "now": now, **queue_columns((), released, now)})
    return len(released)

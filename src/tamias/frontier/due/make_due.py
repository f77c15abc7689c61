"""Makes URLs due now that would be visited later, or due never, as `make_due.sql` and `retire.sql` say."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tamias.database.columns import Ints, Longs
from tamias.database.connect import Cursor, Session
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.put import Offered, Queue, QueueNews, by_bucket, numbered, url_columns, wake_columns
from tamias.frontier.queries import done_by, rows_of
from tamias.model.item import Item, priority_class


def make_due(session: Session, frontier: PostgresFrontier, items: Sequence[Item]) -> int:
    """Make items due now, known ones and new ones; return how many were not. May be done twice.

    What is being visited at this moment is not visited once more for that.
    """
    new = frontier.put(items).new
    offered, _ = numbered(items, frontier.now())
    return new + sum(
        session.transact(partial(_make_bucket_due, bucket, part, frontier.now))
        for bucket, part in by_bucket(offered, frontier.buckets).items()
    )


def make_due_unread(
    session: Session, frontier: PostgresFrontier, bucket: int, places: Sequence[tuple[int, int, int]]
) -> int:
    """Make known URLs due now, to be read as if for the first time; return how many were not due.

    The places are queues, crawls and URLs by their numbers.
    """
    wanted = _wanted(bucket, places)

    def work(cursor: Cursor) -> int:
        now = frontier.now()
        done_by(cursor, "forget_answers", wanted)
        return _make_due(cursor, {"now": now, **wanted}, now)

    return session.transact(work)


def make_due_known(
    session: Session, frontier: PostgresFrontier, bucket: int, places: Sequence[tuple[int, int, int]]
) -> int:
    """Make known URLs due now, to be asked whether they changed; return how many were not due."""
    wanted, now = _wanted(bucket, places), frontier.now()
    return session.transact(lambda cursor: _make_due(cursor, {"now": now, **wanted}, now))


def _wanted(bucket: int, places: Sequence[tuple[int, int, int]]) -> dict[str, Any]:
    qids, crawls, uids = zip(*places, strict=True)
    return {"bucket": bucket, "qid": Longs(qids), "crawl": Ints(crawls), "uid": Longs(uids)}


def _make_bucket_due(bucket: int, offered: list[Offered], clock: Callable[[], int], cursor: Cursor) -> int:
    now = clock()
    return _make_due(cursor, {"bucket": bucket, "now": now, **url_columns(offered)}, now)


def _make_due(cursor: Cursor, wanted: dict[str, Any], now: int) -> int:
    done_by(cursor, "lock_hosts", wanted)
    rows = rows_of(cursor, "make_urls_due", wanted)
    if rows:
        news = wake_columns(_queue_news(rows, now))
        done_by(cursor, "wake", {"bucket": wanted["bucket"], "now": now, **news})
    return len(rows)


def _queue_news(rows: list[tuple[Any, ...]], now: int) -> dict[Queue, QueueNews]:
    """Return the changes of queues in which no URL is new and some were done."""
    news: dict[Queue, QueueNews] = {}
    for qid, crawl, lane, score, was_done in rows:
        queue = news.setdefault((qid, crawl, lane), QueueNews(due=now))
        queue.priority = max(queue.priority, priority_class(score))
        queue.open += was_done
    return news


def retire(session: Session, frontier: PostgresFrontier, items: Sequence[Item]) -> int:
    """Return none of them is visited any more; returns how many would have been. May be done twice."""
    offered, _ = numbered(items, frontier.now())
    return sum(
        session.transact(partial(_retire_bucket, bucket, part, frontier.now()))
        for bucket, part in by_bucket(offered, frontier.buckets).items()
    )


def _retire_bucket(bucket: int, offered: list[Offered], now: int, cursor: Cursor) -> int:
    there = {"bucket": bucket, "now": now, **url_columns(offered)}
    done_by(cursor, "lock_hosts", there)
    rows = rows_of(cursor, "retire_urls", there)
    if rows:
        qids = Longs([qid for qid, _, _ in rows])
        queues = {"crawl": Ints([crawl for _, crawl, _ in rows]), "lane": Ints([lane for *_, lane in rows])}
        done_by(cursor, "count_retired", {"bucket": bucket, "qid": qids, **queues})
        done_by(cursor, "refresh_queues", {"bucket": bucket, "now": now, "qid": qids})
    return len(rows)

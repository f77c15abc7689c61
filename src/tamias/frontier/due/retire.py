"""Makes known URLs due never, as `retire.sql` and `frontier.sql` say."""

from collections.abc import Sequence
from functools import partial

from tamias.database.columns import Ints, Longs
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.put import Offered, by_bucket, numbered, url_columns
from tamias.model.item import Item

_SQL = statements("tamias.frontier.due", "retire.sql")
_FRONTIER = statements("tamias.frontier", "frontier.sql")


def retire(session: Session, frontier: PostgresFrontier, items: Sequence[Item]) -> int:
    """None of them is visited any more; returns how many would have been. May be done twice."""
    offered, _ = numbered(items, frontier.now())
    return sum(
        session.transact(partial(_retire_bucket, bucket, part, frontier.now()))
        for bucket, part in by_bucket(offered, frontier.buckets).items()
    )


def _retire_bucket(bucket: int, offered: list[Offered], now: int, cursor: Cursor) -> int:
    there = {"bucket": bucket, "now": now, **url_columns(offered)}
    cursor.execute(_FRONTIER["lock_hosts"].text, there)
    rows = cursor.execute(_SQL["retire_urls"].text, there).fetchall()
    if rows:
        qids = Longs([qid for qid, _, _ in rows])
        queues = {"crawl": Ints([crawl for _, crawl, _ in rows]), "lane": Ints([lane for *_, lane in rows])}
        cursor.execute(_SQL["count_retired"].text, {"bucket": bucket, "qid": qids, **queues})
        cursor.execute(_FRONTIER["refresh_queues"].text, {"bucket": bucket, "now": now, "qid": qids})
    return len(rows)

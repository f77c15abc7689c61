"""A batch of items on its way into one bucket, as columns: what the put statements take."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from tamias.database.columns import Floats, Ints, Longs, Texts
from tamias.frontier.keys import bucket_of, hash64, host_hash, salted
from tamias.model.item import NEVER, Item, priority_class

Hash = Callable[[str], int]
Lane = Callable[[tuple[str, ...]], int]
Queue = tuple[int, int, int]
"""A row of the queue table, within the bucket: host, crawl, lane."""


class Offered(msgspec.Struct, frozen=True):
    """An item with its numbers."""

    item: Item
    qid: int
    uid: int
    due: int
    lane: int = 0

    @property
    def place(self) -> tuple[int, int, int]:
        """Its key in the url table, within the bucket."""
        return (self.qid, self.item.crawl, self.uid)


def numbered(
    items: Iterable[Item], now: int, salt: int, hash_key: Hash, lane: Lane = lambda _: 0
) -> tuple[list[Offered], list[Item]]:
    """The items in the order of their rows, one a place, and those whose place another URL took."""
    taken: dict[tuple[int, int, int], Offered] = {}
    crowded: list[Item] = []
    for item in items:
        due = now if item.due is None else item.due
        uid = hash_key(item.key) if salt == 0 else hash64(salted(item.key, salt))
        qid = host_hash(item.host)
        place = (qid, item.crawl, uid)
        offered = Offered(item, qid, uid, due, lane(item.tags))
        other = taken.setdefault(place, offered)
        if other is offered:
            continue
        if other.item.key != item.key:
            crowded.append(item)
        elif item.depth < other.item.depth:
            taken[place] = offered
    return [taken[place] for place in sorted(taken)], crowded


def by_bucket(offered: Iterable[Offered], buckets: int) -> dict[int, list[Offered]]:
    """The rows of each bucket, in order."""
    groups: dict[int, list[Offered]] = {}
    for each in offered:
        groups.setdefault(bucket_of(each.qid, buckets), []).append(each)
    return groups


def known_columns(rows: list[Offered]) -> dict[str, Any]:
    """The parameters of `find_known`."""
    items = [row.item for row in rows]
    return {
        "qid": Longs([row.qid for row in rows]),
        "crawl": Ints([item.crawl for item in items]),
        "uid": Longs([row.uid for row in rows]),
        "depth": Ints([item.depth for item in items]),
        "url": Texts([item.url for item in items]),
    }


def url_columns(rows: list[Offered]) -> dict[str, Any]:
    """The parameters of `put_urls` and `lower_depths`."""
    return {
        **known_columns(rows),
        "lane": Ints([row.lane for row in rows]),
        "due": Longs([row.due for row in rows]),
        "score": Floats([row.item.score for row in rows]),
        "cut": Ints([row.item.cut for row in rows]),
        "tags": Texts(["\t".join(row.item.tags) if row.item.tags else None for row in rows]),
    }


class QueueNews(msgspec.Struct, gc=False):
    """What a put brought to one queue."""

    due: int = NEVER
    priority: int = 0
    urls: int = 0
    open: int = 0
    again: int = 0

    def count(self, due: int, score: float, now: int) -> None:
        """One new URL more."""
        self.urls += 1
        self.open += due < NEVER
        self.make_due(due, score, now)

    def make_due(self, due: int, score: float, now: int) -> None:
        """A URL of it is due then."""
        if due < NEVER:
            self.due = min(self.due, due)
            if due <= now:
                self.priority = max(self.priority, priority_class(score))


def queue_columns(new: Iterable[Offered], lowered: Iterable[tuple[Any, ...]], now: int) -> dict[str, Any]:
    """The parameters of `wake` for rows that were inserted, and for those of `lower_depths`."""
    news: dict[Queue, QueueNews] = {}
    for row in new:
        news.setdefault((row.qid, row.item.crawl, row.lane), QueueNews()).count(row.due, row.item.score, now)
    for qid, crawl, lane, due, score, again in lowered:
        queue = news.setdefault((qid, crawl, lane), QueueNews())
        queue.make_due(due, score, now)
        queue.open += again
        queue.again += again
    return wake_columns(news)


def wake_columns(news: dict[Queue, QueueNews]) -> dict[str, Any]:
    """The parameters of `wake`: one row for each queue."""
    told = news.values()
    return {
        "qid": Longs([qid for qid, _, _ in news]),
        "crawl": Ints([crawl for _, crawl, _ in news]),
        "lane": Ints([lane for _, _, lane in news]),
        "due": Longs([each.due for each in told]),
        "class": Ints([each.priority for each in told]),
        "urls": Longs([each.urls for each in told]),
        "open": Longs([each.open for each in told]),
        "again": Longs([each.again for each in told]),
    }

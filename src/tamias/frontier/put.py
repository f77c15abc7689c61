"""The way into the frontier: rows get their numbers and queues, known URLs are told from new ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from tamias.database.columns import Floats, Ints, Longs, Texts
from tamias.database.connect import Cursor, Session
from tamias.frontier.keys import bucket_of, hash64, host_hash, salted
from tamias.frontier.queries import done_by, rows_of
from tamias.frontier.service.state import usual_delay
from tamias.frontier.tagging.tag_sets import TagSets
from tamias.model.item import NEVER, Item, PutCount, priority_class

_REMEMBERED_QUEUES = 100_000

Hash = Callable[[str], int]
Same = Callable[[str, str], bool]
"""Whether two texts are one URL."""
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

    @property
    def queue(self) -> Queue:
        """Its queue."""
        return (self.qid, self.item.crawl, self.lane)


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


class QueueGone(Exception):
    """Somebody removed a queue while URLs were put into it."""


class KnownQueues:
    """Makes the queues that URLs are put into, once each as long as they are remembered."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: set[Queue] = set()

    def make(self, bucket: int, hosts: Mapping[Queue, str], delay_ms: int | None) -> None:
        """Queues with the keys of their hosts; without a delay, new hosts get the usual one."""
        places = sorted(queue for queue in hosts if queue not in self._known)
        if not places:
            return
        queues = {
            "bucket": bucket,
            "qid": Longs([qid for qid, _, _ in places]),
            "crawl": Ints([crawl for _, crawl, _ in places]),
            "lane": Ints([lane for _, _, lane in places]),
            "hkey": Texts([hosts[place] for place in places]),
        }

        def work(cursor: Cursor) -> None:
            delay = usual_delay(cursor) if delay_ms is None else delay_ms
            done_by(cursor, "put_hosts", {**queues, "delay_ms": delay})
            done_by(cursor, "put_queues", queues)

        self._session.transact(work)
        if len(self._known) > _REMEMBERED_QUEUES:
            self._known.clear()
        self._known.update(places)

    def forget(self) -> None:
        """They may be gone: somebody deleted a crawl."""
        self._known.clear()


class Found(msgspec.Struct, frozen=True):
    """Which rows on offer are new, belong to another URL, or are known by a longer way; by position."""

    unknown: list[int]
    strangers: list[int]
    deeper: list[int]


def find_known(cursor: Cursor, bucket: int, columns: dict[str, Any], same_url: Same) -> Found:
    """What the frontier knows of rows, given as `known_columns`; two URLs may have the same number."""
    params = {"bucket": bucket, **columns}
    ((unknown, differing, texts, deeper),) = rows_of(cursor, "find_known", params)
    urls = columns["url"]
    strangers = [
        place - 1 for place, text in zip(differing, texts, strict=True) if not same_url(urls[place - 1], text)
    ]
    others = set(strangers)
    return Found(
        [place - 1 for place in unknown],
        strangers,
        [place - 1 for place in deeper if place - 1 not in others],
    )


class ItemPut:
    """Puts what crawls found: new URLs are inserted, shorter ways to known ones are noted."""

    def __init__(
        self,
        session: Session,
        buckets: int,
        same_url: Same,
        tag_sets: TagSets,
        *,
        delay_ms: int,
        clock: Callable[[], int],
        hash_key: Hash,
    ) -> None:
        """`delay_ms` is for hosts that are new."""
        self._session = session
        self._buckets = buckets
        self._same_url = same_url
        self._tag_sets = tag_sets
        self._delay_ms = delay_ms
        self._clock = clock
        self._hash_key = hash_key
        self._queues = KnownQueues(session)

    def put(self, items: Sequence[Item]) -> PutCount:
        """As `tamias.protocols.Frontier` has it."""
        left, new, salt = list(items), 0, 0
        while left:
            offered, left = numbered(left, self._clock(), salt, self._hash_key, self._tag_sets.number)
            for bucket, part in by_bucket(offered, self._buckets).items():
                inserted, strangers = self._put_bucket(bucket, part)
                new += inserted
                left += strangers
            # Two URLs with one hash: the second gets the hash of its salted key.
            salt += 1
        return PutCount(new, len(items) - new)

    def _put_bucket(self, bucket: int, offered: list[Offered]) -> tuple[int, list[Item]]:
        """How many were new, and the items whose number belongs to another URL."""
        new, strangers = 0, []
        while offered:
            self._queues.make(bucket, {row.queue: row.item.host for row in offered}, self._delay_ms)
            try:
                inserted, crowded, offered = self._session.transact(
                    partial(self._put_rows, bucket=bucket, offered=offered)
                )
            except QueueGone:
                self._queues.forget()
                continue
            new += inserted
            strangers += crowded
            if offered:
                # A queue we took for known is gone: somebody deleted its crawl. Make it again.
                # Or another put was faster, by a longer way.
                self._queues.forget()
        return new, strangers

    def _put_rows(
        self, cursor: Cursor, bucket: int, offered: list[Offered]
    ) -> tuple[int, list[Item], list[Offered]]:
        """How many were inserted, the items whose number is another URL's, the rows to be offered again."""
        now = self._clock()
        unknown, shorter, strangers = self._find_known(cursor, bucket, offered)
        if not unknown and not shorter:
            return 0, strangers, []
        there = {"bucket": bucket, "now": now}
        places = set(rows_of(cursor, "put_urls", {**there, **url_columns(unknown)}) if unknown else ())
        inserted = [row for row in unknown if row.place in places]
        hosts = sorted({row.qid for row in inserted} | {row.qid for row in shorter})
        done_by(cursor, "lock_hosts", {**there, "qid": Longs(hosts)})
        lowered = rows_of(cursor, "lower_depths", {**there, **url_columns(shorter)}) if shorter else []
        queues: dict[str, Any] = {**there, **queue_columns(inserted, lowered, now)}
        if rows_of(cursor, "wake", queues)[0][0] < len(queues["qid"]):
            raise QueueGone
        if len(inserted) == len(unknown):
            return len(inserted), strangers, []
        missed = [row for row in unknown if row.place not in places]
        homeless, late_shorter, late_strangers = self._find_known(cursor, bucket, missed)
        return len(inserted), strangers + late_strangers, homeless + late_shorter

    def _find_known(
        self, cursor: Cursor, bucket: int, offered: list[Offered]
    ) -> tuple[list[Offered], list[Offered], list[Item]]:
        """The rows not known, those known by a longer way, and the items whose number is another URL's."""
        found = find_known(cursor, bucket, known_columns(offered), self._same_url)
        return (
            [offered[at] for at in found.unknown],
            [offered[at] for at in found.deeper],
            [offered[at].item for at in found.strangers],
        )

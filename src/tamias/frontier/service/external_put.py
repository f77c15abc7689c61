"""URLs that clients tell of, one by one and without a lease: new ones, and what became of known ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from tamias.database.columns import Ints, Longs, Texts
from tamias.database.connect import Cursor, Session
from tamias.frontier.keys import bucket_of, hash64, host_hash, salted
from tamias.frontier.lease_filter import buckets_of
from tamias.frontier.put import (
    Hash,
    KnownQueues,
    Queue,
    QueueGone,
    QueueNews,
    Same,
    find_known,
    wake_columns,
)
from tamias.frontier.queries import count_of, done_by, rows_of
from tamias.frontier.tagging.tag_sets import Retagged, TagSets, retag
from tamias.frontier.tagging.tags import MOST_TAGS, is_tag
from tamias.model.item import MOST_DEPTH, TAGS

SCORE = 0.5
"""Of URLs that come without one."""


class ExternalUrl(msgspec.Struct, frozen=True, gc=False):
    """One URL as a client tells of it. `known`: it is written in any case; otherwise only where it is new."""

    url: str
    """The form to fetch."""
    key: str
    host: str
    """The key of its queue."""
    crawl: int
    known: bool = False
    due: int | None = None
    """Milliseconds UTC; None means now."""
    spelling: str | None = None
    """As the client writes it, where that is not the form to fetch."""
    metadata: str | None = None
    """JSON."""
    tags: tuple[str, ...] | None = None
    """None: the client says nothing of tags, and a known URL keeps those it has."""


def metadata_and_tags(metadata: Mapping[str, Sequence[str]]) -> tuple[str | None, tuple[str, ...] | None]:
    """A client's metadata: JSON without the tags, and the tags. What can be no tag stays in the JSON.

    >>> metadata_and_tags({"tags": ["news", "breaking news", "lang=de"], "size": ["9"]})
    ('{"tags":["breaking news"],"size":["9"]}', ('news', 'lang=de'))
    """
    told = list(dict.fromkeys(metadata.get(TAGS, ())))
    tags = tuple(text for text in told if is_tag(text))[:MOST_TAGS]
    others = {**metadata, TAGS: [text for text in told if text not in tags]}
    kept = {name: values for name, values in others.items() if name != TAGS or values}
    return msgspec.json.encode(kept).decode() if kept else None, tags if TAGS in metadata else None


class Place(msgspec.Struct):
    """A row of the url table, and which URLs of the batch belong there."""

    qid: int
    uid: int
    row: ExternalUrl
    """What is to stand there in the end."""
    lane: int
    first: int
    """The position in the batch of the one that came first."""
    later: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[int, int, int]:
        """Its key in the url table, within the bucket."""
        return (self.qid, self.row.crawl, self.uid)

    @property
    def queue(self) -> Queue:
        """Its queue, if it is new."""
        return (self.qid, self.row.crawl, self.lane)

    @property
    def positions(self) -> tuple[int, ...]:
        """All that belong here."""
        return (self.first, *self.later)

    def add(self, position: int, told: ExternalUrl, lane: int) -> None:
        """The last word about a known URL counts, and the first about a new one."""
        self.later += (position,)
        if told.known and told.tags is None:
            self.row = msgspec.structs.replace(told, tags=self.row.tags)
        elif told.known:
            self.row, self.lane = told, lane


class ExternalPut:
    """Takes URLs into the frontier and says which of them were taken. One for each thread."""

    def __init__(
        self,
        session: Session,
        *,
        same_url: Same,
        hash_key: Hash = hash64,
        section: tuple[int, int] | None = None,
    ) -> None:
        """`section` are the buckets that are ours; all, where it is None."""
        self._session = session
        self._same_url = same_url
        self._hash_key = hash_key
        self._buckets: int = session.transact(lambda cursor: count_of(cursor, "read_buckets", {}))
        self._section = buckets_of(section, self._buckets)
        self._owns_all = section is None
        self._tag_sets = TagSets(session)
        self._queues = KnownQueues(session)
        # Asking first is cheaper where most are known, and a waste where most are new.
        self._expects_new = True

    def owns(self, host: str) -> bool:
        """Whether the queue of a host is in our section."""
        return self._owns_all or bucket_of(host_hash(host), self._buckets) in self._section

    def put(self, batch: Sequence[ExternalUrl]) -> list[bool]:
        """For each URL whether it was taken: not one that is new by word and known, nor one we do not own."""
        taken = [False] * len(batch)
        left, salt = [at for at, told in enumerate(batch) if self.owns(told.host)], 0
        while left:
            places, left = self._placed(batch, left, salt)
            for bucket, part in _by_bucket(places, self._buckets).items():
                inserted, written, strangers = self._put_bucket(bucket, part)
                for place in inserted:
                    taken[place.first] = True
                for at in (at for place in written for at in place.positions if batch[at].known):
                    taken[at] = True
                left += [at for place in strangers for at in place.positions]
            salt += 1
        return taken

    def _placed(
        self, batch: Sequence[ExternalUrl], positions: Iterable[int], salt: int
    ) -> tuple[list[Place], list[int]]:
        """The rows, and the positions of those whose place another URL of the batch took."""
        places: dict[tuple[int, int, int], Place] = {}
        crowded = []
        for at in positions:
            told = batch[at]
            qid = host_hash(told.host)
            uid = self._hash_key(told.key) if salt == 0 else hash64(salted(told.key, salt))
            lane = self._tag_sets.number(told.tags) if told.tags else 0
            key = (qid, told.crawl, uid)
            place = places.get(key)
            if place is None:
                places[key] = Place(qid, uid, told, lane, at)
            elif place.row.key == told.key:
                place.add(at, told, lane)
            else:
                crowded.append(at)
        return list(places.values()), crowded

    def _put_bucket(self, bucket: int, places: list[Place]) -> tuple[list[Place], list[Place], list[Place]]:
        """The places that were inserted, those told of as known, those that belong to another URL."""
        while True:
            self._queues.make(bucket, {place.queue: place.row.host for place in places}, None)
            try:
                return self._session.transact(partial(self._write, bucket=bucket, places=places))
            except QueueGone:
                self._queues.forget()

    def _write(
        self, cursor: Cursor, bucket: int, places: list[Place]
    ) -> tuple[list[Place], list[Place], list[Place]]:
        where = {"bucket": bucket, "now": self._session.now()}
        unknown, strangers = (places, []) if self._expects_new else self._find_known(cursor, bucket, places)
        inserted, missed = _inserted(cursor, where, unknown)
        self._expects_new = len(inserted) * 2 > len(places)
        if missed:
            homeless, late = self._find_known(cursor, bucket, missed)
            if homeless:
                raise QueueGone
            strangers += late
        written = _without([place for place in places if place.row.known], strangers)
        told = _without(written, inserted)
        if inserted or told:
            _wake(cursor, where, inserted, told)
        return inserted, written, strangers

    def _find_known(
        self, cursor: Cursor, bucket: int, places: list[Place]
    ) -> tuple[list[Place], list[Place]]:
        """The places that are free, and those that belong to another URL. The way to them does not matter."""
        columns = {
            **_keys(places),
            "url": Texts([place.row.url for place in places]),
            "depth": Ints([MOST_DEPTH] * len(places)),
        }
        found = find_known(cursor, bucket, columns, self._same_url)
        return [places[at] for at in found.unknown], [places[at] for at in found.strangers]


def _inserted(cursor: Cursor, where: dict[str, Any], places: list[Place]) -> tuple[list[Place], list[Place]]:
    """The places that were free, with what is told of them written there; and the others."""
    if not places:
        return [], []
    columns = {
        **where,
        **_keys(places),
        **_news(places, where["now"]),
        "lane": Ints([place.lane for place in places]),
        "score": SCORE,
        "url": Texts([place.row.url for place in places]),
        "spelling": Texts([place.row.spelling for place in places]),
        "tags": Texts(["\t".join(place.row.tags) if place.row.tags else None for place in places]),
    }
    rows = rows_of(cursor, "put_external", columns)
    if len(rows) == len(places):
        return places, []
    keys = set(rows)
    return [place for place in places if place.key in keys], [
        place for place in places if place.key not in keys
    ]


def _wake(cursor: Cursor, where: dict[str, Any], new: list[Place], told: list[Place]) -> None:
    """Counts, due times and readiness, after rows were inserted and before the others are written."""
    done_by(cursor, "lock_hosts", {**where, "qid": _hosts([*new, *told])})
    if new:
        queues = {**where, **_queue_columns(new, where["now"])}
        if count_of(cursor, "wake", queues) < len(queues["qid"]):
            raise QueueGone
    if told:
        news = {**where, **_keys(told), **_news(told, where["now"])}
        done_by(cursor, "count_settled", news)
        done_by(cursor, "update_known", news)
        retag(cursor, where["bucket"], _retagged(cursor, where, told))
        done_by(cursor, "refresh_queues", {**where, "qid": _hosts(told)})
    known = {**where, "qid": _hosts(place for place in [*new, *told] if place.row.known)}
    if known["qid"]:
        done_by(cursor, "judge_limits", known)
        done_by(cursor, "refresh_hosts", known)


def _retagged(cursor: Cursor, where: dict[str, Any], told: list[Place]) -> Iterator[Retagged]:
    """The known URLs whose tags are to be others."""
    tagged = {place.key: place for place in told if place.row.tags is not None}
    if not tagged:
        return
    for qid, crawl, uid, tags in rows_of(cursor, "tags_of", {**where, **_keys(list(tagged.values()))}):
        place = tagged[qid, crawl, uid]
        if place.row.tags is not None and set(place.row.tags) != set(tags):
            yield Retagged(qid, crawl, uid, tuple(tags), place.row.tags, place.lane)


def _by_bucket(places: Iterable[Place], buckets: int) -> dict[int, list[Place]]:
    groups: dict[int, list[Place]] = {}
    for place in places:
        groups.setdefault(bucket_of(place.qid, buckets), []).append(place)
    return groups


def _without(places: list[Place], others: list[Place]) -> list[Place]:
    if not places or not others:
        return places
    left_out = {place.key for place in others}
    return [place for place in places if place.key not in left_out]


def _hosts(places: Iterable[Place]) -> Longs:
    """In the order in which they are locked."""
    return Longs(sorted({place.qid for place in places}))


def _keys(places: list[Place]) -> dict[str, Any]:
    return {
        "qid": Longs([place.qid for place in places]),
        "crawl": Ints([place.row.crawl for place in places]),
        "uid": Longs([place.uid for place in places]),
    }


def _news(places: list[Place], now: int) -> dict[str, Any]:
    return {
        "due": Longs([now if place.row.due is None else place.row.due for place in places]),
        "metadata": Texts([place.row.metadata for place in places]),
        "depth": Ints([0] * len(places)),
        "cut": Ints([0] * len(places)),
    }


def _queue_columns(new: list[Place], now: int) -> dict[str, Any]:
    """The parameters of `wake`."""
    news: dict[Queue, QueueNews] = {}
    for place in new:
        due = now if place.row.due is None else place.row.due
        news.setdefault(place.queue, QueueNews()).count(due, SCORE, now)
    return wake_columns(news)

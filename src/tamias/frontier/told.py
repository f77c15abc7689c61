"""URLs that clients tell of, one by one and without a lease: new ones, and what became of known ones."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.frontier.asking import count_of, done_by, rows_of
from tamias.frontier.columns import Ints, Longs, Texts
from tamias.frontier.keys import bucket_of, hash64, host_hash, salted
from tamias.frontier.offer import Hash
from tamias.frontier.service import usual_delay
from tamias.frontier.terms import buckets_of
from tamias.model.item import NEVER, priority_class

SCORE = 0.5
"""Of URLs that come without one."""
_REMEMBERED_QUEUES = 100_000

Same = Callable[[str, str], bool]


class Told(msgspec.Struct, frozen=True):
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


class Place(msgspec.Struct):
    """A row of the url table, and the URLs on offer that belong there, by their position in the batch."""

    qid: int
    uid: int
    row: Told
    """What is to stand there in the end."""
    members: list[tuple[int, Told]]

    @property
    def place(self) -> tuple[int, int, int]:
        """Its key in the url table, within the bucket."""
        return (self.qid, self.row.crawl, self.uid)

    def add(self, position: int, told: Told) -> None:
        """The last word about a known URL counts, and the first about a new one."""
        self.members.append((position, told))
        if told.known:
            self.row = told

    def taken(self, *, inserted: bool) -> Iterable[int]:
        """The positions of those that changed something."""
        first = self.members[0][0]
        return [position for position, told in self.members if told.known or (inserted and position == first)]


class _QueueGone(Exception):
    """Somebody removed a queue while URLs were put into it."""


class Intake:
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
        self._queues: set[tuple[int, int]] = set()
        # Asking first is cheaper where most are known, and a waste where most are new.
        self._expects_new = True

    def owns(self, host: str) -> bool:
        """Whether the queue of a host is in our section."""
        return self._owns_all or bucket_of(host_hash(host), self._buckets) in self._section

    def put(self, batch: Sequence[Told]) -> list[bool]:
        """For each URL whether it was taken: not one that is new by word and known, nor one we do not own."""
        taken = [False] * len(batch)
        left, salt = [(at, told) for at, told in enumerate(batch) if self.owns(told.host)], 0
        while left:
            places, left = self._placed(left, salt)
            for bucket, part in _by_bucket(places, self._buckets).items():
                inserted, strangers = self._put_bucket(bucket, part)
                for place in part:
                    for position in place.taken(inserted=place.place in inserted):
                        taken[position] = place not in strangers
                left += [member for place in strangers for member in place.members]
            salt += 1
        return taken

    def _placed(
        self, members: Iterable[tuple[int, Told]], salt: int
    ) -> tuple[list[Place], list[tuple[int, Told]]]:
        """The rows in order, and the members whose place another URL of the batch took."""
        places: dict[tuple[int, int, int], Place] = {}
        crowded = []
        for position, told in members:
            qid = host_hash(told.host)
            uid = self._hash_key(told.key) if salt == 0 else hash64(salted(told.key, salt))
            place = places.get((qid, told.crawl, uid))
            if place is None:
                places[qid, told.crawl, uid] = Place(qid, uid, told, [(position, told)])
            elif place.row.key == told.key:
                place.add(position, told)
            else:
                crowded.append((position, told))
        return [places[place] for place in sorted(places)], crowded

    def _put_bucket(self, bucket: int, places: list[Place]) -> tuple[set[tuple[int, int, int]], list[Place]]:
        """The places that were inserted, and those that belong to another URL."""
        while True:
            self._make_queues(bucket, places)
            try:
                return self._session.transact(partial(self._write, bucket=bucket, places=places))
            except _QueueGone:
                self._queues.clear()

    def _write(
        self, cursor: Cursor, bucket: int, places: list[Place]
    ) -> tuple[set[tuple[int, int, int]], list[Place]]:
        where = {"bucket": bucket, "now": self._session.now()}
        unknown, strangers = (places, []) if self._expects_new else self._find_known(cursor, where, places)
        inserted = self._insert(cursor, where, unknown)
        self._expects_new = len(inserted) * 2 > len(places)
        if len(inserted) < len(unknown):
            missed, late = self._find_known(cursor, where, [p for p in unknown if p.place not in inserted])
            if missed:
                raise _QueueGone
            strangers += late
        new = [place for place in unknown if place.place in inserted]
        told = [p for p in places if p.row.known and p.place not in inserted and p not in strangers]
        if new or told:
            _wake(cursor, where, new, told)
        return inserted, strangers

    def _find_known(
        self, cursor: Cursor, where: dict[str, Any], places: list[Place]
    ) -> tuple[list[Place], list[Place]]:
        """The places that are free, and those that belong to another URL."""
        asked = {**where, **_keys(places), "url": Texts([place.row.url for place in places])}
        ((unknown, differing, texts),) = rows_of(cursor, "find_known", asked)
        pairs = [(places[number - 1], text) for number, text in zip(differing, texts, strict=True)]
        strangers = [place for place, text in pairs if not self._same_url(place.row.url, text)]
        return [places[number - 1] for number in unknown], strangers

    @staticmethod
    def _insert(cursor: Cursor, where: dict[str, Any], places: list[Place]) -> set[tuple[int, int, int]]:
        if not places:
            return set()
        columns = {
            **where,
            **_keys(places),
            **_news(places, where["now"]),
            "score": SCORE,
            "url": Texts([place.row.url for place in places]),
            "spelling": Texts([place.row.spelling for place in places]),
        }
        return {(qid, crawl, uid) for qid, crawl, uid in rows_of(cursor, "put_told", columns)}

    def _make_queues(self, bucket: int, places: list[Place]) -> None:
        unseen = {(place.qid, place.row.crawl): place.row.host for place in places}
        pairs = sorted(pair for pair in unseen if pair not in self._queues)
        if not pairs:
            return
        queues: dict[str, Any] = {
            "bucket": bucket,
            "qid": [qid for qid, _ in pairs],
            "crawl": [crawl for _, crawl in pairs],
            "lane": [0] * len(pairs),
            "hkey": [unseen[pair] for pair in pairs],
        }

        def make(cursor: Cursor) -> None:
            done_by(cursor, "put_hosts", {**queues, "delay_ms": usual_delay(cursor)})
            done_by(cursor, "put_queues", queues)

        self._session.transact(make)
        if len(self._queues) > _REMEMBERED_QUEUES:
            self._queues.clear()
        self._queues.update(pairs)


def _wake(cursor: Cursor, where: dict[str, Any], new: list[Place], told: list[Place]) -> None:
    """Counts, due times and readiness, after rows were inserted and before the others are written."""
    changed = Longs(sorted({place.qid for place in [*new, *told]}))
    done_by(cursor, "lock_hosts", {**where, "qid": changed})
    if new:
        queues = {**where, **_queue_news(new, where["now"])}
        if done_by(cursor, "wake_queues", queues) < len(queues["qid"]):
            raise _QueueGone
    if told:
        news = {**where, **_keys(told), **_news(told, where["now"])}
        done_by(cursor, "count_settled", news)
        done_by(cursor, "tell_known", news)
        done_by(cursor, "refresh_queues", {**where, "qid": sorted({place.qid for place in told})})
    known = sorted({place.qid for place in [*new, *told] if place.row.known})
    if known:
        done_by(cursor, "judge_limits", {**where, "qid": known})
    if new:
        done_by(cursor, "wake_hosts", queues)
    if known:
        done_by(cursor, "refresh_hosts", {**where, "qid": known})


def _by_bucket(places: Iterable[Place], buckets: int) -> dict[int, list[Place]]:
    groups: dict[int, list[Place]] = {}
    for place in places:
        groups.setdefault(bucket_of(place.qid, buckets), []).append(place)
    return groups


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
    }


def _queue_news(new: list[Place], now: int) -> dict[str, Any]:
    """The parameters of `wake_queues` and `wake_hosts`: one row for each queue with new URLs."""
    queues: dict[tuple[int, int], list[int]] = {}
    for place in new:
        due = now if place.row.due is None else place.row.due
        queues.setdefault((place.qid, place.row.crawl), []).append(due)
    pairs = sorted(queues)
    first = [min(queues[pair]) for pair in pairs]
    return {
        "qid": Longs([qid for qid, _ in pairs]),
        "crawl": Ints([crawl for _, crawl in pairs]),
        "lane": Ints([0] * len(pairs)),
        "due": Longs(first),
        "class": Ints([priority_class(SCORE) if due <= now else 0 for due in first]),
        "urls": Longs([len(queues[pair]) for pair in pairs]),
        "open": Longs([sum(due < NEVER for due in queues[pair]) for pair in pairs]),
    }

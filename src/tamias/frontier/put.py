"""The way into the frontier: rows get their numbers and queues, known URLs are told from new ones."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import add, attrgetter
from typing import Any

import msgspec
from psycopg.errors import NoDataFound

from tamias.database.citus import is_citus
from tamias.database.columns import Floats, Ints, Kinds, Longs, Shorts, Texts, columns
from tamias.database.connect import Cursor, Session
from tamias.frontier.keys import bucket_of, hash64, host_hash, salted, shared_key
from tamias.frontier.lease_filter import buckets_of
from tamias.frontier.queries import ask, done_by, read_buckets, rows_of
from tamias.frontier.service import usual_delay
from tamias.frontier.tags import Retagged, TagSets, retag
from tamias.model.errors import DatabaseError
from tamias.model.item import MOST_DEPTH, NEVER, Item, priority_class

PUT_BATCH = 1000
"""URLs that are put at once where there are many."""
_REMEMBERED_QUEUES = 100_000

Same = Callable[[str, str], bool]
"""Whether two texts are one URL."""
Lane = Callable[[tuple[str, ...]], int]
Queue = tuple[int, int, int]
"""A row of the queue table, within the bucket: host, crawl, lane."""


class Offered(msgspec.Struct, gc=False):
    """A row of the url table, and which items of a batch it stands for."""

    item: Item
    """What is to stand there."""
    qid: int
    uid: int
    due: int
    lane: int
    first: int
    """The position in the batch of the one that came first."""
    later: tuple[int, ...] = ()

    @property
    def place(self) -> tuple[int, int, int]:
        """Key in the url table, within the bucket."""
        return (self.qid, self.item.crawl, self.uid)

    @property
    def queue(self) -> Queue:
        """Queue that it goes to, if it is new."""
        return (self.qid, self.item.crawl, self.lane)

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of all items it stands for."""
        return (self.first, *self.later)

    def add(self, other: "Offered") -> None:
        """The same URL once more: the last word about a known one counts, otherwise the shortest way."""
        self.later += (other.first,)
        item = other.item
        if item.overwrites and item.keeps_tags:
            same_tags = {"tags": self.item.tags, "keeps_tags": self.item.keeps_tags}
            self.item, self.due = msgspec.structs.replace(item, **same_tags), other.due
        elif item.overwrites or item.depth < self.item.depth:
            self.item, self.due, self.lane = item, other.due, other.lane


def numbered(
    items: Sequence[Item],
    now: int,
    salt: int = 0,
    lane: Lane = lambda _: 0,
    among: Iterable[int] | None = None,
) -> tuple[list[Offered], list[int]]:
    """The rows of items, or of those at some positions; and the positions whose place another URL took."""
    taken: dict[tuple[int, int, int], Offered] = {}
    clashes: list[int] = []
    for at in range(len(items)) if among is None else among:
        item = items[at]
        due = now if item.due is None else item.due
        uid = hash64(item.key if salt == 0 else salted(item.key, salt))
        qid = host_hash(item.host)
        offered = Offered(item, qid, uid, due, lane(item.tags) if item.tags else 0, at)
        other = taken.setdefault((qid, item.crawl, uid), offered)
        if other is offered:
            continue
        if other.item.key == item.key:
            other.add(offered)
        else:
            clashes.append(at)
    return [taken[place] for place in sorted(taken)], clashes


def by_bucket(offered: Iterable[Offered], buckets: int) -> dict[int, list[Offered]]:
    """The rows of each bucket, in order."""
    groups: dict[int, list[Offered]] = {}
    for each in offered:
        groups.setdefault(bucket_of(each.qid, buckets), []).append(each)
    return groups


Part = tuple[list[Offered], dict[str, Any]]
"""The rows of one bucket, and their columns as they are sent."""


class OfferedItems(msgspec.Struct, frozen=True):
    """Items on their way into the frontier: numbered and written, which needs no database."""

    items: Sequence[Item]
    parts: dict[int, Part]
    """By bucket."""
    clashes: list[int]
    """Positions whose place another URL of them took."""
    salt: int
    uids: frozenset[int]
    is_new: bool
    """Nothing is told of known URLs."""
    is_update: bool
    """Nothing but that is told."""


def is_plain_word(item: Item) -> bool:
    """Return whether a client says of a known URL no more than when it is due, and its metadata."""
    return item.overwrites and item.keeps_tags and not item.cut


_URLS: Kinds = {
    "qid": Longs,
    "crawl": Ints,
    "uid": Longs,
    "depth": Ints,
    "url": Texts,
    "lane": Ints,
    "due": Longs,
    "class": Shorts,
    "score": Floats,
    "cut": Ints,
    "spelling": Texts,
    "metadata": Texts,
    "tags": Texts,
}


def url_columns(rows: list[Offered], now: int) -> dict[str, Any]:
    """Rows as the parameters of statements."""
    listed = [
        (
            *(row.qid, item.crawl, row.uid, item.depth, item.url, row.lane, row.due),
            *(priority_class(item.score) if row.due <= now else 0, item.score, item.cut, item.spelling),
            *(item.metadata, "\t".join(item.tags) or None),
        )
        for row in rows
        for item in (row.item,)
    ]
    return columns(_URLS, listed)


def offer(
    items: Sequence[Item],
    now: int,
    buckets: int,
    lane: Lane = lambda _: 0,
    among: Iterable[int] | None = None,
    salt: int = 0,
) -> OfferedItems:
    """Number items, or those at some positions, and write them as columns before their transaction begins."""
    rows, clashes = numbered(items, now, salt, lane, among)
    parts = {bucket: (part, url_columns(part, now)) for bucket, part in by_bucket(rows, buckets).items()}
    is_new = not any(map(attrgetter("item.overwrites"), rows))
    is_update = not is_new and all(is_plain_word(row.item) for row in rows)
    return OfferedItems(
        items, parts, clashes, salt, frozenset(map(attrgetter("uid"), rows)), is_new, is_update
    )


WOKEN: Kinds = {
    "qid": Longs,
    "crawl": Ints,
    "lane": Ints,
    "due": Longs,
    "class": Ints,
    "urls": Longs,
    "open": Longs,
    "again": Longs,
}


def queue_news(new: Iterable[Offered], lowered: Sequence[tuple[Any, ...]], now: int) -> list[tuple[Any, ...]]:
    """The rows of `wake` for URLs that were inserted, and for known ones that are due otherwise."""
    news: dict[Queue, list[int]] = {}
    changes = [(row.queue, row.due, row.item.score, 1, row.due < NEVER, 0) for row in new]
    if lowered:
        changes += [(row[:3], row[3], row[4], 0, row[5], row[6]) for row in lowered]
    for place, due, score, *counts in changes:
        earliest, highest, *sums = news.get(place, (NEVER, 0, 0, 0, 0))
        highest = max(highest, priority_class(score)) if due <= now else highest
        news[place] = [min(earliest, due), highest, *map(add, sums, counts)]
    return [(*place, *each) for place, each in news.items()]


class QueueGone(Exception):
    """Raised where somebody removed a queue while URLs were put into it."""


class KnownQueues:
    """The queues that URLs were put into, as long as they are remembered. Threads may share one."""

    def __init__(self) -> None:
        self._known: set[Queue] = set()

    def missing(self, rows: Iterable[Offered]) -> dict[Queue, str]:
        """Return those of some rows that may have to be made, sorted, with the keys of their hosts."""
        hosts = {queue: row.item.host for row in rows if (queue := row.queue) not in self._known}
        return dict(sorted(hosts.items()))

    def remember(self, queues: Iterable[Queue]) -> None:
        """Remember queues that were made, once that is committed."""
        if len(self._known) > _REMEMBERED_QUEUES:
            self._known.clear()
        self._known.update(queues)

    def forget(self) -> None:
        """Forget them: somebody deleted a crawl, so they may be gone."""
        self._known.clear()


def make_queues(cursor: Cursor, bucket: int, hosts: Mapping[Queue, str], delay_ms: int | None) -> None:
    """Queues with the keys of their hosts; without a delay, new hosts get the usual one."""
    kinds: Kinds = {"qid": Longs, "crawl": Ints, "lane": Ints, "hkey": Texts}
    rows = [(*queue, shared_key(host)) for queue, host in hosts.items()]
    queues = {"bucket": bucket, **columns(kinds, rows)}
    delay = usual_delay(cursor) if delay_ms is None else delay_ms
    done_by(cursor, "put_hosts", {**queues, "delay_ms": delay})
    done_by(cursor, "put_queues", queues)


class UrlPut:
    """The one way into the frontier, for crawls and for clients of the service. One for each thread."""

    def __init__(
        self,
        session: Session,
        same_url: Same,
        *,
        clock: Callable[[], int] | None = None,
        delay_ms: int | None = None,
        section: tuple[int, int] | None = None,
        queues: KnownQueues | None = None,
    ) -> None:
        """`delay_ms`: of new hosts, else the usual delay; `section`: the buckets that are ours, else all."""
        self._session = session
        self._same_url = same_url
        self._clock = clock or session.now
        self._delay_ms = delay_ms
        self.buckets: int = read_buckets(session)
        """Parts of the frontier, each named in every statement."""
        self._ours = None if section is None else frozenset(buckets_of(section, self.buckets))
        self.tag_sets = TagSets(session)
        self._queues = queues or KnownQueues()
        # Asking first is cheaper where most are known, and a waste where most are new.
        self._expects_new = True
        self._expects_all = True
        # Citus has no functions that write to several of its tables by the way.
        self._may_put_new = not session.transact(is_citus)

    def owns(self, host: str) -> bool:
        """Return whether the queue of a host is in our section."""
        return self._ours is None or bucket_of(host_hash(host), self.buckets) in self._ours

    def put(self, items: Sequence[Item], *, shortens: bool, durable: bool = True) -> list[bool]:
        """Return for each item whether it was taken: new, or overwriting a known one, and its host is ours.

        `shortens`: whether the depth of an item is a way to it, so that a known URL by a longer way gets it.
        Not `durable`: the last puts before a crash of the database may be lost, whole and without damage.
        """
        return self.write(self.prepare(items), shortens=shortens, durable=durable)

    def prepare(
        self, items: Sequence[Item], among: Iterable[int] | None = None, salt: int = 0
    ) -> OfferedItems:
        """The first half of a put: may be done by the `UrlPut` of another thread."""
        if among is None and self._ours is not None:
            among = [at for at, item in enumerate(items) if self.owns(item.host)]
        return offer(items, self._clock(), self.buckets, self.tag_sets.number, among, salt)

    def write(self, offered: OfferedItems, *, shortens: bool, durable: bool = True) -> list[bool]:
        """The second half."""
        items = offered.items
        taken = [False] * len(items)
        while True:
            left = list(offered.clashes)
            for bucket, part in offered.parts.items():
                inserted, clashing = self._put_bucket(bucket, part, offered, shortens, durable)
                for row in inserted:
                    taken[row.first] = True
                if clashing:
                    left += [at for row in clashing for at in row.positions]
                for row in () if offered.is_new else _overwriting(part[0], clashing):
                    for at in row.positions:
                        taken[at] = taken[at] or items[at].overwrites
            if not left:
                return taken
            # Two URLs with one hash: the second gets the hash of its salted key.
            offered = self.prepare(items, left, offered.salt + 1)

    def _put_bucket(
        self, bucket: int, part: Part, offered: OfferedItems, shortens: bool, durable: bool
    ) -> tuple[list[Offered], list[Offered]]:
        """The rows that were inserted, and those whose number belongs to another URL."""
        rows, _ = part

        def work(cursor: Cursor) -> tuple[list[Offered], list[Offered]]:
            if not durable:
                done_by(cursor, "do_not_sync", {})
            if missing:
                make_queues(cursor, bucket, missing, self._delay_ms)
            return self._write(cursor, bucket, part, offered, shortens)

        expects_all = offered.is_new and self._expects_all and self._may_put_new
        if expects_all and self._put_new(bucket, part, durable):
            return rows, []
        while True:
            missing = self._queues.missing(rows)
            try:
                written = self._session.transact(work, bucket)
            except QueueGone:
                self._queues.forget()
            else:
                self._queues.remember(missing)
                return written

    def _put_new(self, bucket: int, part: Part, durable: bool) -> bool:
        """Return whether all rows were inserted; otherwise none was."""
        rows, packed_rows = part
        missing = self._queues.missing(rows)
        there = {"bucket": bucket, "now": self._clock(), "durable": durable, "delay_ms": self._delay_ms}
        hosts = Texts([shared_key(row.item.host) for row in rows]) if missing else None
        try:
            ((self._expects_all,),) = ask(self._session, "put_new", **there, **packed_rows, hkey=hosts)
        except DatabaseError as error:
            if not isinstance(error.__cause__, NoDataFound):
                raise
            self._queues.forget()
            return False
        if self._expects_all:
            self._queues.remember(missing)
        return self._expects_all

    def _write(
        self, cursor: Cursor, bucket: int, part: Part, offered: OfferedItems, shortens: bool
    ) -> tuple[list[Offered], list[Offered]]:
        there: dict[str, Any] = {"bucket": bucket, "now": self._clock()}
        rows = part[0] if offered.is_new else _write_updates(cursor, there, part, offered.is_update)
        if not rows:
            return [], []
        unknown, clashing, shorter = rows, list[Offered](), list[Offered]()
        if not self._expects_new:
            unknown, clashing, shorter = self._find_known(cursor, there, part, rows, shortens)
        inserted, missed = _insert(cursor, there, part, unknown)
        self._expects_new = len(inserted) * 2 > len(rows)
        self._expects_all = len(inserted) == len(rows)
        if missed:
            lost, others, nearer = self._find_known(cursor, there, part, missed, shortens)
            if lost:  # neither inserted nor known: their queue is gone
                raise QueueGone
            clashing, shorter = clashing + others, shorter + nearer
        overwriting = [] if offered.is_new else _overwriting(rows, [*inserted, *clashing])
        if inserted or shorter or overwriting:
            changed = [*inserted, *shorter, *overwriting]
            done_by(cursor, "lock_hosts", {**there, "qid": _hosts(changed)})
            _wake(cursor, there, inserted, shorter)
            if overwriting:
                rows_of(
                    cursor, "tell_known", {**there, **url_columns(overwriting, there["now"]), "exact": False}
                )
                _leave_ranges(cursor, there, overwriting)
                retag(cursor, bucket, _retagged(cursor, there, overwriting))
            if updates := [] if offered.is_new else [row for row in changed if row.item.overwrites]:
                _refresh(cursor, there, updates)
        return inserted, clashing

    def _find_known(
        self, cursor: Cursor, there: dict[str, Any], part: Part, rows: list[Offered], shortens: bool
    ) -> tuple[list[Offered], list[Offered], list[Offered]]:
        """The rows not known, those whose number is another URL's, and those known by a longer way."""
        known = {**there, **_columns_of(part, rows, there["now"])}
        if not shortens:
            known["depth"] = Ints([MOST_DEPTH] * len(rows))
        ((unknown, differing, texts, deeper),) = rows_of(cursor, "find_known", known)
        if len(unknown) == len(rows):
            return rows, [], []
        clashing = {
            place: rows[place - 1]
            for place, text in zip(differing, texts, strict=True)
            if not self._same_url(rows[place - 1].item.url, text)
        }
        return (
            [rows[place - 1] for place in unknown],
            list(clashing.values()),
            [rows[place - 1] for place in deeper if place not in clashing],
        )


def _columns_of(part: Part, rows: list[Offered], now: int) -> dict[str, Any]:
    return part[1] if rows is part[0] else url_columns(rows, now)


def _insert(
    cursor: Cursor, there: dict[str, Any], part: Part, rows: list[Offered]
) -> tuple[list[Offered], list[Offered]]:
    """The rows whose places were free, and the others."""
    if not rows:
        return [], []
    places = rows_of(cursor, "put_urls", {**there, **_columns_of(part, rows, there["now"])})
    if len(places) == len(rows):
        return rows, []
    there_now = set(places)
    missed = [row for row in rows if row.place not in there_now]
    return [row for row in rows if row.place in there_now], missed


def _wake(cursor: Cursor, there: dict[str, Any], new: list[Offered], shorter: list[Offered]) -> None:
    """Note shorter ways; then counts, due times and readiness of the queues."""
    lowered = []
    if shorter:
        lowered = rows_of(cursor, "lower_depths", {**there, **url_columns(shorter, there["now"])})
    # `put_urls` looks for the first queue only: here it shows whether all the others are there.
    if queues := queue_news(new, lowered, there["now"]):
        ((count, is_held),) = rows_of(cursor, "wake", {**there, **columns(WOKEN, queues)})
        if count < len(queues):
            raise QueueGone
        if is_held:
            done_by(cursor, "leave_range", {**there, **url_columns(new, there["now"])})


def _write_updates(cursor: Cursor, there: dict[str, Any], part: Part, is_update: bool) -> list[Offered]:
    """Write what clients say of URLs that are known by the very text and keep their tags; the other rows.

    That is nearly all they say of known URLs, in a third of the statements.
    """
    rows, _ = part
    plain = rows if is_update else [row for row in rows if is_plain_word(row.item)]
    if not plain:
        return rows
    done_by(cursor, "lock_hosts", {**there, "qid": _hosts(rows)})  # of all, so that they are locked in order
    news = {**there, **_columns_of(part, plain, there["now"]), "exact": True}
    ((places, affected),) = rows_of(cursor, "tell_known", news)
    if not places:
        return rows
    updates = plain if len(places) == len(plain) else [plain[place - 1] for place in places]
    _leave_ranges(cursor, there, updates)
    if affected:
        _refresh(cursor, there, [plain[place - 1] for place in affected])
    if len(updates) == len(rows):
        return []
    written = {row.place for row in updates}
    return [row for row in rows if row.place not in written]


def _leave_ranges(cursor: Cursor, there: dict[str, Any], updates: list[Offered]) -> None:
    """Clients hold ranges of due times up to now: what is told to be due by then is not held."""
    if past := [row for row in updates if row.due <= there["now"]]:
        done_by(cursor, "leave_range", {**there, **url_columns(past, there["now"])})


def _refresh(cursor: Cursor, there: dict[str, Any], updates: list[Offered]) -> None:
    """Find out when queues have something to do after what clients said, and hosts with them."""
    hosts = {**there, "qid": _hosts(updates)}
    changed = rows_of(cursor, "refresh_queues", hosts) + rows_of(cursor, "judge_limits", hosts)
    if changed:
        done_by(cursor, "refresh_hosts", {**there, "qid": Longs(sorted({qid for (qid,) in changed}))})


def _overwriting(rows: list[Offered], others: list[Offered]) -> list[Offered]:
    """Return those by which clients speak of known URLs, without some others."""
    found = [row for row in rows if row.item.overwrites]
    places = {row.place for row in others} if found else ()
    return [row for row in found if row.place not in places]


def _retagged(cursor: Cursor, there: dict[str, Any], rows: list[Offered]) -> Iterator[Retagged]:
    """The known URLs whose tags are to be others."""
    tagged = {row.place: row for row in rows if not row.item.keeps_tags}
    if not tagged:
        return
    for qid, crawl, uid, tags in rows_of(
        cursor, "tags_of", {**there, **url_columns([*tagged.values()], there["now"])}
    ):
        row = tagged[qid, crawl, uid]
        if set(row.item.tags) != set(tags):
            yield Retagged(qid, crawl, uid, tuple(tags), row.item.tags, row.lane)


def _hosts(rows: Iterable[Offered]) -> Longs:
    """Return the hosts of rows in the order in which they are locked."""
    return Longs(sorted({row.qid for row in rows}))

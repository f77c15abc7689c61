"""The state that all instances of the frontier service share, and queues steered and looked at by hand."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from tamias.database.citus import is_citus
from tamias.database.connect import Cursor, Session
from tamias.frontier.keys import bucket_of, hash64, host_hash, own_queue, salted, shared_key
from tamias.frontier.queries import ask, done_by, read_buckets, refresh, rows_of, tell

_ALIVE_MS = 60_000
_HOSTS_AT_ONCE = 1000

DEFAULT_CRAWL = "DEFAULT"
"""The name by which clients know the crawl that has none."""


def is_active(cursor: Cursor) -> bool:
    """Return whether clients get URLs at all."""
    return bool(rows_of(cursor, "service_row", {})[0][0])


def usual_delay(cursor: Cursor) -> int:
    """Milliseconds between two visits to a host that has no delay of its own."""
    return int(rows_of(cursor, "service_row", {})[0][1])


def set_active(session: Session, active: bool) -> None:
    """Activate or deactivate all instances, from their next response on."""
    tell(session, "set_active", active=active)


def set_usual_delay(session: Session, delay_ms: int) -> None:
    """Set the usual delay, also for known hosts without a delay of their own."""
    usual = session.transact(usual_delay)
    tell(session, "set_usual_delay", delay_ms=delay_ms)
    for bucket in range(read_buckets(session)):
        query = {"bucket": bucket, "after": _FIRST, "usual_ms": usual, "limit": _HOSTS_AT_ONCE}
        while found := ask(session, "find_undelayed", **query):
            qids = [row[0] for row in found]
            session.transact(partial(_delay, bucket, qids, delay_ms))
            query["after"] = qids[-1]


class NamedQueues(msgspec.Struct, frozen=True):
    """A crawl as clients name it."""

    crawl: int
    own_politeness: bool
    """Whether delay, block and window belong to its queues, rather than to hosts that crawls share."""

    def host(self, key: str) -> str:
        """The host key of one of its queues."""
        return own_queue(self.crawl, key) if self.own_politeness else key


_DEFAULT = NamedQueues(1, own_politeness=False)


def make_crawl(session: Session, name: str, *, own_politeness: bool = False) -> NamedQueues:
    """The crawl of a client's name, made where there is none."""
    if name.upper() == DEFAULT_CRAWL or not name:
        return _DEFAULT
    tell(session, "make_crawl", name=name, own=own_politeness)
    return NamedQueues(*ask(session, "find_crawl", name=name)[0])


def found_crawl(session: Session, name: str) -> NamedQueues | None:
    """The crawl of a client's name; None where there is none."""
    if name.upper() == DEFAULT_CRAWL or not name:
        return _DEFAULT
    found = ask(session, "find_crawl", name=name)
    return NamedQueues(*found[0]) if found else None


def is_tamias_at_work(cursor: Cursor) -> bool:
    """Return whether hosts may be asked by Tamias itself, and not by clients alone."""
    return bool(rows_of(cursor, "is_tamias_at_work", {})[0][0])


def crawl_names(session: Session) -> dict[int, str]:
    """Return all crawls by their numbers, as clients name them."""
    return {crawl: DEFAULT_CRAWL if crawl == 1 else name for crawl, name in ask(session, "list_crawls")}


def gather_statistics(session: Session, least: int) -> bool:
    """Let the database plan for what has come, where it knows of fewer URLs than `least`.

    It does so by itself some seconds later; a Citus cluster is left to that.
    """
    if session.transact(is_citus):
        return False
    return bool(ask(session, "analyse_frontier", least=least)[0][0])


def announce(session: Session, address: str) -> None:
    """An instance says that it is alive; to be repeated."""
    tell(session, "announce_node", address=address, now=session.now())


def leave(session: Session, address: str) -> None:
    """An instance stops."""
    tell(session, "remove_node", address=address)


def nodes(session: Session) -> list[str]:
    """The instances that said so within the last minute."""
    return [row[0] for row in ask(session, "list_nodes", since=session.now() - _ALIVE_MS)]


def _delay(bucket: int, qids: list[int], delay_ms: int, cursor: Cursor) -> None:
    hosts = {"bucket": bucket, "qid": qids, "delay_ms": delay_ms}
    done_by(cursor, "lock_hosts", hosts)
    done_by(cursor, "set_delays", hosts)


_FIRST = -(2**63)
_QUEUES_AT_ONCE = 200
_DAY_MS = 86_400_000
_MOST_SALTS = 3

Work = Callable[[int, int, list[int], Cursor], int]
"""Works on queues: bucket, crawl, hosts."""


class QueueFigures(msgspec.Struct, frozen=True):
    """The figures of a queue or a crawl."""

    scheduled: int
    held: int
    done: int
    queues: int
    busy_queues: int


class UrlState(msgspec.Struct, frozen=True):
    """The state of a URL; `due` is `NEVER` when it is done."""

    url: str
    host: str
    due: int
    first_seen: int
    metadata: str | None
    tags: list[str] | None


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The URLs to list or count: of a crawl, of one queue, with a part in their text."""

    crawl: int
    host: str | None = None
    part: str | None = None
    any_case: bool = False


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a page of URLs: after a row, without the next `skip` that fit."""

    bucket: int = 0
    qid: int = _FIRST
    uid: int = _FIRST
    skip: int = 0


class Queues:
    """The hand on the queues. One for each thread."""

    def __init__(self, session: Session, *, same_url: Callable[[str, str], bool]) -> None:
        self._session = session
        self._same_url = same_url
        self._buckets: int = read_buckets(session)

    def pause(self, host: str, until: int) -> bool:
        """The host is left alone until then; 0 ends it. Whether it is known."""
        return self._steer(host, "set_pause", until=until)

    def pause_for_all(self, key: str, until: int) -> bool:
        """The same whatever the crawl, also for those with a politeness of their own."""
        own = [own_queue(crawl, key) for (crawl,) in self._ask("crawls_with_own_politeness")]
        return sum(self.pause(host, until) for host in (key, *own)) > 0

    def set_delay(self, host: str, delay_ms: int) -> None:
        """The delay of a host from now on. Unknown hosts are passed over."""
        self._steer(host, "set_delay", delay_ms=delay_ms)

    def set_limit(self, host: str, crawl: int, limit: int | None) -> bool:
        """The queue is served until so many of its URLs are done. False: there is no such queue."""
        place = {**self._place(host), "crawl": crawl, "limit": limit}

        def work(cursor: Cursor) -> bool:
            done_by(cursor, "lock_hosts", {**place, "qid": [place["qid"]]})
            found = rows_of(cursor, "set_limit", place)
            self._refresh(cursor, place["bucket"], [place["qid"]])
            return bool(found)

        return self._session.transact(work)

    def crawls(self) -> set[int]:
        """The crawls that have queues."""
        return {row[0] for bucket in self._all_buckets() for row in self._ask("crawls_here", bucket=bucket)}

    def names(self, crawl: int, start: int, size: int, *, busy: bool) -> tuple[list[str], int]:
        """A page of a crawl's queues, and how many there are; `busy` ones have work and are not paused."""
        found: list[str] = []
        before = 0
        query = {"crawl": crawl, "busy": busy, "now": self._session.now()}
        for bucket in self._all_buckets():
            count = self._ask("count_queues", bucket=bucket, **query)[0][0]
            place = {"start": max(0, start - before), "size": size - len(found)}
            if place["size"] > 0 and place["start"] < count:
                found += [row[0] for row in self._ask("list_queues", bucket=bucket, **query, **place)]
            before += count
        return found, before

    def figures(self, crawl: int, host: str | None) -> QueueFigures:
        """Count of a queue, or of a whole crawl; zeros where there is nothing."""
        query = {"crawl": crawl, "qid": None if host is None else host_hash(host), "now": self._session.now()}
        sums = [0, 0, 0, 0, 0]
        for bucket in self._buckets_of(host):
            scheduled, done, queues, busy = self._ask("queue_figures", bucket=bucket, **query)[0]
            held = self._ask("count_held", bucket=bucket, **query)[0][0]
            row = (scheduled, held, done, queues, busy)
            sums = [sum_ + each for sum_, each in zip(sums, row, strict=True)]
        return QueueFigures(*sums)

    def status(self, host: str, crawl: int, url: str, key: str) -> UrlState | None:
        """Return what is known of a URL; None where it is not known."""
        place = {**self._place(host), "crawl": crawl}
        for salt in range(_MOST_SALTS):
            uid = hash64(key) if salt == 0 else hash64(salted(key, salt))
            found = self._ask("url_status", **place, uid=uid, now=self._session.now())
            if not found:
                return None
            text, due, first_seen, metadata, tags, fetched = found[0]
            if fetched == url or self._same_url(fetched, url):
                return UrlState(text, shared_key(host), due, first_seen, metadata, tags)
        return None

    def urls(self, listing: Listing, spot: Spot, size: int) -> tuple[list[UrlState], Spot | None]:
        """A page of the URLs that fit, and where the next one begins; None: nowhere."""
        buckets = self._buckets_of(listing.host)
        for bucket in buckets:
            if bucket < spot.bucket:
                continue
            place = {"after_qid": spot.qid, "after_uid": spot.uid, "start": spot.skip, "size": size}
            place["now"] = self._session.now()
            page = self._ask("list_urls", bucket=bucket, **_chosen(listing), **place)
            if page:
                states = [UrlState(row[3], row[2], *row[4:]) for row in page]
                return states, Spot(bucket=bucket, qid=page[-1][0], uid=page[-1][1])
            skipped = self._matches(bucket, listing) if spot.skip else 0
            spot = Spot(bucket=bucket + 1, skip=spot.skip - skipped)
        return [], None

    def count(self, listing: Listing) -> int:
        """Return how many URLs fit."""
        if not listing.part:
            figures = self.figures(listing.crawl, listing.host)
            return figures.scheduled + figures.done
        return sum(self._matches(bucket, listing) for bucket in self._buckets_of(listing.host))

    def delete(self, crawl: int, host: str | None = None, *, politeness_of: NamedQueues | None = None) -> int:
        """Remove a queue, or all queues of a crawl; return how many URLs went.

        The delays, blocks and windows of hosts that have no queue left are forgotten for a client.
        """
        return self._each_some(crawl, host, partial(self._delete_some, politeness_of))

    def purge(self, crawl: int, host: str | None, days: int) -> int:
        """Remove URLs that have been known for more than so many days; return how many went."""
        before = self._session.now() - days * _DAY_MS
        return self._each_some(crawl, host, partial(self._purge_some, before))

    def pause_crawl(self, crawl: int, *, paused: bool) -> None:
        """Pause or resume leases of the crawl; workers finish what they hold."""
        self._each_some(crawl, None, partial(self._pause_some, paused))

    def _pause_some(self, paused: bool, bucket: int, crawl: int, qids: list[int], cursor: Cursor) -> int:
        queues = {"bucket": bucket, "crawl": crawl, "qid": qids, "paused": paused}
        done_by(cursor, "lock_hosts", queues)
        changed = done_by(cursor, "pause_queues", queues)
        self._refresh(cursor, bucket, qids)
        return changed

    def _steer(self, host: str, name: str, **values: Any) -> bool:
        place = self._place(host)

        def work(cursor: Cursor) -> bool:
            done_by(cursor, "lock_hosts", {**place, "qid": [place["qid"]]})
            changed = done_by(cursor, name, {**place, **values, "now": self._session.now()})
            self._refresh(cursor, place["bucket"], [place["qid"]])
            return changed > 0

        return self._session.transact(work)

    def _refresh(self, cursor: Cursor, bucket: int, qids: list[int]) -> None:
        refresh(cursor, {"bucket": bucket, "qid": qids, "now": self._session.now()})

    def _each_some(self, crawl: int, host: str | None, work: Work) -> int:
        """Work on the queues of a crawl, some at a time; each of them in one transaction."""
        if host is not None:
            place = self._place(host)
            return self._session.transact(partial(work, place["bucket"], crawl, [place["qid"]]))
        total = 0
        for bucket in self._all_buckets():
            after = _FIRST
            while found := self._ask(
                "some_queues", bucket=bucket, crawl=crawl, after=after, limit=_QUEUES_AT_ONCE
            ):
                qids = [row[0] for row in found]
                after = qids[-1]
                total += self._session.transact(partial(work, bucket, crawl, qids))
        return total

    def _delete_some(
        self, named: NamedQueues | None, bucket: int, crawl: int, qids: list[int], cursor: Cursor
    ) -> int:
        queues = {"bucket": bucket, "crawl": crawl, "qid": qids}
        done_by(cursor, "lock_hosts", queues)
        urls = done_by(cursor, "delete_urls", queues)
        done_by(cursor, "delete_queues", queues)
        _forget_gone(cursor, queues)
        if named is not None:
            # Where Tamias asks hosts itself, what it owes them outlives a crawl by one delay at most.
            shared = not named.own_politeness and is_tamias_at_work(cursor)
            usual = {"delay_ms": usual_delay(cursor), "shared": shared, "now": self._session.now()}
            done_by(cursor, "forget_politeness", {**queues, **usual})
        self._refresh(cursor, bucket, qids)
        return urls

    def _purge_some(self, before: int, bucket: int, crawl: int, qids: list[int], cursor: Cursor) -> int:
        queues = {"bucket": bucket, "crawl": crawl, "qid": qids}
        done_by(cursor, "lock_hosts", queues)
        gone = rows_of(cursor, "purge_urls", {**queues, "before": before})
        urls = Counter((qid, lane) for qid, lane, _ in gone)
        still_open = Counter((qid, lane) for qid, lane, is_open in gone if is_open)
        counts = {
            "qid": [qid for qid, _ in urls],
            "lane": [lane for _, lane in urls],
            "urls": list(urls.values()),
            "open": [still_open[queue] for queue in urls],
        }
        if not gone:
            return 0
        hit = sorted({qid for qid, _ in urls})
        done_by(cursor, "count_purged", {**queues, **counts})
        done_by(cursor, "delete_empty_queues", {**queues, "qid": hit})
        _forget_gone(cursor, {**queues, "qid": hit})
        self._refresh(cursor, bucket, hit)
        return len(gone)

    def _matches(self, bucket: int, listing: Listing) -> int:
        query = {**_chosen(listing), "part": listing.part or ""}
        return int(self._ask("count_urls", bucket=bucket, **query)[0][0])

    def _ask(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        return ask(self._session, name, **parameters)

    def _place(self, host: str) -> dict[str, Any]:
        qid = host_hash(host)
        return {"bucket": bucket_of(qid, self._buckets), "qid": qid}

    def _all_buckets(self) -> range:
        return range(self._buckets)

    def _buckets_of(self, host: str | None) -> range:
        if host is None:
            return self._all_buckets()
        bucket = bucket_of(host_hash(host), self._buckets)
        return range(bucket, bucket + 1)


def _chosen(listing: Listing) -> dict[str, Any]:
    return {
        "crawl": listing.crawl,
        "qid": None if listing.host is None else host_hash(listing.host),
        "part": listing.part or None,
        "any_case": listing.any_case,
    }


def _forget_gone(cursor: Cursor, queues: dict[str, Any]) -> None:
    """Delete the rows that belong to deleted URLs: plans of visits, links to them, who set their tags."""
    for name in ("forget_revisits", "forget_links", "forget_tagged"):
        done_by(cursor, name, queues)

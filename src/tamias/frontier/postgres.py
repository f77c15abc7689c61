"""The frontier on PostgreSQL. What it says to the database stands in `frontier.sql`; this file says when."""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

import msgspec

from tamias.database.columns import Bools, Floats, Ints, Kinds, Longs, Shorts, Texts, columns, packed
from tamias.database.connect import Cursor, Session
from tamias.frontier import queries
from tamias.frontier.crawls import Neighbours
from tamias.frontier.keys import bucket_of, host_hash
from tamias.frontier.lease_filter import Interest, LeaseFilter, buckets_of, of_one_address, thin
from tamias.frontier.put import PUT_BATCH, Same, UrlPut
from tamias.frontier.queries import Row, done_by, rows_of
from tamias.frontier.tags import Retagged, retag
from tamias.model.errors import NodeAway
from tamias.model.item import CLASSES, Item
from tamias.model.lease import ABANDONED, Done, FrontierStats, Lease, Return, Task, Unreachable
from tamias.protocols import Record


class Deferred(msgspec.Struct, frozen=True):
    """A place that URLs wait for."""

    authority: str
    since: int
    reason: str


def with_unreachable(cursor: Cursor, bucket: int, leases: list[Lease]) -> list[Lease]:
    """The leases, each with what of its host could not be reached."""
    if not leases:
        return leases
    query = {"bucket": bucket, "qid": Longs([lease.qid for lease in leases])}
    known: dict[int, list[Unreachable]] = {}
    for qid, *place in rows_of(cursor, "read_unreachable", query):
        known.setdefault(qid, []).append(Unreachable(*place))
    if not known:
        return leases
    return [msgspec.structs.replace(lease, unreachable=tuple(known.get(lease.qid, ()))) for lease in leases]


_REACHED: Kinds = {"qid": Longs, "authority": Texts}
_LOST: Kinds = {
    **_REACHED,
    "since": Longs,
    "tries": Shorts,
    "next_at": Longs,
    "reason": Texts,
    "given_up": Bools,
}


def write_unreachable(cursor: Cursor, bucket: int, returns: Sequence[Return]) -> None:
    """Store unreachable places from the returns; hosts are locked, and their queues refreshed afterwards."""
    if reached := [(each.lease.qid, place) for each in returns for place in each.reached]:
        done_by(cursor, "clear_reached", {"bucket": bucket, **columns(_REACHED, sorted(reached))})
    lost = [
        (
            *(each.lease.qid, place.authority, place.since, min(place.tries, 30_000), place.next_at),
            *(place.reason, place.given_up),
        )
        for each in returns
        for place in each.unreachable
    ]
    if lost:
        lost.sort()
        places = {"bucket": bucket, **columns(_LOST, lost)}
        done_by(cursor, "write_unreachable", places)
        done_by(cursor, "defer_urls", places)
        if any(map(itemgetter(-1), lost)):
            done_by(cursor, "fail_urls", places)


def deferred(session: Session, buckets: int, crawl: int) -> list[Deferred]:
    """Return what URLs of a crawl still wait for."""

    def read(cursor: Cursor) -> list[Deferred]:
        return [
            Deferred(*row)
            for bucket in range(buckets)
            for row in rows_of(cursor, "deferred", {"bucket": bucket, "crawl": crawl})
        ]

    return session.transact(read)


def find_deferred(cursor: Cursor, bucket: int, now: int) -> list[int]:
    """Hosts with something that waits for a later try."""
    rows = rows_of(cursor, "find_deferred", {"bucket": bucket, "now": now})
    return sorted(row[0] for row in rows)


def resume(cursor: Cursor, hosts: dict[str, object]) -> None:
    """Make due what waits on these hosts, which are locked."""
    done_by(cursor, "resume_urls", hosts)
    done_by(cursor, "resume_hosts", hosts)


T = TypeVar("T")
BucketFigures = tuple[Row, list[Row]]
"""Of the hosts of a bucket, and of what each crawl has there."""

_QUEUES_PER_LEASE = 3


class PostgresFrontier:
    """Know every URL, lend hosts to workers, and lose nothing. One for each thread.

    Times are the frontier's own milliseconds. Every call may raise `DatabaseUnavailable`, and may then be
    repeated: `put`, `renew`, `finish` and `release` are idempotent, and a repeated `lease` only leaves hosts
    waiting for the lease to end.
    """

    def __init__(
        self,
        session: Session,
        *,
        same_url: Same,
        worker: int | None = None,
        delay_ms: int = 1000,
        clock: Callable[[], int] | None = None,
        lease_filter: LeaseFilter | None = None,
    ) -> None:
        """`same_url` tells whether two texts are one URL; `worker` is the number of `Embedded.enrol`.

        `lease_filter` says what is lent, and its interest which crawls are counted; anything can be put.
        """
        self._session = session
        # The upper half of every token; random where no file lock proves that a number is alive.
        self._worker = worker or secrets.randbelow(2**31 - 1) + 1
        self.now: Callable[[], int] = clock or session.now
        self._now_at_latest: Callable[[], int] = clock or session.now_at_latest
        self._put = UrlPut(session, same_url, clock=self.now, delay_ms=delay_ms)
        self.buckets = self._put.buckets
        self._lease_filter = lease_filter or LeaseFilter()
        interest, crawls = self._lease_filter.interest or Interest(), self._lease_filter.crawls
        self._terms = packed({"require": Texts, "forbid": Texts}, (interest.require, interest.forbid))
        self._terms["crawls"] = None if crawls is None else Ints(crawls)
        self._section = buckets_of(self._lease_filter.section, self.buckets)
        # At random, so that workers do not all begin with the same bucket and class.
        self._calls = secrets.randbelow(CLASSES * self.buckets)
        self._neighbours = Neighbours(session, self.now, self._lease_filter, self.buckets)
        # Of a node that is away, its last figures count.
        self._figures_before: dict[int, BucketFigures] = {}

    def put(self, items: Sequence[Item]) -> int:
        """Make items known, durably, and leave known ones as they are; return how many were new."""
        batches = (items[start : start + PUT_BATCH] for start in range(0, len(items), PUT_BATCH))
        return sum(sum(self._put.put(batch, shortens=True)) for batch in batches)

    def lease(self, hosts: int, per_host: int = 10, seconds: float = 30.0) -> list[Lease]:
        """Return up to `hosts` ready hosts, each with up to `per_host` due URLs, best first.

        Nobody else is given such a host until it is released or the lease has ended.
        """
        leases: list[Lease] = []
        self._neighbours.look()
        self._calls += 1
        count = len(self._section)
        for step in range(count):
            bucket = self._section[(self._calls + step) % count]
            wanted = hosts - len(leases)
            ask = partial(self._lease_bucket, bucket, wanted, per_host, seconds)
            with suppress(NodeAway):
                leases += self._thinned(self._session.transact(ask, bucket))
            if len(leases) >= hosts:
                break
        # A queue may promise a URL that was put off since; such a host goes back at once.
        if not all(map(attrgetter("tasks"), leases)):
            self.release([lease for lease in leases if not lease.tasks])
        return [lease for lease in leases if lease.tasks]

    def renew(self, leases: Iterable[Lease], seconds: float = 30.0) -> list[Lease]:
        """Return the leases with a later end. One that does not come back is lost: stop at once."""
        renewed: list[Lease] = []
        for bucket, group in queries.by_bucket(leases):
            try:
                ask = partial(self._renew_bucket, bucket, group, seconds)
                renewed += self._session.transact(ask, bucket)
            except NodeAway:
                renewed += group  # as they are: they may be renewed later, and end when they end
        return renewed

    def finish(
        self,
        returns: Sequence[Return],
        record: Record | None = None,
        *,
        in_bucket: bool = False,
        away: set[int] | None = None,
    ) -> frozenset[int]:
        """Settle tasks and give hosts back, in one transaction for each bucket.

        Return the hosts (`qid`) whose lease still held; of the others nothing was changed.

        `in_bucket`: whether what `record` writes is all in tables that are divided by buckets.

        Buckets of which nothing could be finished, since their nodes are away, are added to `away`.
        """
        held: frozenset[int] = frozenset()
        # In the order in which hosts are locked, so that two finishes never wait for each other.
        ordered = sorted(returns, key=attrgetter("lease.bucket", "lease.qid"))
        moved = self._retagged(returns)
        own = in_bucket or record is None
        for bucket, group in groupby(ordered, key=attrgetter("lease.bucket")):
            settle = partial(self._finish_bucket, bucket, list(group), moved, record)
            try:
                held |= self._session.transact(settle, bucket if own else None)
            except NodeAway:
                if away is not None:
                    away.add(bucket)
        return held

    def credit(self, earned: Mapping[str, float]) -> None:
        """Visit that the links of other hosts have earned, by host key. Nodes that are away miss them."""
        gains: dict[int, dict[int, float]] = {}
        for host, credit in earned.items():
            qid = host_hash(host)
            gains.setdefault(bucket_of(qid, self.buckets), {})[qid] = credit
        for bucket, gained in sorted(gains.items()):
            qids = sorted(gained)
            news = {"bucket": bucket, "qid": Longs(qids), "earned": Floats([gained[qid] for qid in qids])}
            with suppress(NodeAway):
                self._session.transact(partial(_credit, news), bucket)

    def finish_apart(self, lease: Lease, done: Done, until: int, record: Record) -> bool:
        """Settle a task that was put off until a time which is still to come, after its host was given back.

        Whether it did: if anybody else has touched the URL, or could have, nothing is changed. `record` is
        called either way, with the host or without.
        """
        moved = self._retagged([Return(lease=lease, done=(done,))])
        return self._session.transact(partial(self._finish_apart, lease, done, until, moved, record))

    def put_off_further(self, waiting: Sequence[tuple[Lease, Task, int]], until: int) -> list[bool]:
        """Put off tasks again until a later time; return for each if it still was put off."""
        return [
            self._session.transact(partial(self._put_off_further, lease, task, before, until))
            for lease, task, before in waiting
        ]

    def release(self, leases: Iterable[Lease]) -> None:
        """Give hosts back untouched: their tasks stay due, the delay is still kept."""
        returns = [Return(lease=lease) for lease in leases]
        if returns:
            self.finish(returns)

    def give_back(self, workers: Sequence[int]) -> int:
        """End the leases of workers that are known to be dead; return how many there were."""
        given = 0
        for bucket in range(self.buckets):
            try:
                held = self._ask("held_by", {"bucket": bucket, "workers": list(workers)})
            except NodeAway:
                continue  # there they end by themselves
            # The server may still be working on the last request of the dead worker; and hosts that are given
            # back together would be asked together from then on, each time.
            now = self._now_at_latest()
            self.finish(
                [
                    Return(
                        lease=Lease(
                            host="", qid=qid, bucket=bucket, token=token, ends_at=0, delay_ms=0, tasks=()
                        ),
                        blocked_until=now + round((ABANDONED + place / len(held)) * delay_ms)
                        if delay_ms
                        else None,
                    )
                    for place, (qid, token, delay_ms) in enumerate(held)
                ]
            )
            given += len(held)
        return given

    def count_death(self, bucket: int, qid: int, crawl: int, uid: int) -> None:
        """Note that a worker died over a document; the task says so when it is lent again."""
        place = {"bucket": bucket, "qid": qid, "crawl": crawl, "uid": uid}
        with suppress(NodeAway):
            self._session.transact(partial(done_by, name="count_death", parameters=place), bucket)

    def resume_deferred(self) -> int:
        """Make due what was deferred because it could not be reached; return on how many hosts."""
        return sum(self._each_bucket(range(self.buckets), self._resume_bucket))

    def sweep(self) -> int:
        """Repair what should never need it: sleeping hosts, ended leases. Return how many."""
        return sum(self._each_bucket(self._section, self._sweep_bucket))

    def figures(self) -> FrontierStats:
        """Return counts and times. Costs grow with the number of hosts, not of URLs."""
        if self._session.nodes is None:
            return self._session.transact(self._figures)
        for bucket, found in self._each_bucket(
            range(self.buckets), lambda bucket, cursor: (bucket, self._bucket_figures(bucket, cursor))
        ):
            self._figures_before[bucket] = found
        if len(self._figures_before) < self.buckets:
            raise NodeAway("a node of the database is away, and nothing was read there before")
        return self._session.transact(partial(self._summed, [*self._figures_before.values()]))

    def _each_bucket(self, buckets: Iterable[int], work: Callable[[int, Cursor], T]) -> list[T]:
        """Return what the work gives in each, without those whose node is away."""
        found: list[T] = []
        for bucket in buckets:
            with suppress(NodeAway):
                found.append(self._session.transact(partial(work, bucket), bucket))
        return found

    def _lease_bucket(
        self, bucket: int, hosts: int, per_host: int, seconds: float, cursor: Cursor
    ) -> list[Lease]:
        # The time is taken inside the transaction: one that waited for its server must not lend the past.
        now = self.now()
        token = self._worker << 32 | secrets.randbits(32)
        ends_at = now + int(seconds * 1000)
        query = {
            **self._terms,
            **queries.probes(self._calls // len(self._section) % CLASSES, hosts),
            "by_queue": self._neighbours.concern(),
            "round_end": now + self._lease_filter.round_ms if self._lease_filter.round_ms else 0,
            "bucket": bucket,
            "now": now,
            "token": token,
            "lease_end": ends_at,
            "hosts": hosts,
            "per_host": per_host,
            "queues": _QUEUES_PER_LEASE,
        }
        found = rows_of(cursor, "lease", query)
        leases = queries.leases_from(found, bucket, token, ends_at)
        return with_unreachable(cursor, bucket, leases) if any(map(itemgetter(5), found)) else leases

    def _thinned(self, leases: list[Lease]) -> list[Lease]:
        """Keep to the cap of addresses. Names are looked up between two transactions, not in one."""
        terms = self._lease_filter
        if terms.address_of is None or not leases:
            return leases
        found = [of_one_address(lease, terms.address_of) for lease in leases]
        return self._session.transact(partial(thin, self.buckets, self.now(), found, terms.per_address))

    def _renew_bucket(self, bucket: int, leases: list[Lease], seconds: float, cursor: Cursor) -> list[Lease]:
        now = self.now()
        ends_at = now + int(seconds * 1000)
        query = {**queries.held_columns(bucket, leases), "now": now, "lease_end": ends_at}
        renewed = set(rows_of(cursor, "renew", query))
        still = (lease for lease in leases if (lease.qid, lease.token) in renewed)
        return [msgspec.structs.replace(lease, ends_at=ends_at) for lease in still]

    def _finish_bucket(
        self, bucket: int, returns: list[Return], moved: list[Retagged], record: Record | None, cursor: Cursor
    ) -> frozenset[int]:
        claimed = queries.held_columns(bucket, map(attrgetter("lease"), returns))
        locked = set(rows_of(cursor, "lock_held", claimed))
        valid = [each for each in returns if (each.lease.qid, each.lease.token) in locked]
        held = frozenset(map(attrgetter("lease.qid"), valid))
        self._settle(cursor, bucket, valid, moved and [url for url in moved if url.qid in held])
        write_unreachable(cursor, bucket, valid)
        if alike := {each.lease.qid: each.alike for each in valid if each.alike is not None}:
            parameters = {"bucket": bucket, "qid": Longs(alike), "alike": list(alike.values())}
            done_by(cursor, "write_alike", parameters)
        if record is not None:
            record(cursor, held)
        released = [each for each in valid if each.release]
        if released:
            hosts = {"now": self.now(), **queries.release_columns(bucket, released)}
            done_by(cursor, "refresh_queues", hosts)
            # Whoever leases the host next may have a clock that is not behind, as ours may be.
            done_by(cursor, "release_hosts", {**hosts, "now": self._now_at_latest()})
        return held

    def _settle(self, cursor: Cursor, bucket: int, returns: list[Return], moved: list[Retagged]) -> None:
        """Write what became of tasks whose hosts are locked."""
        qids = Longs(sorted({each.lease.qid for each in returns if each.done}))
        if not qids:
            return
        if moved:
            retag(cursor, bucket, moved)
        done_by(cursor, "settle", {"now": self.now(), **queries.news_columns(bucket, returns)})
        done_by(cursor, "judge_limits", {"bucket": bucket, "qid": qids})

    def _finish_apart(
        self,
        lease: Lease,
        done: Done,
        until: int,
        moved: list[Retagged],
        record: Record,
        cursor: Cursor,
    ) -> bool:
        place = _place(lease, done.task)
        hosts = {"bucket": lease.bucket, "qid": [lease.qid], "now": self.now()}
        done_by(cursor, "lock_hosts", hosts)
        if not rows_of(cursor, "find_put_off", {**place, "until": until, "now": self.now()}):
            record(cursor, frozenset())
            return False
        self._settle(cursor, lease.bucket, [Return(lease=lease, done=(done,))], moved)
        record(cursor, frozenset([lease.qid]))
        done_by(cursor, "refresh_queues", hosts)
        rows_of(cursor, "refresh_hosts", hosts)
        return True

    def _put_off_further(self, lease: Lease, task: Task, before: int, until: int, cursor: Cursor) -> bool:
        times = {"before": before, "until": until, "now": self.now()}
        return done_by(cursor, "put_off_further", {**_place(lease, task), **times}) == 1

    def _retagged(self, returns: Sequence[Return]) -> list[Retagged]:
        """The URLs whose tags are others now, with their lanes: not to be looked up inside a transaction."""
        number = self._put.tag_sets.number
        return [
            Retagged(each.lease.qid, task.crawl, task.uid, task.tags, done.tags, number(done.tags))
            for each in returns
            for done in each.done
            if done.tags is not None and done.tags != (task := done.task).tags
        ]

    def _sweep_bucket(self, bucket: int, cursor: Cursor) -> int:
        now = self.now()
        sleepers = [row[0] for row in rows_of(cursor, "find_sleepers", {"bucket": bucket, "now": now})]
        if not sleepers:
            return 0
        hosts = {"bucket": bucket, "now": now, "qid": sorted(sleepers)}
        done_by(cursor, "lock_hosts", hosts)
        done_by(cursor, "refresh_queues", hosts)
        return len(rows_of(cursor, "refresh_hosts", hosts))

    def _resume_bucket(self, bucket: int, cursor: Cursor) -> int:
        now = self.now()
        hosts: dict[str, Any] = {"bucket": bucket, "now": now, "qid": find_deferred(cursor, bucket, now)}
        if hosts["qid"]:
            done_by(cursor, "lock_hosts", hosts)
            resume(cursor, hosts)
            done_by(cursor, "refresh_queues", hosts)
            done_by(cursor, "refresh_hosts", hosts)
        return len(hosts["qid"])

    def _figures(self, cursor: Cursor) -> FrontierStats:
        return self._summed([self._bucket_figures(bucket, cursor) for bucket in range(self.buckets)], cursor)

    def _bucket_figures(self, bucket: int, cursor: Cursor) -> BucketFigures:
        interest = self._lease_filter.interest
        query = {
            "bucket": bucket,
            "now": self.now(),
            "require": None if interest is None else list(interest.require),
            "forbid": None if interest is None else list(interest.forbid),
        }
        return rows_of(cursor, "host_figures", query)[0], rows_of(cursor, "crawl_figures", query)

    def _summed(self, found: list[BucketFigures], cursor: Cursor) -> FrontierStats:
        hosts = [row for row, _ in found]
        queues = [row for _, part in found for row in part]
        crawls = cursor.execute("SELECT crawl, name FROM crawl ORDER BY crawl").fetchall()
        return FrontierStats(
            now=self.now(),
            hosts=sum(row[0] for row in hosts),
            leased=sum(row[1] for row in hosts),
            ready=sum(row[2] for row in hosts),
            crawls=tuple(
                queries.crawl_figures(crawl, name, [row for row in queues if row[0] == crawl])
                for crawl, name in crawls
            ),
        )

    def _ask(self, name: str, parameters: dict[str, Any]) -> list[Row]:
        return self._session.transact(lambda cursor: rows_of(cursor, name, parameters), parameters["bucket"])


def _credit(news: dict[str, Any], cursor: Cursor) -> None:
    done_by(cursor, "lock_hosts", news)
    done_by(cursor, "credit_hosts", news)


def _place(lease: Lease, task: Task) -> dict[str, Any]:
    return {"bucket": lease.bucket, "qid": lease.qid, "crawl": task.crawl, "uid": task.uid}

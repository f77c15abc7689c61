"""Gives due URLs to clients that hold single URLs: politeness is the host's, the hold is the URL's."""

import secrets
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec

from tamias.database.columns import Ints, Longs
from tamias.database.connect import Cursor, Session
from tamias.frontier import queries
from tamias.frontier.crawls import Neighbours
from tamias.frontier.keys import bucket_of, host_hash
from tamias.frontier.lease_filter import LeaseFilter, buckets_of
from tamias.frontier.queries import add_statements, ask, done_by, read_buckets, rows_of
from tamias.frontier.service import is_active, is_tamias_at_work
from tamias.model.item import CLASSES

add_statements("tamias.features.urlfrontier", "held.sql")
HOSTS_AT_ONCE = 100
URLS_AT_ONCE = 100
"""Of one host, in one transaction. What a client asks for beyond that comes in further ones."""
_ENDS_OF_A_HOLD = 32
_SHORT_HOLD_MS = 10_000


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a client. None is no limit; no `crawl` is any."""

    hosts: int | None
    per_host: int | None
    hold_ms: int
    crawl: int | None = None
    host: str | None = None
    """Only this queue."""
    unsynced: frozenset[int] = frozenset()
    """Crawls whose holds may be lost in a crash of the database."""

    def held_until(self, now: int) -> int:
        """The end of a hold from now on, which is never early.

        A long one ends up to a 32nd later: holds with one end share a range. A short one ends in time: its
        client may come back at once.
        """
        step = self.hold_ms // _ENDS_OF_A_HOLD if self.hold_ms > _SHORT_HOLD_MS else 1
        return -(-(now + self.hold_ms) // step) * step


class Given(msgspec.Struct, frozen=True):
    """URLs that the client now holds."""

    hosts: dict[int, str]
    """The keys of hosts by their numbers."""
    rows: list[queries.Row]
    """Of `find_due_urls`: each begins with number of the host, crawl, URL, metadata, tags."""


class Holds:
    """Hands out URLs. One for each thread."""

    def __init__(self, session: Session, lease_filter: LeaseFilter | None = None) -> None:
        """Use the section and the interest of the `lease_filter`."""
        self._session = session
        self._lease_filter = lease_filter or LeaseFilter()
        self._buckets: int = read_buckets(session)
        self._section = buckets_of(self._lease_filter.section, self._buckets)
        self._neighbours = Neighbours(session, session.now, LeaseFilter(), self._buckets)
        self._calls = secrets.randbelow(CLASSES * self._buckets)

    def begin(self, wish: Wish) -> "Handing":
        """The state of one client's wish; each of its parts is one transaction."""
        self._calls += 1
        self._neighbours.look()
        count = len(self._section)
        buckets = [self._section[(self._calls + step) % count] for step in range(count)]
        if wish.host is not None:
            bucket = bucket_of(host_hash(wish.host), self._buckets)
            buckets = [bucket] if bucket in self._section else []
        return Handing(
            wish=wish,
            begun_at=self._session.now(),
            rotating=self._calls // count % CLASSES,
            buckets=buckets,
            hosts_left=wish.hosts,
            going_on=[],
            taken=[],
            lanes=self._lanes(),
            keys={},
        )

    def _lanes(self) -> list[int] | None:
        """The lanes that the interest fits; None is all."""
        interest = self._lease_filter.interest
        if interest is None:
            return None
        lists = {"require": list(interest.require), "forbid": list(interest.forbid)}
        return [row[0] for row in ask(self._session, "fitting_lanes", **lists)]

    def next(self, handing: "Handing") -> Given | None:
        """The next part of what a client wished for, held for it from now on; None when there is no more."""
        while handing.may_go_on():
            qids, found, per_host = self._session.transact(partial(self._part, handing))
            if qids:
                handing.note(Counter(row[0] for row in found), per_host)
            else:
                handing.buckets.pop(0)
            if found:
                return Given(handing.keys, found)
        return None

    def _part(self, handing: "Handing", cursor: Cursor) -> tuple[list[int], list[queries.Row], int]:
        """The hosts that were looked at, the URLs that are given, and how many each host might have given."""
        if not is_active(cursor):
            return [], [], 0
        now, per_host = self._session.now(), handing.room()
        where = {
            "bucket": handing.buckets[0],
            "now": now,
            "crawl": handing.wish.crawl,
            "lanes": handing.lanes,
        }
        query = {**where, "asked_at": handing.begun_at}
        chosen = {} if handing.going_on else self._choose(cursor, query, handing)
        handing.keys = chosen or handing.keys
        qids = handing.going_on or sorted(chosen)
        if not qids:
            return [], [], 0
        shared = _shared(cursor, chosen, where)
        if late := [qid for qid in qids if qid in shared.late]:
            done_by(cursor, "put_off_hosts", {**where, "qid": late})
            qids = [qid for qid in qids if qid not in shared.late]
            if not qids:
                return late, [], per_host
        if not chosen:
            done_by(cursor, "lock_hosts", {**where, "qid": Longs(qids)})
        found = self._give(cursor, handing, query, qids, shared)
        return qids, found, per_host

    @staticmethod
    def _give(
        cursor: Cursor, handing: "Handing", query: dict[str, Any], qids: list[int], shared: "_SharedHosts"
    ) -> list[queries.Row]:
        """Hold what is due of these hosts."""
        now, per_host = query["now"], handing.room()
        where = {name: value for name, value in query.items() if name != "asked_at"}
        held = {**where, "qid": Longs(qids), "held_until": handing.wish.held_until(now)}
        found = rows_of(cursor, "find_due_urls", {**held, "per_host": per_host})
        served = Counter(row[0] for row in found)
        singles, ranges = _divided(found, served, per_host)
        if singles:
            done_by(cursor, "hold_urls", {**held, **singles})
        done_by(cursor, "hold_ranges", {**held, **ranges})
        done_by(cursor, "pace_hosts", {**query, "qid": qids, "served": [qid in served for qid in qids]})
        if paced := [host for qid, host in shared.free.items() if qid in served]:
            done_by(cursor, "pace_shared", {**where, "shared": paced})
        elif found and handing.wish.unsynced.issuperset(row[1] for row in found):
            done_by(cursor, "do_not_sync", {})
        return found

    @staticmethod
    def _choose(cursor: Cursor, query: dict[str, Any], handing: "Handing") -> dict[int, str]:
        """Hosts, now locked, and the keys by which all crawls know them."""
        wish = handing.wish
        hosts = HOSTS_AT_ONCE if handing.hosts_left is None else min(HOSTS_AT_ONCE, handing.hosts_left)
        if hosts == 0:
            return {}
        query = {**query, "most_held": wish.per_host}
        if wish.host is not None:
            found = rows_of(cursor, "choose_host", {**query, "qid": host_hash(wish.host)})
        else:
            probes = queries.probes(handing.rotating, hosts)
            found = rows_of(cursor, "choose_hosts", {**query, **probes, "hosts": hosts})
        return dict(found)


class Handing(msgspec.Struct):
    """The progress with a client's wish. A host is served once: what is ready only later is for others."""

    wish: Wish
    begun_at: int
    rotating: int
    buckets: list[int]
    hosts_left: int | None
    going_on: list[int]
    """Hosts of which more is wished for than one transaction gives."""
    taken: list[int]
    lanes: list[int] | None
    keys: dict[int, str]
    """Of the hosts that were chosen last, as clients know them."""

    def beside(self) -> "Handing":
        """A second one for the same wish without a limit of hosts: each host is given by one of them."""
        half = len(self.buckets) // 2
        buckets = self.buckets[half:] + self.buckets[:half]
        return msgspec.structs.replace(self, buckets=buckets, going_on=[], taken=[])

    def may_go_on(self) -> bool:
        """Return whether there may be more for this client."""
        return bool(self.buckets) and (self.hosts_left != 0 or bool(self.going_on))

    def room(self) -> int:
        """Return how many URLs of each host to take now."""
        if self.wish.per_host is None:
            return URLS_AT_ONCE
        return min(URLS_AT_ONCE, self.wish.per_host - sum(self.taken))

    def note(self, counts: dict[int, int], per_host: int) -> None:
        """Note the counts of a part, to know which hosts go on and how many may follow."""
        if not self.going_on and self.hosts_left is not None:
            self.hosts_left -= len(counts)
        self.taken.append(per_host)
        more = self.wish.per_host is None or sum(self.taken) < self.wish.per_host
        self.going_on = sorted(qid for qid, count in counts.items() if count == per_host) if more else []
        if not self.going_on:
            self.taken = []


class _SharedHosts(msgspec.Struct, frozen=True):
    """The hosts that queues with a delay of their own share with Tamias's own crawls."""

    free: dict[int, int] = {}
    """Hosts that may be asked now, by the hosts of the queues."""
    late: frozenset[int] = frozenset()
    """Queues whose hosts Tamias works on, or has just asked."""


def _shared(cursor: Cursor, chosen: dict[int, str], where: dict[str, Any]) -> _SharedHosts:
    """Return the shared hosts, so that no client asks a host faster than Tamias itself may."""
    hosts = {qid: host for qid, key in chosen.items() if (host := host_hash(key)) != qid}
    if not hosts or not is_tamias_at_work(cursor):
        return _SharedHosts()
    visited = _first_column(cursor, "asked_by_tamias", where, hosts.values())
    hosts = {qid: host for qid, host in hosts.items() if host in visited}
    # A host whose own row was chosen too is given out by that.
    others = [host for host in hosts.values() if host not in chosen]
    unserved = _first_column(cursor, "lock_free", where, others)
    free: dict[int, int] = {}
    for qid, host in hosts.items():
        if host in unserved:
            unserved.remove(host)
            free[qid] = host
    late = {qid: host for qid, host in hosts.items() if qid not in free}
    if waiting := _first_column(cursor, "lock_waiting", where, late.values()):
        done_by(cursor, "leave_gap", {**where, "shared": list(waiting)})
    return _SharedHosts(free=free, late=frozenset(late))


def _first_column(cursor: Cursor, name: str, where: dict[str, Any], shared: Iterable[int]) -> set[int]:
    return {row[0] for row in rows_of(cursor, name, {**where, "shared": list(shared)})}


def _divided(
    found: list[queries.Row], counts: dict[int, int], per_host: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide found URLs into single URLs (empty without any) and ranges of their queues, as columns to hold.

    A queue's range is what is due by a time, so it ends before those of which only some were found.
    """
    latest = {row[0]: row[7] for row in found}  # of each host, in the order of their due times
    singles, ranges = list[queries.Row](), dict[tuple[int, int, int], int]()
    for row in found:
        qid, crawl, _, _, _, lane, _, due, is_free = row
        if is_free and (counts[qid] < per_host or due < latest[qid]):
            ranges[qid, crawl, lane] = due
        else:
            singles.append(row)
    urls = {
        "url_qid": Longs([row[0] for row in singles]),
        "url_crawl": Ints([row[1] for row in singles]),
        "uid": Longs([row[6] for row in singles]),
    }
    return urls if singles else {}, {
        "range_qid": Longs([qid for qid, _, _ in ranges]),
        "range_crawl": Ints([crawl for _, crawl, _ in ranges]),
        "range_lane": Ints([lane for _, _, lane in ranges]),
        "held_to": Longs(ranges.values()),
    }

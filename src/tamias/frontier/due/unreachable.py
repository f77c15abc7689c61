"""Unreachable places of hosts in the database: read with a lease, written with a finish."""

from collections.abc import Iterable, Sequence

import msgspec

from tamias.database.columns import Bools, Longs, Shorts, Texts, storable
from tamias.database.connect import Cursor, Session
from tamias.frontier.queries import done_by, rows_of
from tamias.model.lease import Lease, Return, Unreachable


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
    for qid, authority, since, tries, next_at, reason, given_up in rows_of(cursor, "read_unreachable", query):
        place = Unreachable(
            authority=authority, since=since, tries=tries, next_at=next_at, reason=reason, given_up=given_up
        )
        known.setdefault(qid, []).append(place)
    if not known:
        return leases
    return [msgspec.structs.replace(lease, unreachable=tuple(known.get(lease.qid, ()))) for lease in leases]


def write_unreachable(cursor: Cursor, bucket: int, returns: Iterable[Return]) -> None:
    """Store unreachable places from the returns; hosts are locked, and their queues refreshed afterwards."""
    returns = list(returns)
    if reached := sorted((each.lease.qid, place) for each in returns for place in each.reached):
        parameters = {
            "bucket": bucket,
            "qid": Longs([qid for qid, _ in reached]),
            "authority": Texts([name for _, name in reached]),
        }
        done_by(cursor, "clear_reached", parameters)
    lost = sorted(
        ((each.lease.qid, place) for each in returns for place in each.unreachable),
        key=lambda pair: (pair[0], pair[1].authority),
    )
    if lost:
        places = _columns(bucket, lost)
        done_by(cursor, "write_unreachable", places)
        done_by(cursor, "defer_urls", places)
        if any(place.given_up for _, place in lost):
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


def _columns(bucket: int, lost: Sequence[tuple[int, Unreachable]]) -> dict[str, object]:
    return {
        "bucket": bucket,
        "qid": Longs([qid for qid, _ in lost]),
        "authority": Texts([place.authority for _, place in lost]),
        "since": Longs([place.since for _, place in lost]),
        "tries": Shorts([min(place.tries, 30_000) for _, place in lost]),
        "next_at": Longs([place.next_at for _, place in lost]),
        "reason": Texts([storable(place.reason) for _, place in lost]),
        "given_up": Bools([place.given_up for _, place in lost]),
    }

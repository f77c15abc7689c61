"""What a clock that was years ahead has left: leases and visits in the far future, and how to mend them."""

from functools import partial
from typing import Any, Final, NamedTuple

from tamias.database.columns import Longs
from tamias.database.connect import Cursor, Session
from tamias.frontier.queries import done_by, read_buckets, refresh, rows_of

_DAY_MS: Final = 86_400_000
_LONGEST_WAIT_MS: Final = 2 * _DAY_MS
"""No lease and no wait of a host is as long."""


class FarTimes(NamedTuple):
    """How many times are too far away to be right."""

    hosts: int
    urls: int


def count_far_times(session: Session, longest: float) -> FarTimes:
    """Return how many there are, where a visit may be so many seconds away."""
    hosts = urls = 0
    for bucket, times in _buckets(session, longest):
        [(some, visits)] = session.transact(partial(_rows, name="count_far_times", times=times), bucket)
        hosts, urls = hosts + some, urls + visits
    return FarTimes(hosts, urls)


def mend_far_times(session: Session, longest: float) -> int:
    """End such leases and waits, and make such URLs due now; return on how many hosts."""
    return sum(
        session.transact(partial(_mend, times=times), bucket) for bucket, times in _buckets(session, longest)
    )


def _buckets(session: Session, longest: float) -> list[tuple[int, dict[str, Any]]]:
    now = session.now()
    times = {"now": now, "soon": now + _LONGEST_WAIT_MS, "late": now + int(longest * 1000) + _LONGEST_WAIT_MS}
    return [(bucket, {"bucket": bucket, **times}) for bucket in range(read_buckets(session))]


def _rows(cursor: Cursor, name: str, times: dict[str, Any]) -> list[tuple[Any, ...]]:
    return rows_of(cursor, name, times)


def _mend(cursor: Cursor, times: dict[str, Any]) -> int:
    found = sorted(row[0] for row in rows_of(cursor, "find_far_hosts", times))
    if found:
        hosts = {**times, "qid": Longs(found)}
        for name in ("lock_hosts", "end_far_leases", "advance_far_visits"):
            done_by(cursor, name, hosts)
        refresh(cursor, hosts)
    return len(found)

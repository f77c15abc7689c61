"""What holds for all instances of the frontier service: is it active, the usual delay, who is there."""

from functools import partial

from tamias.database.connect import Cursor, Session
from tamias.frontier.queries import count_of, done_by, rows_of

_ALIVE_MS = 60_000
_HOSTS_AT_ONCE = 1000
_FIRST = -(2**63)

WATCH = 2
"""The archive's own crawl: its URLs are given only to who names it."""
DEFAULT_CRAWL = "DEFAULT"
"""The name by which clients know the crawl that has none."""


def is_active(cursor: Cursor) -> bool:
    """Whether clients get URLs at all."""
    return bool(rows_of(cursor, "service_row", {})[0][0])


def usual_delay(cursor: Cursor) -> int:
    """Milliseconds between two visits to a host that has no delay of its own."""
    return int(rows_of(cursor, "service_row", {})[0][1])


def set_active(session: Session, active: bool) -> None:
    """All instances obey from their next answer on."""
    session.transact(lambda cursor: done_by(cursor, "set_active", {"active": active}))


def set_usual_delay(session: Session, delay_ms: int) -> None:
    """Also for the hosts that are known and have no delay of their own, some at a time."""
    buckets = session.transact(lambda cursor: count_of(cursor, "read_buckets", {}))
    usual = session.transact(usual_delay)
    session.transact(lambda cursor: done_by(cursor, "set_usual_delay", {"delay_ms": delay_ms}))
    for bucket in range(buckets):
        after = _FIRST
        while qids := session.transact(partial(_undelayed, bucket, after, usual)):
            session.transact(partial(_delay, bucket, qids, delay_ms))
            after = qids[-1]


def crawl_number(session: Session, name: str) -> int:
    """The crawl of a client's name, made where there is none."""
    if name.upper() == DEFAULT_CRAWL or not name:
        return 1
    session.transact(lambda cursor: done_by(cursor, "make_crawl", {"name": name}))
    return session.transact(lambda cursor: count_of(cursor, "find_crawl", {"name": name}))


def found_crawl(session: Session, name: str) -> int | None:
    """The crawl of a client's name; None where there is none."""
    if name.upper() == DEFAULT_CRAWL or not name:
        return 1
    found = session.transact(lambda cursor: rows_of(cursor, "find_crawl", {"name": name}))
    return found[0][0] if found else None


def crawl_names(session: Session) -> dict[int, str]:
    """All crawls by their numbers, as clients name them."""
    named = session.transact(lambda cursor: rows_of(cursor, "list_crawls", {}))
    return {crawl: DEFAULT_CRAWL if crawl == 1 else name for crawl, name in named}


def announce(session: Session, address: str) -> None:
    """An instance says that it is alive; to be repeated."""
    word = {"address": address, "now": session.now()}
    session.transact(lambda cursor: done_by(cursor, "announce_node", word))


def leave(session: Session, address: str) -> None:
    """An instance stops."""
    session.transact(lambda cursor: done_by(cursor, "remove_node", {"address": address}))


def nodes(session: Session) -> list[str]:
    """The instances that said so within the last minute."""
    since = {"since": session.now() - _ALIVE_MS}
    return [row[0] for row in session.transact(lambda cursor: rows_of(cursor, "list_nodes", since))]


def _undelayed(bucket: int, after: int, usual: int, cursor: Cursor) -> list[int]:
    asked = {"bucket": bucket, "after": after, "usual_ms": usual, "limit": _HOSTS_AT_ONCE}
    return [row[0] for row in rows_of(cursor, "find_undelayed", asked)]


def _delay(bucket: int, qids: list[int], delay_ms: int, cursor: Cursor) -> None:
    hosts = {"bucket": bucket, "qid": qids, "delay_ms": delay_ms}
    done_by(cursor, "lock_hosts", hosts)
    done_by(cursor, "set_delays", hosts)

"""The shared state of all instances of the frontier service: active, usual delay, instances."""

from functools import partial

import msgspec

from tamias.database.citus import is_citus
from tamias.database.connect import Cursor, Session
from tamias.frontier.keys import own_queue
from tamias.frontier.queries import ask, done_by, read_buckets, rows_of, tell
from tamias.model import item

_ALIVE_MS = 60_000
_HOSTS_AT_ONCE = 1000
_FIRST = -(2**63)

WATCH = item.WATCH
"""The archive's own crawl: its URLs are given only to who names it."""
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

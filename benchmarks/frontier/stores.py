"""The two contestants behind one face: the frontier, and the one-table queue that one would write first."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Outcome
from tamias.model.item import NEVER, Item
from tamias.model.lease import Done, Lease, Return

HOSTS, PER_HOST, LEASE_SECONDS = 10, 10, 60.0
_SQL = statements("benchmarks.frontier", "naive.sql")


class Held(msgspec.Struct):
    """What a client holds after a lease: the hosts, the URLs, and what the store needs to finish them."""

    hosts: list[str]
    urls: int
    proof: Any


class Store(Protocol):
    """What is timed."""

    def put(self, items: Sequence[Item]) -> int:
        """Makes items known; returns how many were new."""
        ...

    def lease(self) -> Held:
        """The best URLs of some hosts."""
        ...

    def finish(self, held: Held) -> None:
        """The URLs are visited and the hosts are free."""
        ...


class FrontierStore:
    """The frontier of `tamias.frontier.postgres`."""

    def __init__(self, session: Session) -> None:
        self._frontier = PostgresFrontier(session, same_url=str.__eq__)

    def put(self, items: Sequence[Item]) -> int:
        return self._frontier.put(items).new

    def lease(self) -> Held:
        leases = self._frontier.lease(HOSTS, PER_HOST, LEASE_SECONDS)
        return Held([lease.host for lease in leases], sum(len(lease.tasks) for lease in leases), leases)

    def finish(self, held: Held) -> None:
        self._frontier.finish([Return(lease=lease, done=all_done(lease)) for lease in held.proof])


class NaiveStore:
    """One table `(url, host, due, score)`; its statements stand in `naive.sql`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def put(self, items: Sequence[Item]) -> int:
        ordered = sorted(items, key=lambda item: item.url)
        new = {
            "now": self._session.now(),
            "url": [item.url for item in ordered],
            "host": [item.host for item in ordered],
            "score": [item.score for item in ordered],
        }
        return self._session.transact(lambda cursor: _do(cursor, "put", new).rowcount)

    def lease(self) -> Held:
        now = self._session.now()
        asked = {
            "now": now,
            "lease_end": now + int(LEASE_SECONDS * 1000),
            "hosts": HOSTS,
            "per_host": PER_HOST,
        }
        rows = self._session.transact(lambda cursor: _do(cursor, "lease", asked).fetchall())
        return Held(sorted({row[1] for row in rows}), len(rows), sorted(row[0] for row in rows))

    def finish(self, held: Held) -> None:
        self._session.transact(lambda cursor: _do(cursor, "finish", {"url": held.proof}))


def make_naive(cursor: Cursor) -> None:
    """Makes the naive table, with the rows that the frontier holds now."""
    cursor.execute("DROP TABLE IF EXISTS naive")
    for name in ("make_table", "fill_table", "make_index"):
        cursor.execute(_SQL[name].text)


STORES: dict[str, type[FrontierStore] | type[NaiveStore]] = {"frontier": FrontierStore, "naive": NaiveStore}


def all_done(lease: Lease) -> tuple[Done, ...]:
    """What a worker tells that has visited all of a lease."""
    return tuple(Done(task=task, outcome=Outcome.OK, due=NEVER) for task in lease.tasks)


def _do(cursor: Cursor, name: str, parameters: dict[str, Any]) -> Cursor:
    return cursor.execute(_SQL[name].text, parameters)

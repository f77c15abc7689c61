"""The two contestants, the frontier and the obvious one-table queue, and the URLs that they hold."""

import json
import os
import signal
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import psycopg

from tamias.database.connect import Cursor, Session
from tamias.database.disk import alone
from tamias.database.sql import statements
from tamias.features.embedded.keeper import Running
from tamias.frontier.keys import hash64, host_hash
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Outcome
from tamias.model.errors import DatabaseError
from tamias.model.item import NEVER, Item
from tamias.model.lease import Done, Lease, Return

KNOWN_SHARE = 0.7
_MASK = 2**64 - 1


class Workload:
    """URLs of about 73 bytes on hosts whose sizes follow Zipf's law (s = 1), with random scores."""

    def __init__(self, hosts: int) -> None:
        self.hosts = hosts
        self._bounds = list(accumulate(1 / rank for rank in range(1, hosts + 1)))

    def host(self, number: int) -> int:
        """The host that the URL of this number is on."""
        return bisect(self._bounds, _chance(number, 1) * self._bounds[-1])

    def score(self, number: int) -> float:
        """Mostly low, sometimes high: all priority classes occur."""
        return _chance(number, 2) ** 3

    def item(self, number: int) -> Item:
        """The URL of this number as it is put into a frontier."""
        host = self.host(number)
        url = url_of(host, number)
        return Item(url=url, key=url, host=host_key(host), score=self.score(number))

    def batches(self, size: int, known: int, client: int) -> Iterator[list[Item]]:
        """Batches as links come in: 70 % of the `known` first URLs, the rest new and the client's own."""
        random = Random(client)
        fresh = known + (client + 1) * 10_000_000
        old = int(size * KNOWN_SHARE)
        while True:
            numbers = [random.randrange(known) for _ in range(old)] + list(range(fresh, fresh + size - old))
            fresh += size - old
            random.shuffle(numbers)
            yield [self.item(number) for number in numbers]


def host_key(host: int) -> str:
    """The key of a host's queue, its pay-level domain."""
    return f"host{host:05d}.example"


def url_of(host: int, number: int) -> str:
    """The text of a URL, 73 bytes.

    >>> len(url_of(17, 4_000_000))
    73
    """
    return f"https://data.{host_key(host)}/catalogue/datasets/{number:09d}/metadata.json"


def _chance(number: int, stream: int) -> float:
    """A number from 0 to 1 that looks random: an integer mixed by multiplications and shifts."""
    mixed = (number * 0x9E3779B97F4A7C15 + stream * 0xD1B54A32D192ED03) & _MASK
    mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ mixed >> 31) / 2**64


_CHUNK = 20_000
_STOP_SECONDS = 60
_COPY = "COPY url (bucket, qid, crawl, uid, due, first_seen, score, depth, url) FROM STDIN"
_HOSTS = """
INSERT INTO host (bucket, qid, ready_at, class, hkey)
SELECT 0, named.qid, queue.next_due, queue.class, named.hkey
FROM unnest(%b::int8[], %b::text[]) AS named (qid, hkey)
JOIN queue ON queue.bucket = 0 AND queue.qid = named.qid
"""
_QUEUES = """
INSERT INTO queue (bucket, qid, crawl, next_due, class, known, open)
SELECT 0, qid, 1, min(due), least(7, floor(8 * max(score)))::int2, count(*), count(*) FROM url GROUP BY qid
"""
_ROWS = """
SELECT url.qid, url.uid, url.due <= url.first_seen, url.score, url.status, url.fails, url.depth, url.url,
       url.etag, url.last_modified, url.tags, queue.next_due = url.due, queue.class, queue.active,
       queue.known, queue.open, host.ready_at = url.due, host.class, host.not_before, host.blocked_until,
       host.delay_ms, host.token, host.lease_end, host.hkey
FROM url JOIN queue USING (bucket, qid, crawl) JOIN host USING (bucket, qid) ORDER BY url.qid, url.uid
"""


def load(session: Session, workload: Workload, urls: int) -> None:
    """Empties the frontier and fills it with the first URLs, all due."""
    session.transact(lambda cursor: _fill(cursor, workload, urls))


def check_load(session: Session, frontier: PostgresFrontier, workload: Workload, urls: int = 1000) -> None:
    """Raises unless loading and putting the same URLs leave the same rows."""
    session.transact(_empty)
    frontier.put([workload.item(number) for number in range(urls)])
    put = session.transact(_rows)
    load(session, workload, urls)
    if session.transact(_rows) != put:
        raise DatabaseError("the benchmark loads other rows than put writes; its figures would mean nothing")


def settle(address: str, data: Path) -> None:
    """Statistics, visibility and a server that starts again: the load's aftermath is not measured."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
    folder = data / "pg"
    running = Running(**json.loads((folder / "running.json").read_bytes()))
    os.kill(running.keeper_pid, signal.SIGTERM)
    with alone(folder / "keeper.lock", _STOP_SECONDS):
        pass  # the next statement starts another


def _fill(cursor: Cursor, workload: Workload, urls: int) -> None:
    _empty(cursor)
    cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8")
    row = cursor.fetchone()
    assert row is not None
    with cursor.copy(_COPY) as copy:
        for chunk in _lines(workload, urls, row[0]):
            copy.write(chunk)
    cursor.execute(_QUEUES)
    keys = [host_key(host) for host in range(workload.hosts)]
    cursor.execute(_HOSTS, [[host_hash(key) for key in keys], keys])


def _lines(workload: Workload, urls: int, now: int) -> Iterator[str]:
    for start in range(0, urls, _CHUNK):
        yield "".join(_line(workload, number, now) for number in range(start, min(urls, start + _CHUNK)))


def _line(workload: Workload, number: int, now: int) -> str:
    host = workload.host(number)
    url = url_of(host, number)
    numbers = f"0\t{host_hash(host_key(host))}\t1\t{hash64(url)}\t{now}\t{now}"
    return f"{numbers}\t{workload.score(number)!r}\t0\t{url}\n"


def _empty(cursor: Cursor) -> None:
    cursor.execute("TRUNCATE host, queue, url")


def _rows(cursor: Cursor) -> list[tuple[Any, ...]]:
    return cursor.execute(_ROWS).fetchall()


HOSTS, PER_HOST, LEASE_SECONDS = 10, 10, 60.0
_SQL = statements("benchmarks.frontier", "naive.sql")


class Held(msgspec.Struct):
    """What a client holds after a lease: the hosts, the URLs, and what the store needs to finish them."""

    hosts: list[str]
    urls: int
    proof: Any


class FrontierStore:
    """The frontier of `tamias.frontier.postgres`."""

    def __init__(self, session: Session) -> None:
        self._frontier = PostgresFrontier(session, same_url=str.__eq__)

    def put(self, items: Sequence[Item]) -> int:
        return self._frontier.put(items)

    def lease(self) -> Held:
        leases = self._frontier.lease(HOSTS, PER_HOST, LEASE_SECONDS)
        return Held([lease.host for lease in leases], sum(len(lease.tasks) for lease in leases), leases)

    def finish(self, held: Held) -> None:
        self._frontier.finish([finished(lease) for lease in held.proof])


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


Store = FrontierStore | NaiveStore
STORES: dict[str, type[FrontierStore] | type[NaiveStore]] = {"frontier": FrontierStore, "naive": NaiveStore}


def finished(lease: Lease) -> Return:
    """What a worker says that has visited all of a lease."""
    done = (Done(task=task, outcome=Outcome.OK, due=NEVER) for task in lease.tasks)
    return Return(lease=lease, done=tuple(done))


def _do(cursor: Cursor, name: str, parameters: dict[str, Any]) -> Cursor:
    return cursor.execute(_SQL[name].text, parameters)

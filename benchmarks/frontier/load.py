"""Millions of URLs into the tables at once, row by row the same as `put` would have written them."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.frontier.workload import Workload, host_key, url_of
from tamias.database.connect import Cursor, Session
from tamias.database.embedded.keeper import Running
from tamias.database.locks import alone
from tamias.frontier.keys import hash64, host_hash
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.errors import DatabaseError

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

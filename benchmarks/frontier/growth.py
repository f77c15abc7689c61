"""What a lease and a finish take in a frontier of many million URLs, before and after most of it is finished.

The rows are made by the server itself, in one transaction that writes no log, and indexed afterwards.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from benchmarks.frontier.load import settle
from benchmarks.frontier.report import Percentiles, times
from benchmarks.frontier.stores import all_done
from benchmarks.frontier.workload import host_key
from benchmarks.measuring.workspace import workspace
from tamias.database.connect import Database, Session
from tamias.frontier.keys import host_hash
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.lease import Return

SIZES = (1_000_000, 20_000_000)
_INSERT_HOSTS = """
INSERT INTO host (bucket, qid, ready_at, class, hkey, delay_ms)
SELECT 0, numbered.qid, queue.next_due, queue.class, numbered.hkey, 0
FROM numbered JOIN queue ON queue.bucket = 0 AND queue.qid = numbered.qid
"""
_QUEUES = """
INSERT INTO queue (bucket, qid, crawl, next_due, class, known, open)
SELECT 0, qid, 1, min(due), least(7, floor(8 * max(score)))::int2, count(*), count(*) FROM url GROUP BY qid
"""
# Hosts whose sizes follow Zipf's law: the logarithm of their rank is evenly spread.
_URLS = """
INSERT INTO url (bucket, qid, crawl, uid, due, first_seen, score, depth, url)
SELECT 0, numbered.qid, 1, hashint8extended(chance.n, 1), {now} - {urls} + chance.n, {now},
       power(chance.score, 3), 0, 'https://data.' || numbered.hkey || '/catalogue/datasets/'
       || lpad(chance.n::text, 9, '0') || '/metadata.json'
FROM (SELECT n, power({hosts}::float8, (hashint8extended(n, 2) & 4294967295) / 4294967296.0) AS host,
             (hashint8extended(n, 3) & 4294967295) / 4294967296.0 AS score
      FROM generate_series(1::int8, {urls}::int8) AS n) AS chance
JOIN numbered ON numbered.host = floor(chance.host)::int8 - 1
"""
# What finishing leaves of the queues, which the updates did not tell.
_DUE_NOW = """
WITH first AS (
    UPDATE queue SET next_due = coalesce(early.due, 9223372036854775807)
    FROM (SELECT queue.qid, (SELECT min(url.due) FROM url WHERE url.bucket = 0 AND url.qid = queue.qid
              AND url.crawl = 1 AND url.lane = 0 AND url.due < 9223372036854775807) AS due
          FROM queue) AS early
    WHERE queue.bucket = 0 AND queue.qid = early.qid RETURNING queue.qid, queue.next_due)
UPDATE host SET ready_at = first.next_due FROM first WHERE host.bucket = 0 AND host.qid = first.qid
"""
_PARTS = 10
_SIZES = """
SELECT relname, pg_relation_size(oid) FROM pg_class
WHERE relnamespace = 'tamias'::regnamespace AND relname IN ('url', 'url_pkey', 'url_due', 'host', 'queue')
"""


class GrowthFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A frontier of one size."""

    urls: int
    hosts: int
    finished: int
    """URLs that were finished before the second measurement."""
    lease: tuple[Percentiles, Percentiles]
    """Ten hosts with ten URLs, before and after."""
    finish: tuple[Percentiles, Percentiles]
    """Of these hundred URLs."""
    processor: tuple[Percentiles, Percentiles]
    """Of the server for such a lease: other work on the machine counts less than in the time that passed."""
    sizes: tuple[dict[str, int], dict[str, int]]
    """Bytes of tables and indexes."""
    hot: float
    """The share of finishing updates that touched no index."""


def run(
    sizes: Sequence[int], hosts: int, finished: int, out: Callable[[str], None], data: Path | None = None,
    rounds: int = 500,
) -> dict[str, Any]:  # fmt: skip
    """Fills a frontier of each size, and measures it before and after so many URLs are finished."""
    out(
        f"{'URLs':>12}{'finished':>12}{'lease p50':>11}{'p99':>8}{'CPU':>8}{'finish p50':>12}{'p99':>8}"
        f"{'bytes/URL':>11}{'HOT':>6}"
    )
    measured = []
    for urls in sizes:
        with workspace(data) as folder:
            measured.append(_measure(folder, urls, hosts, min(finished, urls // 2), rounds, out))
    first, last = measured[0], measured[-1]
    ratio = last.processor[1].p50 / first.processor[1].p50
    out(f"a lease at {last.urls:,} URLs takes {ratio:.2f} times the processor time of one at {first.urls:,}")
    return {"ok": True, "ratio": ratio, "figures": [msgspec.to_builtins(each) for each in measured]}


def _measure(
    folder: Path, urls: int, hosts: int, finished: int, rounds: int, out: Callable[[str], None]
) -> GrowthFigures:
    with closing(Database(folder)) as database:
        assert database.embedded is not None
        address = database.embedded.address()
        with closing(database.session()) as session:
            session.now()
        conf = next((folder / "pg").glob("[0-9]*")) / "postgresql.conf"
        with conf.open("a", encoding="ascii") as settings:
            settings.write("wal_level = minimal\nmax_wal_senders = 0\n")
        settle(address, folder)
    with closing(Database(folder)) as database:
        assert database.embedded is not None
        address = database.embedded.address()
        _fill(address, urls, hosts)
        settle(address, folder)
    with closing(Database(folder)) as database, closing(database.session()) as session:
        assert database.embedded is not None
        frontier = PostgresFrontier(session, same_url=str.__eq__)
        parts = []
        for done in (0, finished):
            _finish(database.embedded.address(), urls, done)
            parts.append(_rounds(session, frontier, rounds, database.embedded.address()))
            lease, processor, finish, sizes = parts[-1]
            hot = _hot(session)
            out(
                f"{urls:>12,}{done:>12,}{lease.p50:>11.2f}{lease.p99:>8.2f}{processor.p50:>8.2f}"
                f"{finish.p50:>12.2f}{finish.p99:>8.2f}{sum(sizes.values()) / urls:>11.0f}{hot:>6.1%}"
            )
        before, after = parts
        return GrowthFigures(
            urls=urls, hosts=hosts, finished=finished, lease=(before[0], after[0]),
            processor=(before[1], after[1]), finish=(before[2], after[2]), sizes=(before[3], after[3]),
            hot=hot,
        )  # fmt: skip


def _fill(address: str, urls: int, hosts: int) -> None:
    with psycopg.connect(address, options="-c search_path=tamias") as connection:
        now = int(time.time() * 1000)
        connection.execute("SET maintenance_work_mem = '1GB'")
        connection.execute("TRUNCATE host, queue, url")
        connection.execute("CREATE TEMP TABLE numbered (host int8, qid int8, hkey text)")
        with connection.cursor().copy("COPY numbered FROM STDIN") as copy:
            for host in range(hosts):
                copy.write_row((host, host_hash(host_key(host)), host_key(host)))
        connection.execute("CREATE UNIQUE INDEX ON numbered (host)")
        connection.execute("ANALYZE numbered")
        due = _one(connection, "SELECT pg_get_indexdef('url_due'::regclass)")
        key = _one(
            connection, "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'url_pkey'"
        )
        connection.execute("DROP INDEX url_due")
        connection.execute("ALTER TABLE url DROP CONSTRAINT url_pkey")
        connection.execute(_URLS.format(urls=urls, hosts=hosts, now=now).encode())
        connection.execute(f"ALTER TABLE url ADD CONSTRAINT url_pkey {key}".encode())
        connection.execute(due.encode())
        connection.execute(_QUEUES)
        connection.execute(_INSERT_HOSTS)


def _finish(address: str, urls: int, finished: int) -> None:
    """As `settle` writes it, but many rows at once: a lease for each ten of them would take hours."""
    share = finished / urls
    with psycopg.connect(address, options="-c search_path=tamias", autocommit=True) as connection:
        for part in range(_PARTS if finished else 0):
            low = (part << 32) // _PARTS
            high = int(low + (share * (1 << 32)) / _PARTS)
            connection.execute(
                "UPDATE url SET due = 9223372036854775807, status = 1, etag = 'W/\"17\"'"
                " WHERE bucket = 0 AND due < 9223372036854775807 AND uid & 4294967295 BETWEEN %s AND %s",
                [low, high],
            )
        connection.execute("VACUUM (ANALYZE) url")
        connection.execute(_DUE_NOW)


def _rounds(
    session: Session, frontier: PostgresFrontier, rounds: int, address: str
) -> tuple[Percentiles, Percentiles, Percentiles, dict[str, int]]:
    backend = session.transact(lambda cursor: cursor.connection.info.backend_pid)
    leases, spent, finishes = [], [], []
    for _ in range(rounds):
        busy = _processor(backend)
        began = time.perf_counter()
        held = frontier.lease(10, 10, 60.0)
        leased = time.perf_counter()
        spent.append(_processor(backend) - busy)
        frontier.finish([Return(lease=lease, done=all_done(lease)) for lease in held])
        leases.append(leased - began)
        finishes.append(time.perf_counter() - leased)
    with psycopg.connect(address) as connection:
        sizes = {name: int(size) for name, size in connection.execute(_SIZES).fetchall()}
    return times(leases), times(spent), times(finishes), sizes


def _hot(session: Session) -> float:
    session.transact(lambda cursor: cursor.execute("SELECT pg_stat_force_next_flush()"))
    row = session.transact(
        lambda cursor: cursor.execute(
            "SELECT n_tup_hot_upd::float8 / greatest(1, n_tup_upd) FROM pg_stat_user_tables"
            " WHERE relname = 'url'"
        ).fetchone()
    )
    assert row is not None
    return float(row[0])


def _processor(backend: int) -> float:
    """Seconds that the process of the server has been running."""
    return int(Path(f"/proc/{backend}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


def _one(connection: psycopg.Connection[Any], statement: str) -> str:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return str(row[0])

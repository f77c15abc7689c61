"""What a finished URL costs the table of URLs, in the shapes that the table could have.

An update that changes an indexed column, or one that a partial index asks for, is never "heap-only" (HOT):
it writes a row and an entry of every index that still holds the row. `due` is such a column. They differ
in the room that pages keep (`fillfactor`) and in whether due times stand in a table of their own.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from benchmarks.frontier.report import times
from benchmarks.measuring.workspace import workspace
from tamias.database.connect import Database

_COLUMNS = """
    bucket int2 NOT NULL, qid int8 NOT NULL, crawl int4 NOT NULL, uid int8 NOT NULL, due int8 NOT NULL,
    first_seen int8 NOT NULL, score real NOT NULL, status int2 NOT NULL DEFAULT 0,
    url text COLLATE "C" NOT NULL, etag text, PRIMARY KEY (bucket, qid, crawl, uid)"""
_DUE = "CREATE INDEX ON shape (bucket, qid, crawl, due) WHERE due < 9223372036854775807"
_SPLIT = (
    "CREATE TABLE waiting (bucket int2, qid int8, crawl int4, due int8, uid int8, score real,"
    " PRIMARY KEY (bucket, qid, crawl, due, uid))"
)
_WAITING = "SELECT bucket, qid, crawl, due, uid, score"
_BATCHES = 50
_AT_ONCE = 500
"""Hosts, fewer than there are: none is held twice at a time."""
_ROWS = """
    SELECT 0, n % {hosts}, 1, hashint8extended(n, 1), 1000 + n / {hosts}, 1, random(), 0,
           'https://data.host' || n % {hosts} || '.example/catalogue/datasets/' || n || '/metadata.json', NULL
    FROM generate_series({first}::int8, {last}::int8) AS n"""
_LEASE = {
    False: "SELECT uid, url FROM shape WHERE bucket = 0 AND qid = %b AND crawl = 1"
    " AND due < 9223372036854775807 ORDER BY due LIMIT 20",
    True: "SELECT shape.uid, shape.url FROM (SELECT waiting.* FROM waiting WHERE bucket = 0 AND qid = %b"
    " AND crawl = 1 ORDER BY due LIMIT 20) AS early JOIN shape USING (bucket, qid, crawl, uid)",
}
_FINISH = {
    False: "UPDATE shape SET due = 9223372036854775807, status = 1, etag = 'W/\"17\"'"
    " WHERE bucket = 0 AND qid = %b AND crawl = 1 AND uid = ANY(%b)",
    True: "WITH gone AS (DELETE FROM waiting WHERE bucket = 0 AND qid = %b AND crawl = 1 AND uid = ANY(%b)"
    " RETURNING qid, uid) UPDATE shape SET status = 1, etag = 'W/\"17\"' FROM gone WHERE bucket = 0"
    " AND shape.qid = gone.qid AND crawl = 1 AND shape.uid = gone.uid",
}


class TableShape(msgspec.Struct, frozen=True):
    """One way to keep URLs."""

    name: str
    fillfactor: int
    split: bool = False


SHAPES = (
    TableShape("one table, fillfactor 90", 90),
    TableShape("one table, fillfactor 70", 70),
    TableShape("due times apart, fillfactor 90", 90, split=True),
)


class ShapeFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What one shape cost."""

    name: str
    put_ms: float
    """Processor time of the server for a thousand new URLs."""
    lease_ms: float
    """The first twenty of a host, median, before anything was finished."""
    lease_after_ms: float
    """The same afterwards."""
    finish_ms: float
    """Processor time of the server for a hundred URLs, ten of a host at a time."""
    hot: float
    """The share of updates that touched no index."""
    wal: float
    """Bytes of log for each URL that was finished."""
    bytes_before: float
    """For each URL, with indexes."""
    bytes_after: float


def run(
    urls: int, finished: int, hosts: int, out: Callable[[str], None], shapes: Sequence[TableShape] = SHAPES
) -> dict[str, Any]:
    """Loads each shape, finishes some of its URLs ten at a time, and prints the costs side by side."""
    out(
        f"{urls:,} URLs on {hosts:,} hosts, {finished:,} of them finished; put and finish: ms of the "
        "server's processor, lease: median ms\n"
        f"{'shape':<32}{'put 1000':>9}{'lease':>8}{'after':>8}{'finish 100':>11}{'HOT':>6}{'WAL/URL':>9}"
        f"{'B/URL':>7}{'after':>7}"
    )
    measured = []
    with workspace(None) as folder, closing(Database(folder)) as database:
        assert database.embedded is not None
        with psycopg.connect(database.embedded.address(), autocommit=True) as connection:
            connection.execute("SET synchronous_commit = off")
            for shape in shapes:
                measured.append(_measure(connection, shape, urls, finished, hosts))
                each = measured[-1]
                out(
                    f"{each.name:<32}{each.put_ms:>9.1f}{each.lease_ms:>8.2f}{each.lease_after_ms:>8.2f}"
                    f"{each.finish_ms:>11.2f}{each.hot:>6.0%}{each.wal:>9.0f}{each.bytes_before:>7.0f}"
                    f"{each.bytes_after:>7.0f}"
                )
    return {"ok": True, "figures": [msgspec.to_builtins(each) for each in measured]}


def _measure(
    connection: psycopg.Connection[Any], shape: TableShape, urls: int, finished: int, hosts: int
) -> ShapeFigures:
    _load(connection, shape, urls, hosts)
    before = _size(connection)
    lease = _leases(connection, shape, hosts)
    put = _put(connection, shape, urls, hosts)
    start = _one(connection, "SELECT pg_current_wal_insert_lsn()")
    finish = _finish(connection, shape, finished, hosts)
    wal = _one(connection, f"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '{start}')::float8")
    connection.execute("SELECT pg_stat_force_next_flush()")
    hot = _one(
        connection,
        "SELECT n_tup_hot_upd::float8 / greatest(1, n_tup_upd) FROM pg_stat_user_tables"
        " WHERE relname = 'shape'",
    )
    connection.execute("VACUUM shape")
    if shape.split:
        connection.execute("VACUUM waiting")
    return ShapeFigures(
        name=shape.name,
        put_ms=put,
        lease_ms=lease,
        lease_after_ms=_leases(connection, shape, hosts),
        finish_ms=finish,
        hot=hot,
        wal=wal / finished,
        bytes_before=before / urls,
        bytes_after=_size(connection) / urls,
    )


def _load(connection: psycopg.Connection[Any], shape: TableShape, urls: int, hosts: int) -> None:
    connection.execute("DROP TABLE IF EXISTS shape, waiting")
    connection.execute(
        f"CREATE TABLE shape ({_COLUMNS}) WITH (fillfactor = {shape.fillfactor}, autovacuum_enabled = off)"
    )
    rows = _ROWS.format(hosts=hosts, first=0, last=urls - 1)
    connection.execute(f"INSERT INTO shape {rows}")
    if shape.split:
        connection.execute(_SPLIT)
        connection.execute(f"INSERT INTO waiting {_WAITING} FROM shape".encode())
    else:
        connection.execute(_DUE)
    connection.execute("VACUUM (ANALYZE) shape")


def _leases(connection: psycopg.Connection[Any], shape: TableShape, hosts: int) -> float:
    taken = []
    for host in range(0, hosts, max(1, hosts // 500)):
        began = time.perf_counter()
        connection.execute(_LEASE[shape.split], [host], prepare=True).fetchall()
        taken.append(time.perf_counter() - began)
    return times(taken).p50


def _put(connection: psycopg.Connection[Any], shape: TableShape, urls: int, hosts: int) -> float:
    began = _processor_ms(connection)
    for batch in range(_BATCHES):
        first = urls + 1000 * batch
        rows = _ROWS.format(hosts=hosts, first=first, last=first + 999)
        if shape.split:
            rows = (
                f"WITH new AS (INSERT INTO shape {rows} RETURNING *) INSERT INTO waiting {_WAITING} FROM new"
            )
        else:
            rows = f"INSERT INTO shape {rows}"
        connection.execute(rows.encode())
    return (_processor_ms(connection) - began) / _BATCHES


def _finish(connection: psycopg.Connection[Any], shape: TableShape, finished: int, hosts: int) -> float:
    spent = 0.0
    for first in range(0, finished // 10, _AT_ONCE):
        held = []
        for number in range(first, min(first + _AT_ONCE, finished // 10)):
            found = connection.execute(_LEASE[shape.split], [number % hosts], prepare=True).fetchall()
            held.append((number % hosts, [uid for uid, _ in found[:10]]))
        began = _processor_ms(connection)
        for host, uids in held:
            connection.execute(_FINISH[shape.split], [host, uids], prepare=True)
        spent += _processor_ms(connection) - began
    return 100 * spent / finished


def _processor_ms(connection: psycopg.Connection[Any]) -> float:
    """Of the server's process for this connection, so far."""
    fields = (
        Path(f"/proc/{connection.info.backend_pid}/stat").read_text(encoding="ascii").split(")")[1].split()
    )
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _size(connection: psycopg.Connection[Any]) -> int:
    return int(
        _one(
            connection,
            "SELECT sum(pg_total_relation_size(oid))::int8 FROM pg_class"
            " WHERE relname IN ('shape', 'waiting') AND relkind = 'r'",
        )
    )


def _one(connection: psycopg.Connection[Any], statement: str) -> Any:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]

"""What the statements of the frontier cost on a real server: lease, finish, and put by the number of rows."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TypeVar

import msgspec

from benchmarks.frontier.stores import FrontierStore
from benchmarks.frontier.workload import Workload
from tamias.database.connect import Cursor, Session

T = TypeVar("T")

SMALL, LARGE = 4, 1000
_SIZES = """
SELECT relation.relname::text, pg_total_relation_size(relation.oid)::int8 AS size
FROM pg_class AS relation
WHERE relation.relnamespace = 'tamias'::regnamespace AND relation.relname IN ('host', 'queue', 'url')
UNION ALL
SELECT 'index ' || relation.relname, pg_relation_size(relation.oid)
FROM pg_class AS relation JOIN pg_index ON pg_index.indexrelid = relation.oid
WHERE pg_index.indrelid IN ('host'::regclass, 'queue'::regclass, 'url'::regclass)
ORDER BY 1
"""


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of one server, medians of many calls by one client."""

    by: str
    """The processor time of the server, which a busy machine does not change; or the clock."""

    lease: float
    """Ten hosts with ten URLs each."""
    finish: float
    """What was leased."""
    put_call: float
    """A put to one bucket, apart from its rows."""
    put_row: float

    def put(self, rows: int) -> float:
        """A put of so many rows to one bucket."""
        return self.put_call + rows * self.put_row


def measure(session: Session, workload: Workload, urls: int, rounds: int) -> Costs:
    """Rounds as a worker makes them, against tables that hold so many URLs."""
    store = FrontierStore(session)
    watch = _watch(session)
    batches = workload.batches(LARGE, urls, client=0)
    times: dict[str, list[float]] = {"lease": [], "finish": [], "small": [], "large": []}
    for number in range(rounds + 3):
        held = _timed(watch, times["lease"], store.lease)
        batch = next(batches)
        _timed(watch, times["large"], lambda batch=batch: store.put(batch))  # type: ignore[misc]
        few = next(batches)[:SMALL]
        _timed(watch, times["small"], lambda few=few: store.put(few))  # type: ignore[misc]
        _timed(watch, times["finish"], lambda held=held: store.finish(held))  # type: ignore[misc]
        if number == 2:
            for each in times.values():
                each.clear()
    middle = {name: 1000 * median(each) for name, each in times.items()}
    row = max(0.0, (middle["large"] - middle["small"]) / (LARGE - SMALL))
    return Costs(
        by="clock" if watch is None else "processor",
        lease=middle["lease"],
        finish=middle["finish"],
        put_call=max(0.01, middle["small"] - SMALL * row),
        put_row=row,
    )


def sizes(session: Session) -> dict[str, int]:
    """Bytes of the frontier's tables with their indexes, and of each index."""
    return session.transact(_read_sizes)


def _read_sizes(cursor: Cursor) -> dict[str, int]:
    return {name: int(size) for name, size in cursor.execute(_SIZES).fetchall()}


def _watch(session: Session) -> Path | None:
    """Where the system says how long the session's server was on a processor; None if it does not."""
    number = session.transact(lambda cursor: cursor.execute("SELECT pg_backend_pid()").fetchall())[0][0]
    schedstat = Path(f"/proc/{number}/schedstat")
    try:
        return (
            schedstat
            if "postgres" in Path(f"/proc/{number}/comm").read_text() and schedstat.read_text()
            else None
        )
    except OSError:
        return None


def _seconds(watch: Path | None) -> float:
    return time.perf_counter() if watch is None else int(watch.read_text().split()[0]) / 1e9


def _timed(watch: Path | None, times: list[float], call: Callable[[], T]) -> T:
    began = _seconds(watch)
    result = call()
    times.append(_seconds(watch) - began)
    return result

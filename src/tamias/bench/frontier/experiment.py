"""The experiment: load, let clients loose on both stores, size by size, then judge against the targets."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec

from tamias.bench.frontier.client import Job, Tally, wait_together, work
from tamias.bench.frontier.ground import ground
from tamias.bench.frontier.load import check_load, load, settle
from tamias.bench.frontier.report import Figures, figures, heading, line, targets
from tamias.bench.frontier.stores import STORES, make_naive
from tamias.bench.frontier.workload import Workload
from tamias.database.connect import Cursor, Database, Session
from tamias.frontier.postgres import PostgresFrontier

SIZES = (100_000, 1_000_000, 5_000_000)
CLIENTS = (1, 8)
_TABLES = {"frontier": ("url", "queue", "host"), "naive": ("naive",)}


class Effort(msgspec.Struct, frozen=True):
    """How much is measured on a store."""

    warm: int
    rounds: int
    seconds: float


def run(
    sizes: Sequence[int] = SIZES,
    clients: Sequence[int] = CLIENTS,
    data: Path | None = None,
    out: Callable[[str], None] = print,
    *,
    hosts: int = 10_000,
    rounds: int = 150,
    seconds: float = 15.0,
) -> dict[str, Any]:
    """Measures both stores at each size with each number of clients; returns what it printed, as figures.

    One client does `rounds` rounds; several work for `seconds`. The naive store, being slow, gets less.
    """
    with ground(data) as folder, closing(Database(folder)) as database:
        out(heading())
        measured: list[Figures] = []
        for each in _measure(database, folder, sizes, clients, Workload(hosts), rounds, seconds):
            out(line(each))
            measured.append(each)
    judged = targets(measured)
    for target in judged:
        out(target.sentence())
    return {
        "hosts": hosts,
        "figures": [msgspec.to_builtins(each) for each in measured],
        "targets": [msgspec.to_builtins(target) for target in judged],
        "ok": all(target.met is not False for target in judged),
    }


def _measure(
    database: Database,
    folder: Path,
    sizes: Sequence[int],
    clients: Sequence[int],
    workload: Workload,
    rounds: int,
    seconds: float,
) -> Iterator[Figures]:
    with closing(database.session()) as session:
        check_load(session, PostgresFrontier(session, same_url=str.__eq__), workload)
        for urls in sizes:
            load(session, workload, urls)
            session.transact(make_naive)
            assert database.embedded is not None
            settle(database.embedded.address())
            sized = {store: _bytes_per_url(session, store, urls) for store in STORES}
            for number in clients:
                for store, effort in _efforts(number, rounds, seconds).items():
                    jobs = [
                        Job(
                            data=str(folder),
                            store=store,
                            hosts=workload.hosts,
                            urls=urls,
                            client=sum(clients[: clients.index(number)]) + client,
                            **msgspec.structs.asdict(effort),
                        )
                        for client in range(number)
                    ]
                    before = _deadlocks(session)
                    tallies = _clients(jobs)
                    yield figures(
                        store,
                        urls,
                        tallies,
                        bytes_per_url=sized[store],
                        deadlocks=_deadlocks(session) - before,
                    )


def _efforts(clients: int, rounds: int, seconds: float) -> dict[str, Effort]:
    if clients == 1:
        return {"frontier": Effort(10, rounds, 8 * seconds), "naive": Effort(0, 6, 2 * seconds)}
    return {"frontier": Effort(1, 1_000_000, seconds), "naive": Effort(0, 1_000_000, seconds)}


def _clients(jobs: list[Job]) -> list[Tally]:
    """Each job in a fresh process, all begun together."""
    context = get_context("spawn")
    start = context.Barrier(len(jobs))
    with ProcessPoolExecutor(len(jobs), context, initializer=wait_together, initargs=(start,)) as pool:
        return list(pool.map(work, jobs))


def _bytes_per_url(session: Session, store: str, urls: int) -> float:
    def size(cursor: Cursor) -> int:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(name::regclass))::int8 FROM unnest(%s::text[]) AS name",
            [list(_TABLES[store])],
        )
        return int(_only(cursor))

    return session.transact(size) / urls


def _deadlocks(session: Session) -> int:
    def count(cursor: Cursor) -> int:
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(_only(cursor))

    return session.transact(count)


def _only(cursor: Cursor) -> Any:
    row = cursor.fetchone()
    assert row is not None
    return row[0]

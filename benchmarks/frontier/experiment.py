"""The experiment: load, let clients loose on both stores, size by size, then judge against the targets."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.frontier.client import ClientJob, ClientTally, wait_together, work
from benchmarks.frontier.load import check_load, load, settle
from benchmarks.frontier.report import StoreFigures, figures, heading, line, targets
from benchmarks.frontier.stores import STORES, make_naive
from benchmarks.frontier.workload import Workload
from benchmarks.measuring.targets import report_targets
from benchmarks.measuring.workspace import wait_for_quiet, workspace
from tamias.database.connect import Cursor, Database, Session
from tamias.frontier.postgres import PostgresFrontier

SIZES = (100_000, 1_000_000, 5_000_000)
CLIENTS = (1, 8)
_SIZE = "SELECT sum(pg_total_relation_size(name::regclass))::int8 FROM unnest(%s::text[]) AS name"
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
    patience: float = 30.0,
) -> dict[str, Any]:
    """Measures both stores at each size with each number of clients; returns what it printed, as figures.

    One client does `rounds` rounds; several work for `seconds`. The naive store, being slow, gets less.
    Before each measurement the machine is waited for, at most `patience` seconds, to become quiet.
    """
    measured: list[StoreFigures] = []
    with (
        workspace(data) as folder,
        closing(Database(folder)) as database,
        closing(database.session()) as session,
    ):
        trial = _Trial(database, session, folder, Workload(hosts), patience)
        trial.check()
        out(heading())
        for urls in sizes:
            trial.load(urls)
            for number in clients:
                for store, effort in _efforts(number, rounds, seconds).items():
                    measured.append(trial.measure(store, number, effort))
                    out(line(measured[-1]))
    return {
        "hosts": hosts,
        "figures": [msgspec.to_builtins(each) for each in measured],
        **report_targets(targets(measured), out),
    }


class _Trial:
    """Both stores, filled with the same URLs, and the clients let loose on them."""

    def __init__(
        self, database: Database, session: Session, folder: Path, workload: Workload, patience: float
    ) -> None:
        self._database = database
        self._session = session
        self._folder = folder
        self._workload = workload
        self._patience = patience
        self._urls = 0
        self._sizes: dict[str, float] = {}
        self._clients = 0

    def check(self) -> None:
        """Raises unless the rows we load are those that put would write."""
        check_load(self._session, PostgresFrontier(self._session, same_url=str.__eq__), self._workload)

    def load(self, urls: int) -> None:
        """Fills both stores anew."""
        load(self._session, self._workload, urls)
        self._session.transact(make_naive)
        assert self._database.embedded is not None
        settle(self._database.embedded.address(), self._folder)
        self._urls = urls
        self._sizes = {store: _size(self._session, store) / urls for store in STORES}

    def measure(self, store: str, clients: int, effort: Effort) -> StoreFigures:
        """So many clients at once on one store."""
        jobs = [self._job(store, client, effort) for client in range(self._clients, self._clients + clients)]
        self._clients += clients
        before = _deadlocks(self._session)
        wait_for_quiet(self._patience)
        tallies = _together(jobs)
        deadlocks = _deadlocks(self._session) - before
        return figures(store, self._urls, tallies, bytes_per_url=self._sizes[store], deadlocks=deadlocks)

    def _job(self, store: str, client: int, effort: Effort) -> ClientJob:
        return ClientJob(
            data=str(self._folder),
            store=store,
            hosts=self._workload.hosts,
            urls=self._urls,
            client=client,
            **msgspec.structs.asdict(effort),
        )


def _efforts(clients: int, rounds: int, seconds: float) -> dict[str, Effort]:
    if clients == 1:
        return {"frontier": Effort(10, rounds, 8 * seconds), "naive": Effort(0, 6, 2 * seconds)}
    return {"frontier": Effort(1, 1_000_000, seconds), "naive": Effort(0, 1_000_000, seconds)}


def _together(jobs: list[ClientJob]) -> list[ClientTally]:
    """Each job in a fresh process, all begun together."""
    context = get_context("spawn")
    start = context.Barrier(len(jobs))
    with ProcessPoolExecutor(len(jobs), context, initializer=wait_together, initargs=(start,)) as pool:
        return list(pool.map(work, jobs))


def _size(session: Session, store: str) -> int:
    """Bytes of a store's tables with their indexes."""

    def size(cursor: Cursor) -> int:
        cursor.execute(_SIZE, [list(_TABLES[store])])
        return int(_only(cursor))

    return session.transact(size)


def _deadlocks(session: Session) -> int:
    def count(cursor: Cursor) -> int:
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(_only(cursor))

    return session.transact(count)


def _only(cursor: Cursor) -> Any:
    row = cursor.fetchone()
    assert row is not None
    return row[0]

"""F2: the server of the database is killed again and again under a large frontier."""

import threading
import time
from contextlib import closing
from functools import partial

from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine, wait_until
from benchmarks.frontier.load import load
from benchmarks.frontier.workload import Workload
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Outcome
from tamias.model.item import NEVER, Item
from tamias.model.lease import Done, Lease, Return

URLS, KILLS, BATCH = 1_000_000, 30, 200
MOST_SECONDS = 5.0
_PATIENCE = 60.0


class Client(threading.Thread):
    """Puts, leases and finishes, and remembers what it was told is done."""

    def __init__(self, frontier: PostgresFrontier, workload: Workload, first: int) -> None:
        super().__init__(name="client")
        self._frontier, self._workload, self._next = frontier, workload, first
        self._ended = threading.Event()
        self.put: list[Item] = []
        self.finished = 0
        self.leased_at = 0.0
        self.trouble: Exception | None = None

    def run(self) -> None:
        """Until told to end."""
        try:
            while not self._ended.is_set():
                self._round()
        except Exception as error:  # noqa: BLE001 (the verdict tells it)
            self.trouble = error

    def has_leased_since(self, moment: float) -> bool:
        """Or will not any more."""
        return self.leased_at > moment or self.trouble is not None

    def end(self) -> None:
        """After this round."""
        self._ended.set()
        self.join()

    def _round(self) -> None:
        items = [self._workload.item(number) for number in range(self._next, self._next + BATCH)]
        self._next += BATCH
        self._frontier.put(items)
        self.put += items
        leases = self._frontier.lease(5)
        self.leased_at = time.monotonic()
        held = self._frontier.finish([_done(lease) for lease in leases])
        self.finished += sum(len(lease.tasks) for lease in leases if lease.qid in held)


def run(setup: ExperimentSetup) -> Result:
    """A million URLs, 30 deaths of the server, every acknowledged change looked for afterwards."""
    size, kills, random = setup.of(URLS, 20_000), setup.of(KILLS, 3), setup.random()
    workload, waits = Workload(10_000), []
    with (
        Machine(setup.folder) as machine,
        closing(Database(machine.data)) as database,
        closing(database.session()) as session,
    ):
        load(session, workload, size)
        frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=100)
        client = Client(frontier, workload, size)
        client.start()
        try:
            for _ in range(kills):
                time.sleep(random.uniform(0.1, 0.6))
                wait_until(machine.kill_server, _PATIENCE, "there was a server to kill")
                killed_at = time.monotonic()
                wait_until(partial(client.has_leased_since, killed_at), _PATIENCE, "a lease came")
                waits.append(client.leased_at - killed_at)
        finally:
            client.end()
        if client.trouble is not None:
            return Result(ok=False, figure=f"the client failed: {client.trouble}")
        lost = sum(
            frontier.put(client.put[place : place + 1000]).new for place in range(0, len(client.put), 1000)
        )
        figures = [each for each in frontier.figures().crawls if each.known]
        undone = max(0, sum(each.open - each.known for each in figures) + client.finished)
    return Result(
        ok=lost == undone == 0 and max(waits) <= MOST_SECONDS,
        figure=f"{kills} deaths at {size:,} URLs: {lost} of {len(client.put):,} puts and {undone} of"
        f" {client.finished:,} finishes lost, next lease after {max(waits):.2f} s at most",
    )


def _done(lease: Lease) -> Return:
    return Return(
        lease=lease, done=tuple(Done(task=task, outcome=Outcome.OK, due=NEVER) for task in lease.tasks)
    )

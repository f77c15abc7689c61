"""The plan of a worker, and the limit on the URLs that workers visit in a run of a crawl.

The limit of a run is one for all workers, near and far: a URL is taken from it when it is leased, and given
back if its visit comes to nothing.
"""

from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum

import msgspec

from tamias.crawl.plan.policy import CRAWL
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.model.item import WATCH
from tamias.model.kind import AUXILIARY, kind_of
from tamias.model.lease import Lease, Task
from tamias.settings import Settings

_SQL = statements("tamias.crawl.plan", "crawl.sql")


class RunShare(msgspec.Struct, frozen=True):
    """Share of a worker in a run."""

    session: Session
    crawl: int
    run: int
    worker: int

    def change(self, most: int, wanted: Callable[[int, int], int]) -> tuple[int, int]:
        """Change what the worker has taken, by a function of that and of what is left.

        Returns by how much it changed, and what is left then. Nothing changes once a later run has begun.
        """

        def work(cursor: Cursor) -> tuple[int, int]:
            cursor.execute(_SQL["make_shares"].text, {"crawl": self.crawl})
            row = cursor.execute(_SQL["lock_shares"].text, {"crawl": self.crawl}).fetchone()
            assert row is not None
            if row[0] > self.run:
                return 0, 0
            shares: dict[str, int] = row[1] if row[0] == self.run else {}
            left, before = most - sum(shares.values()), shares.get(str(self.worker), 0)
            change = max(wanted(before, left), -before)
            if change:
                text = msgspec.json.encode({**shares, str(self.worker): before + change}).decode()
                new = {"crawl": self.crawl, "run": self.run, "shares": text}
                cursor.execute(_SQL["write_shares"].text, new)
            return change, left - change

        return self.session.transact(work)


class RunLimit:
    """Leases no more than may be visited. One for each process."""

    def __init__(
        self,
        share: RunShare | None = None,
        most: int | None = None,
        may_lease: Callable[[], bool] = lambda: True,
    ) -> None:
        """Limit the run to `most` URLs (None: no limit); `may_lease` tells if the crawl goes on."""
        self._share = share if most is not None else None
        self._most = most or 0
        self._may_lease = may_lease
        self._returned: deque[None] = deque()
        self._is_used_up = False
        self.may_visit = True
        """Whether the crawl went on when that was last looked at."""

    @property
    def used_up(self) -> bool:
        """Return whether no visit may begin any more. May be read in any thread."""
        return self._is_used_up and not self._returned

    def lease(
        self,
        lend: Callable[[int, int], list[Lease]],
        release: Callable[[Iterable[Lease]], None],
        hosts: int,
        per_host: int,
    ) -> list[Lease]:
        """Lease at most so many hosts, with no more URLs than may be visited."""
        self.may_visit = self._may_lease()
        if self._share is None or not self.may_visit:
            return lend(hosts, per_host) if self.may_visit else []
        left = self._give_back_all(self._share)
        self._is_used_up = left <= 0
        found = lend(min(hosts, left), min(per_host, left)) if left > 0 else []
        wanted = sum(counts(task) for lease in found for task in lease.tasks)
        paid, _ = self._share.change(self._most, lambda _, left: max(0, min(wanted, left)))
        leases: list[Lease] = []
        for lease in found:
            unpaid = [index for index, task in enumerate(lease.tasks) if counts(task)][paid:]
            tasks = lease.tasks[: unpaid[0]] if unpaid else lease.tasks
            paid -= sum(map(counts, tasks))
            leases.append(msgspec.structs.replace(lease, tasks=tasks))
        release([lease for lease in leases if not lease.tasks])
        return [lease for lease in leases if lease.tasks]

    def give_back(self, task: Task) -> None:
        """Note that the visit of a leased URL came to nothing. May be called in any thread."""
        if self._share is not None and counts(task):
            self._returned.append(None)

    def close(self) -> None:
        """Let others have what was not visited."""
        if self._share is not None:
            self._give_back_all(self._share)

    def _give_back_all(self, share: RunShare) -> int:
        """Return what is left of the limit then."""
        count = sum(1 for _ in range(len(self._returned)) if self._returned.pop() is None)
        return share.change(self._most, lambda _taken, _left: -count)[1]


def counts(task: Task) -> bool:
    """Return whether a visit counts. A repeated attempt does not: its URL has been counted."""
    return task.fails == 0 and not task.reopened and kind_of(task.tags) not in AUXILIARY


class Until(StrEnum):
    """Time for which a supervisor goes on, and for whom its workers work."""

    DONE = "done"
    """Until the crawl has nothing left: its user runs it."""
    SERVED = "served"
    """The same, for a crawl that was handed over to the service: while its user does not stop it."""
    VISITED = "visited"
    """Until no watched resource is due."""
    STOPPED = "stopped"
    """Until somebody says stop: they help with a crawl of others."""

    @property
    def is_help(self) -> bool:
        """Return whether the crawl is somebody else's: it cannot allow more than the workers do."""
        return self is Until.STOPPED


class WorkerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Plan of a worker. The rest is in the row of the crawl."""

    data: str
    db: str | None
    settings: Settings
    """Of the machine; the row of the crawl comes before them."""
    crawl: int = CRAWL
    until: Until = Until.DONE


def run_limit(settings: Settings, crawl: int, until: Until) -> int | None:
    """Return how many URLs a run may visit; whoever helps with what is watched has no limit."""
    return None if until.is_help and crawl == WATCH else settings.crawl.max_urls

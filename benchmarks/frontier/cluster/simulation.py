"""Workers and shards as queues of work: a worker asks one shard after another, as `PostgresFrontier` does.

Pure: the same plan gives the same figures.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from random import Random

import msgspec

from benchmarks.frontier.cluster.costs import Costs

URLS_PER_LEASE = 100
LEASE, PUT, FINISH = 1, 5, 5
"""Statements of each call; its transaction takes two round trips more."""


class ClusterPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster and its workers."""

    shards: int
    buckets: int
    workers: int
    cores: int = 4
    """Of each shard."""
    leases: int = 1
    """How many leases a worker settles at once: their links are put together."""
    links: int = 10
    """New or forgotten links of a page, which must be asked about."""
    away: float = 0.2
    """The share of links that lead to other hosts."""
    network: float = 0.3
    """Milliseconds there and back."""
    pages: float = 400.0
    """A second that one worker can fetch and read."""
    planning: float = 0.0
    """Milliseconds that a node of the cluster takes to plan a statement, before its shard carries it out."""
    one_coordinator: bool = False
    """Whether one node plans all statements; otherwise each node those of its own workers."""


class ClusterFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    urls: float
    """Finished a second."""
    busy: float
    """The share of time that the cores of shards worked."""
    coordinator_busy: float
    puts: float
    """Statements for 100 URLs."""
    wait: float
    """Milliseconds from lease to finish that a worker spends on the database, for 100 URLs."""


class _Server:
    """So many cores, first come, first served."""

    def __init__(self, cores: int) -> None:
        self._free = [0.0] * cores
        self.worked = 0.0

    def serve(self, at: float, cost: float) -> float:
        """When a request that comes at some time is answered."""
        begun = max(at, self._free[0])
        heapq.heapreplace(self._free, begun + cost)
        self.worked += cost
        return begun + cost


Request = tuple[_Server, float, int]
"""Who is asked, what it costs there, and how often it takes the network."""


class Simulation:
    """One plan, run for some simulated time. Times are milliseconds."""

    def __init__(self, plan: ClusterPlan, costs: Costs, seed: int = 1) -> None:
        self._plan = plan
        self._costs = costs
        self._random = Random(seed)
        self._shards = [_Server(plan.cores) for _ in range(plan.shards)]
        self._coordinator = _Server(plan.cores)
        self._now = 0.0
        self._from = 0.0
        self._urls = self._puts = 0
        self._spent = 0.0

    def run(self, requests: int) -> ClusterFigures:
        """Until so many requests were made; the first quarter warms it up."""
        pace = 1000 * self._plan.leases * URLS_PER_LEASE / self._plan.pages
        begun = [self._random.random() * pace for _ in range(self._plan.workers)]
        coming = [(at, number, self._worker(at, number)) for number, at in enumerate(begun)]
        heapq.heapify(coming)
        for made in range(requests):
            self._now, number, worker = coming[0]
            if made == requests // 4:
                self._count_from_now()
            heapq.heapreplace(coming, (next(worker), number, worker))
        return self._figures()

    def _worker(self, at: float, number: int) -> Iterator[float]:
        """The life of a worker: the times at which it goes on."""
        plan = self._plan
        while True:
            begun = time = at
            for server, cost, trips in self._round(self._planner(number)):
                time = server.serve(self._now, cost) + trips * plan.network
                yield time
            self._urls += plan.leases * URLS_PER_LEASE
            self._spent += time - begun
            # Pages are fetched beside the database's work; the slower of both sets the pace.
            at = max(time, begun + 1000 * plan.leases * URLS_PER_LEASE / plan.pages)
            yield at

    def _planner(self, number: int) -> _Server:
        """The node that a worker is connected to."""
        return self._coordinator if self._plan.one_coordinator else self._shards[number % self._plan.shards]

    def _round(self, planner: _Server) -> Iterator[Request]:
        """Leases, puts, finishes, one after another."""
        plan = self._plan
        homes = [self._random.randrange(plan.buckets) for _ in range(plan.leases)]
        for home in homes:
            yield from self._asked(planner, home, self._costs.lease, LEASE)
        for bucket, rows in sorted(self._links(homes).items()):
            self._puts += 1
            yield from self._asked(planner, bucket, self._costs.put(rows), PUT)
        for home in homes:
            yield from self._asked(planner, home, self._costs.finish, FINISH)

    def _asked(self, planner: _Server, bucket: int, cost: float, number: int) -> Iterator[Request]:
        """So many statements: planned on one node, carried out on the shard of the bucket."""
        if self._plan.planning:
            yield planner, number * self._plan.planning, number
        yield self._shards[bucket % self._plan.shards], cost, number + 2

    def _links(self, homes: list[int]) -> Counter[int]:
        """Rows for each bucket."""
        rows: Counter[int] = Counter()
        links = URLS_PER_LEASE * self._plan.links
        abroad = int(links * self._plan.away)
        for home in homes:
            rows[home] += links - abroad
            rows.update(self._random.choices(range(self._plan.buckets), k=abroad))
        return rows

    def _count_from_now(self) -> None:
        self._from, self._urls, self._puts, self._spent = self._now, 0, 0, 0.0
        for server in (*self._shards, self._coordinator):
            server.worked = 0.0

    def _figures(self) -> ClusterFigures:
        plan = self._plan
        span = max(self._now - self._from, 1e-9)
        hundreds = max(self._urls / 100, 1e-9)
        return ClusterFigures(
            urls=1000 * self._urls / span,
            busy=sum(each.worked for each in self._shards) / (span * plan.cores * plan.shards),
            coordinator_busy=self._coordinator.worked / (span * plan.cores),
            puts=self._puts / hundreds,
            wait=self._spent / hundreds,
        )

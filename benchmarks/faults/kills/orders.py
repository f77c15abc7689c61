"""What a worker of the experiment is told, and how all of them behave."""

import msgspec

from benchmarks.faults.kills.graph import Graph

HOSTS, PER_HOST = 2, 3
LEASE_SECONDS = 3.0
DELAY_MS = 200


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker must know."""

    data: str
    diary: str
    graph: Graph
    pause: float
    """Seconds of each round that stand for fetching."""
    nurse: int

"""What a worker of the experiment must know, and how all of them behave."""

import msgspec

from benchmarks.faults.kills.graph import LinkGraph

HOSTS, PER_HOST = 2, 3
LEASE_SECONDS = 3.0
DELAY_MS = 200


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Handed over as JSON on the command line."""

    data: str
    log: str
    graph: LinkGraph
    pause: float
    """Seconds of each round that stand for fetching."""
    pool: int

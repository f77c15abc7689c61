"""Where a frontier on many servers bends: costs are measured here and now, the servers are simulated.

`costs` measures one server, `simulation` lets workers loose on many of them, `run` prints the tables.
"""

from benchmarks.frontier.cluster.run import run

__all__ = ["run"]

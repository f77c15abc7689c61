"""A crawl through the frontier alone while its processes are killed: nothing may be lost or done by two.

`graph` is the web, `worker` crawls it, `pool` restarts the dead, `killer` strikes, `verdict` reads the logs.
"""

from benchmarks.faults.kills.experiment import run

__all__ = ["run"]

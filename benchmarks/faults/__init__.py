"""Faults on purpose, F1 to F14: each breaks one thing and holds one figure against the promised one.

`machine` has the processes, `web` and `proxy` the network, `inside` what is broken within a process.
"""

from benchmarks.faults.run import run

__all__ = ["run"]

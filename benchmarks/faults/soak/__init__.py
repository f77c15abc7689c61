"""A long run: a web that changes, processes that die and join, a database that is killed, a disk that fills.

`web` is what is archived, `trouble` what happens meanwhile, `invariants` and `gauges` what must hold.
"""

from benchmarks.faults.soak.run import run

__all__ = ["run"]

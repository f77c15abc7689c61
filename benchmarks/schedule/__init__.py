"""How well the schedule spends its visits, beside other rules and an oracle that knows every rate.

`publishers` draws the changes, `rules` are the contestants, `simulation` lets one loose on them.
"""

from benchmarks.schedule.run import run

__all__ = ["run"]

"""How fast the frontier is as it grows, beside the obvious one-table queue in the same run.

`workload` draws the URLs, `load` fills the tables, `stores` are the two contestants, `client` times one.
"""

from benchmarks.frontier.experiment import CLIENTS, SIZES, run

__all__ = ["CLIENTS", "SIZES", "run"]

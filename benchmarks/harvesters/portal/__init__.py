"""How fast a portal's datasets are read, and that the memory for it does not grow with the portal.

`server` is a portal that speaks as CKAN does, `harvest` harvests it in a process of its own, `run` reports.
"""

from benchmarks.harvesters.portal.run import run

__all__ = ["run"]

"""The SPARQL harvester: a capped endpoint copied by it, and by a plain loop of LIMIT and OFFSET."""

from benchmarks.harvesters.sparql.run import run

__all__ = ["run"]

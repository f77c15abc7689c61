"""How fast each format passes through the analyse-and-store step, beside other readers in the same run.

`corpus` writes the triples, `step` and `peers` time readers, `pages` is for HTML, `dump` watches memory.
"""

from benchmarks.formats.run import run

__all__ = ["run"]

"""How small versions become, how fast they go in and come out, beside per-file zstd, borg and restic.

`corpus` makes the versions, `ingest` and `peers` keep them, `small` is for very many small resources.
"""

from benchmarks.archive.run import run

__all__ = ["run"]

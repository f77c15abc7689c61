"""How fast the service answers over a large archive, beside a bare Starlette handler under the same server.

`fill` makes the archive, `servers` starts what is measured, `load`, `pages` and `silence` ask it.
"""

from benchmarks.serve.run import run

__all__ = ["run"]

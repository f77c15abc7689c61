"""How fast the service answers over a large archive, beside a bare Starlette handler under the same server.

`fill` makes the archive, `running` starts the servers, `load`, `pages` and `silent` ask them.
"""

from tamias.bench.serve.run import run

__all__ = ["run"]

"""How soon a crawl by the user's SQL meets what it looks for, beside a breadth-first one on the same web."""

from benchmarks.strategy.run import run

__all__ = ["run"]

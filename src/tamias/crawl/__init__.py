"""Crawls: what is planned, requested, visited, stored and committed; `tamias.crawl(…)` runs one."""

import sys
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """The package `tamias.crawl`, which is a function for users of the library: both have this name."""

    def __call__(self, *seeds: str, **options: Any) -> Any:
        """Crawl from the seeds: see `tamias.crawl.verbs.crawl.crawl`."""
        from tamias.crawl.verbs.crawl import crawl

        return crawl(*seeds, **options)


sys.modules[__name__].__class__ = CallablePackage

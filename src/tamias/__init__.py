"""Tamias: a crawler and archive for the Web of Data.

>>> import tamias
>>> reading = tamias.read(b"<http://example.org/a> a <http://example.org/B> .", media_type="text/turtle")
>>> len(list(reading.quads))
1
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamias import aio, errors, plugin
    from tamias.crawl.store.progress import CrawlSnapshot
    from tamias.crawl.verbs.crawl import RunningCrawl, crawl, start_crawl
    from tamias.crawl.verbs.library import Archive, ArchivedResource, ArchivedVersion
    from tamias.crawl.verbs.read import Reading, read

__version__ = "0.2.0"
__all__ = [
    "Archive",
    "ArchivedResource",
    "ArchivedVersion",
    "CrawlSnapshot",
    "Reading",
    "RunningCrawl",
    "aio",
    "crawl",
    "errors",
    "plugin",
    "read",
    "start_crawl",
]  # fmt: skip
_HOMES = {
    **dict.fromkeys(("Archive", "ArchivedResource", "ArchivedVersion"), "verbs.library"),
    "CrawlSnapshot": "store.progress",
    **dict.fromkeys(("RunningCrawl", "start_crawl"), "verbs.crawl"),
    **dict.fromkeys(("Reading", "read"), "verbs.read"),
}


def __dir__() -> list[str]:
    """The public names, for completion; `__version__` beside them."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    """The public names are loaded when they are first used, so that `tamias --help` stays quick."""
    if name in _HOMES:
        return getattr(import_module(f"tamias.crawl.{_HOMES[name]}"), name)
    if name in __all__:
        return import_module(f"tamias.{name}")
    raise AttributeError(f"module 'tamias' has no attribute '{name}'")

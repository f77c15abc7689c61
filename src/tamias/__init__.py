"""Tamias: a crawler and archive for the Web of Data.

>>> import tamias
>>> reading = tamias.read(b"<http://example.org/a> a <http://example.org/B> .", media_type="text/turtle")
>>> len(list(reading.quads))
1
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamias.crawl.verbs.library import Archive
    from tamias.crawl.verbs.read import Reading, read

__all__ = ["Archive", "Reading", "read"]
__version__ = "0.2.0"


def __dir__() -> list[str]:
    """The public names, for completion; `__version__` beside them."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    """The public names are loaded when they are first used, so that `tamias --help` stays quick."""
    if name == "Archive":
        from tamias.crawl.verbs.library import Archive

        return Archive
    if name in __all__:
        from tamias.crawl.verbs import read as reading

        return getattr(reading, name)
    raise AttributeError(f"module 'tamias' has no attribute '{name}'")

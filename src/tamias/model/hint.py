"""What a sitemap says of an address before it is asked for: when it changed, how often it does.

Hints only: they may set a first interval or an order, and yield to what is measured. Pure.
"""

from typing import Final

import msgspec

CHANGE_FREQUENCIES: Final = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})


class Hint(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of one address. At least one of the fields is set."""

    url: str
    """As a `fetch_url`."""
    lastmod_ms: int | None = None
    """Milliseconds UTC; the beginning of the day, month or year where no more is said."""
    changefreq: str | None = None
    """One of `CHANGE_FREQUENCIES`."""
    priority: float | None = None
    """From 0 to 1, to be compared within one site only."""
    sha256: str | None = None
    """Of the body, in hexadecimal, as ResourceSync tells it."""


class Hints(msgspec.Struct, frozen=True):
    """Hints in a batch."""

    hints: list[Hint]
    """Of addresses that the sitemap speaks for by its own place."""
    beyond: list[Hint] = msgspec.field(default_factory=list)
    """Of others: they count only where the robots.txt of their host names this sitemap."""


def speaks_for(sitemap_url: str, url: str) -> bool:
    """Whether a sitemap may say something of an address, both as `fetch_url`, by where it stands.

    >>> speaks_for("http://a.example/b/map.xml?c=/d/", "http://a.example/b/e?f")
    True
    >>> speaks_for("http://a.example/b/map.xml", "http://a.example/c")
    False
    """
    return url.startswith(sitemap_folder(sitemap_url))


def sitemap_folder(sitemap_url: str) -> str:
    """What every address begins with that a sitemap speaks for."""
    return sitemap_url.partition("?")[0].rpartition("/")[0] + "/"

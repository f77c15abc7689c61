"""A seed: an address to start from, and what the user said of it."""

import msgspec

TRUSTED = "trusted"
"""The tag of what the user named as a source: it may speak for any graph but our own."""


class Seed(msgspec.Struct, frozen=True, kw_only=True):
    """An address as the user wrote it."""

    address: str
    kind: str | None = None
    """What stands there, by the user's word: `sparql`, `ckan`, ..."""
    tags: tuple[str, ...] = ()
    queue: str | None = None
    """The key of its queue, where another frontier has given it one."""
    crawl: str | None = None
    """The name of its crawl there."""
    due: int | None = None
    """Milliseconds UTC; set where it is known there, and then what is known here is overwritten."""
    metadata: dict[str, list[str]] | None = None
    """What is noted there; set for all that comes from another frontier."""

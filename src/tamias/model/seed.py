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

"""News as any feed tells it."""

import msgspec


class FeedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of news."""

    id: str
    title: str
    updated: str
    page: str
    """For people."""
    data: str
    """The same for programs."""
    download: str
    media_type: str | None
    byte_size: int
    summary: str


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """A page of news, newest first."""

    id: str
    title: str
    home: str
    here: str
    further: str | None
    entries: tuple[FeedEntry, ...]

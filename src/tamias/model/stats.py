"""What the frontier knows about itself, as figures."""

import msgspec


class CrawlStats(msgspec.Struct, frozen=True, kw_only=True):
    """One crawl: URLs known, URLs still open, hosts, and when it goes on."""

    crawl: int
    name: str
    known: int
    open: int
    hosts: int
    leased: int
    """Hosts with work for this crawl that are leased at this moment."""
    next_at: int | None
    """When the next host of it can be leased, in milliseconds; None when nothing is open."""
    next_due: int | None
    """When its next URL is due, whether or not the host wants a pause first."""
    again: int = 0
    """How many URLs were opened once more after their visit."""


class FrontierStats(msgspec.Struct, frozen=True, kw_only=True):
    """The whole frontier at one moment, in its own time."""

    now: int
    hosts: int
    leased: int
    ready: int
    crawls: tuple[CrawlStats, ...]

"""The frontier: what waits, where, for what, and who is left in peace."""

from typing import Any

import msgspec
from starlette.requests import Request

from tamias.archive.moments import of_row, rfc3339
from tamias.features.pages.crawl import activity
from tamias.features.pages.crawl.activity import HostStates, HostTrouble
from tamias.features.pages.html.page import HtmlPage, table_of
from tamias.features.pages.queries import rows, rows_of_buckets
from tamias.features.service.api.tags import TagCount, count_tags
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service

MOST_QUEUES = 100
MOST_BLOCKS = 100
MOST_TAGS = 50
_SECONDS = 3.0
_LATEST_SHOWN = 253_402_300_799_000
"""The year 9999: what is due later is due never."""


class CrawlSums(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of the queues of a crawl."""

    crawl: str
    state: str
    queues: int
    known: int
    open: int
    paused: int


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue of a crawl at a host."""

    host: str
    crawl: str
    known: int
    open: int
    state: str
    """`asked`, `blocked`, `paused`, `ready`, `waiting` or `done`."""
    ready_at: str | None
    """When it can be asked again."""
    delay_seconds: float
    tags: tuple[str, ...]
    """Those that all its URLs have."""


class Block(msgspec.Struct, frozen=True):
    """A host that is left in peace."""

    host: str
    until: str
    delay_seconds: float


class BlockListCount(msgspec.Struct, frozen=True):
    """A block list, and what it kept out."""

    list: str
    urls: int
    latest: str


class FrontierView(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page."""

    waiting: HostStates
    crawls: list[CrawlSums]
    queues: list[Queue]
    """Those with most to do."""
    blocks: list[Block]
    lists: list[BlockListCount]
    tags: list[TagCount]
    troubles: list[HostTrouble]


async def frontier(_: Request, service: Service) -> FrontierView:
    """The frontier as it was a moment ago."""
    return await service.lately("frontier", _SECONDS, _frontier)


def _frontier(db: ServiceSession) -> FrontierView:
    now = db.session.now()
    queues = rows_of_buckets(db, "queues", now=now, limit=MOST_QUEUES)
    blocks = rows_of_buckets(db, "blocks", now=now, limit=MOST_BLOCKS)
    return FrontierView(
        waiting=activity.waiting(db),
        crawls=_crawls(db),
        queues=sorted((_queue(row, now) for row in queues), key=lambda each: -each.open)[:MOST_QUEUES],
        blocks=[Block(host, _moment(until) or "", delay / 1000) for host, until, delay in blocks],
        lists=[of_row(BlockListCount, row) for row in rows(db, "lists")],
        tags=count_tags(db)[:MOST_TAGS],
        troubles=activity.troubles(db),
    )


def _crawls(db: ServiceSession) -> list[CrawlSums]:
    sums: dict[tuple[str, str], list[int]] = {}
    for name, state, *counts in rows_of_buckets(db, "queue_sums"):
        before = sums.get((name, state), [0, 0, 0, 0])
        sums[name, state] = [a + b for a, b in zip(before, counts, strict=True)]
    return [
        CrawlSums(crawl=name, state=state, queues=queues, known=known, open=waiting, paused=paused)
        for (name, state), (queues, known, waiting, paused) in sorted(sums.items())
    ]


def _queue(row: tuple[Any, ...], now: int) -> Queue:
    host, crawl, known, waiting, active, next_due, ready_at, blocked_until, delay_ms, leased, tags = row
    due = max(next_due, ready_at)
    return Queue(
        host=host,
        crawl=crawl,
        known=known,
        open=waiting,
        state=_state(
            leased=leased, active=active, blocked=blocked_until > now, waiting=waiting, due=due <= now
        ),
        ready_at=_moment(due),
        delay_seconds=delay_ms / 1000,
        tags=tuple(tags),
    )


def _state(*, leased: bool, active: bool, blocked: bool, waiting: int, due: bool) -> str:
    """Return the state of a queue in a word.

    >>> _state(leased=False, active=True, blocked=False, waiting=3, due=True)
    'ready'
    """
    if not active:
        return "paused"
    if not waiting:
        return "done"
    if blocked:
        return "blocked"
    if leased:
        return "asked"
    return "ready" if due else "waiting"


def _moment(at: int) -> str | None:
    return rfc3339(at) if at < _LATEST_SHOWN else None


PAGE = HtmlPage(
    path="/frontier",
    template="frontier.html",
    view=frontier,
    data="/frontier.json",
    table=table_of("queues", "host", "crawl", "known", "open", "state", "ready_at", "delay_seconds", "tags"),
)

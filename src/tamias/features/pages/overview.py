"""The first page: the archive in figures, what is going on, and what changed last."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import of_row, rfc3339
from tamias.crawl.store.progress import CrawlSnapshot
from tamias.features.pages.crawl import activity
from tamias.features.pages.crawl.activity import AttemptRates, Daily, DatasetTrouble, HostStates, HostTrouble
from tamias.features.pages.html.page import HtmlPage, html, table_of
from tamias.features.pages.queries import rows
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.features.stats.figures import Figures, read_figures

LATEST_CHANGES = 10
_SECONDS_LIVE = 2.0
_SECONDS_SLOW = 60.0


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """A version that came lately."""

    resource: str
    url: str
    title: str | None
    number: int
    captured_at: str
    byte_size: int
    media_type: str | None
    noise: str | None


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """The live part of the overview."""

    figures: Figures
    at: str
    crawl: CrawlSnapshot | None
    rates: AttemptRates
    waiting: HostStates
    attention: list[DatasetTrouble]
    """Watched resources whose latest visit brought nothing."""
    troubles: list[HostTrouble]
    changes: list[Latest]


class Overview(Live, frozen=True, kw_only=True):
    """The data of the page."""

    daily: list[Daily]
    planned: list[int]
    """Visits due in each of the next 48 hours."""


async def overview(_: Request, service: Service) -> Overview:
    """The archive as it is now."""
    live = await _live(service)
    datasets = live.figures.basic.datasets
    daily = await service.lately("daily", _SECONDS_SLOW, activity.daily)
    planned = await service.lately("planned", _SECONDS_SLOW, lambda db: activity.planned(db, datasets))
    return Overview(**msgspec.structs.asdict(live), daily=daily, planned=planned)


async def live_part(_: Request, service: Service) -> Response:
    """The part of the page that is fetched again and again."""
    return html("parts/live.html", {"view": await _live(service)})


async def _live(service: Service) -> Live:
    read = await service.lately("live", _SECONDS_LIVE, _read_live)
    return msgspec.structs.replace(read, crawl=service.crawl())


def _read_live(db: ServiceSession) -> Live:
    figures = read_figures(db.session)
    return Live(
        figures=figures,
        at=rfc3339(figures.at),
        crawl=None,
        rates=activity.rates(db),
        waiting=activity.waiting(db),
        attention=activity.attention(db),
        troubles=activity.troubles(db),
        changes=[of_row(Latest, row) for row in rows(db, "newest_changes", limit=LATEST_CHANGES)],
    )


PAGE = HtmlPage(
    path="/",
    template="overview.html",
    view=overview,
    data="/overview.json",
    table=table_of(
        "changes", "captured_at", "resource", "url", "title", "number", "byte_size", "media_type", "noise"
    ),
)

"""The first page: the archive in figures, what is going on, and what changed last."""

from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import rfc3339
from tamias.features.pages.crawl import activity
from tamias.features.pages.html.page import CsvTable, html, page, table_of
from tamias.features.pages.queries import Record, records
from tamias.features.service.api.frontier import crawl_states
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.features.stats.figures import StatTable, content_tables, read_figures, read_portals

LATEST_CHANGES = 10
_SECONDS_LIVE = 2.0
_SECONDS_SLOW = 60.0


@page(
    "/",
    "overview.html",
    data="/overview.json",
    table=table_of(
        "changes", "captured_at", "resource", "url", "title", "number", "byte_size", "media_type", "noise"
    ),
)
async def overview(_: Request, service: Service) -> Record:
    """The archive as it is now, new versions by day, and visits due in each of the next 48 hours."""
    live = await _live(service)
    datasets = live["figures"].basic.datasets
    daily = await service.lately("daily", _SECONDS_SLOW, activity.daily)
    planned = await service.lately("planned", _SECONDS_SLOW, lambda db: activity.planned(db, datasets))
    return {**live, "daily": daily, "planned": planned}


@page("/stats", "stats.html", data="/api/v1/stats", elsewhere=True, table=lambda view: CsvTable(*view[0][1:]))
async def statistics(_: Request, service: Service) -> list[StatTable]:
    """The tables of the statistics."""
    figures = await service.lately("figures", _SECONDS_SLOW, lambda db: read_figures(db.session))
    portals = await service.lately("stats portals", _SECONDS_SLOW, lambda db: read_portals(db.session))
    basic = [[name, getattr(figures.basic, name)] for name in ("datasets", "versions", "hosts", "sources")]
    states = [[name, getattr(figures.states, name)] for name in ("active", "gone", "stopped", "due")]
    visits = [[each.outcome, each.attempts, each.bytes, f"{each.seconds:.3f}"] for each in figures.attempts]
    stored = [
        ["all versions", figures.storage.bytes],
        ["the same on disk", figures.storage.stored_bytes],
        ["a version, on average", round(figures.storage.mean_size)],
        ["received each second of the last day", round(figures.traffic.mean)],
        ["the same in its busiest five minutes", round(figures.traffic.busiest)],
    ]
    return [
        ("Collections", ["Collection", "Number"], basic),
        *content_tables(figures, portals),
        ("States", ["State", "Datasets"], states),
        ("Visits of the last day", ["Outcome", "Visits", "Bytes", "Seconds each"], visits),
        ("Storage and traffic", ["What", "Bytes"], stored),
    ]


async def live_part(_: Request, service: Service) -> Response:
    """The part of the page that is fetched again and again."""
    return html("parts/live.html", {"view": await _live(service)})


async def _live(service: Service) -> Record:
    read = await service.lately("live", _SECONDS_LIVE, _read_live)
    return {**read, "crawl": service.crawl()}


def _read_live(db: ServiceSession) -> Record:
    figures = read_figures(db.session)
    crawls = [each for each in crawl_states(db) if each.name != "watch"]
    return {
        "crawls": crawls,
        "queued": sum(each.open for each in crawls),
        "figures": figures,
        "at": rfc3339(figures.at),
        "rates": activity.rates(db),
        "waiting": activity.waiting(db),
        "attention": activity.attention(db),
        "troubles": activity.troubles(db),
        "changes": records(db, "newest_changes", limit=LATEST_CHANGES),
    }

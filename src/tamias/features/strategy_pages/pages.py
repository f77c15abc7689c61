"""The page of strategies: the share of visits that brought statements, over time, with one and without."""

from collections.abc import Sequence

import msgspec
from starlette.requests import Request

from tamias.archive.moments import rfc3339_or_none
from tamias.database.sql import statements
from tamias.features.pages.html.page import page, table_of
from tamias.features.pages.queries import Record
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.capture import Outcome
from tamias.model.item import NEVER, WATCH

MOST_VISITS = 20_000
"""The newest, of each bucket, that rates are made from."""
MOST_STRATEGIES = 50
POINTS = 60
_SECONDS = 30.0
_SQL = statements("tamias.features.strategy_pages", "strategies.sql")
Visit = tuple[int, int, bool]
"""The crawl, the time, and whether it brought statements."""


class HarvestRate(msgspec.Struct, frozen=True):
    """The share of visits that brought statements."""

    visits: int = 0
    rate: float | None = None
    points: list[tuple[int, float]] = []
    """The share after so many visits."""


@page(
    "/strategies",
    "strategies.html",
    table=table_of("strategies", "crawl", "name", "state", "since", "problem"),
)
async def strategies(_: Request, service: Service) -> Record:
    """Return the newest strategies with the rates of their crawls."""
    return {"strategies": await service.lately("strategies", _SECONDS, _strategies)}


def _strategies(db: ServiceSession) -> list[Record]:
    rows = db.session.fetch_all(_SQL["strategies"], {"limit": MOST_STRATEGIES})
    if not rows:
        return []
    visits = _visits(db)
    in_force = [(since, crawl) for crawl, *_, since in rows if since is not None]
    starts = {crawl: since for since, crawl in sorted(in_force, reverse=True)}  # the first of each crawl
    ordered = {row[0] for row in rows}
    plain = [visit for visit in visits if visit[0] not in ordered]
    found, ends = [], dict[int, int]()
    for crawl, crawl_name, name, state, problem, since in rows:
        # Its own visits, from when it was in force until another one was.
        end = ends.get(crawl, NEVER)
        ends[crawl] = since or end
        with_strategy = _rate(_between(visits, crawl, since, end)) if since else HarvestRate()
        without = _rate(_between(visits, crawl, 0, starts.get(crawl, 0)) or plain)
        about = {"crawl": crawl_name, "name": name, "state": state, "problem": problem}
        rates = {"with_strategy": with_strategy, "without": without}
        found.append({**about, "since": rfc3339_or_none(since), **rates})
    return found


def _visits(db: ServiceSession) -> list[Visit]:
    """Return the newest visits of all buckets in the order of their times."""
    values = {"most": MOST_VISITS, "watch": WATCH, "unchanged": Outcome.UNCHANGED.value}
    buckets = range(db.frontier.buckets)
    visits = [each for b in buckets for each in db.session.fetch_all(_SQL["visits"], {"bucket": b, **values})]
    return sorted(visits, key=lambda visit: visit[1])


def _between(visits: Sequence[Visit], crawl: int, start: int, end: int) -> list[Visit]:
    return [visit for visit in visits if visit[0] == crawl and start <= visit[1] < end]


def _rate(visits: Sequence[Visit]) -> HarvestRate:
    """Return the share of visits that brought statements, and how it came about."""
    if not visits:
        return HarvestRate()
    step = max(1, len(visits) // POINTS)
    brought, points = 0, []
    for count, (*_, brings) in enumerate(visits, 1):
        brought += brings
        if count % step == 0 or count == len(visits):
            points.append((count, brought / count))
    return HarvestRate(len(visits), brought / len(visits), points)

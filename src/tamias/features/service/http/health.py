"""The health of the service, and its metrics for Prometheus."""

import asyncio
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias import __version__
from tamias.features.service.http.endpoints import EndpointTable, ResponseSpec
from tamias.features.service.http.exchange import json_answer
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.features.stats.figures import Basic, basic_figures
from tamias.filters.blocked import Blocked, blocked_figures
from tamias.model.lease import FrontierStats
from tamias.plugins import load_all

if TYPE_CHECKING:
    from tamias.crawl.store.progress import CrawlSnapshot
    from tamias.features.service.http.middleware import RequestCounts

PATIENCE_SECONDS = 3.0
_BEGUN = time.time()


class HealthReport(msgspec.Struct, frozen=True):
    """The report of a healthy service."""

    status: Literal["ok"]
    version: str
    crawl: bool
    """Whether workers run beside the service."""


class Gauge(msgspec.Struct, frozen=True):
    """A metric of a feature: a part of `metrics` returns it for a session, the data and the settings."""

    name: str
    about: str
    values: dict[str, float]
    """By labels, such as `{kind="gone"}`; without labels, by an empty text."""


ENDPOINTS = EndpointTable()


@ENDPOINTS.get("/healthz", ResponseSpec("It is", HealthReport))
async def healthz(request: Request, service: Service) -> Response:
    """Return whether the service is healthy."""
    try:
        await asyncio.wait_for(service.pool.run(lambda db: db.rows("alive", {})), PATIENCE_SECONDS)
    except TimeoutError:
        detail = f"the database did not answer within {PATIENCE_SECONDS:g} seconds"
        raise HttpProblem(503, detail, {"Retry-After": "5"}) from None
    report = HealthReport("ok", __version__, service.crawl() is not None)
    return json_answer(request, report, headers={"Cache-Control": "no-store"})


@ENDPOINTS.get("/metrics", ResponseSpec("Figures", media_types=("text/plain",)))
async def metrics(_: Request, service: Service) -> Response:
    """Metrics for Prometheus."""
    basic, frontier, blocked = await service.pool.run(_figures)
    gauges = await service.pool.run(
        lambda db: [
            metric(db.session, service.data, service.settings) for metric in load_all("metrics").values()
        ]
    )
    lines = [
        *_archive(basic),
        *_frontier(frontier),
        *_blocked(blocked),
        *(line for each in gauges for line in _many(each.name, "gauge", each.about, each.values)),
        *_disk(service.data),
        *_traffic(service.traffic),
        *_process(),
    ]
    crawl = service.crawl()
    if crawl is not None:
        lines += _crawl(crawl)
    return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _figures(db: ServiceSession) -> tuple[Basic, FrontierStats, list[Blocked]]:
    return basic_figures(db.session), db.frontier.figures(), blocked_figures(db.session)


def _archive(basic: Basic) -> Iterator[str]:
    yield from _one("tamias_datasets", "gauge", "Watched resources", basic.datasets)
    yield from _one("tamias_versions", "gauge", "Versions kept", basic.versions)
    yield from _one("tamias_hosts", "gauge", "Hosts of resources", basic.hosts)
    yield from _one("tamias_sources", "gauge", "Places that name resources", basic.sources)
    yield from _one("tamias_bytes", "gauge", "Bytes of all versions as they came", basic.bytes)
    yield from _one("tamias_stored_bytes", "gauge", "Bytes that they take on disk", basic.stored_bytes)


def _frontier(figures: FrontierStats) -> Iterator[str]:
    hosts = {'{state="known"}': figures.hosts, '{state="leased"}': figures.leased}
    yield from _many("tamias_frontier_hosts", "gauge", "Hosts", {**hosts, '{state="ready"}': figures.ready})
    urls: dict[str, float] = {}
    for each in figures.crawls:
        name = _label(each.name)
        urls[f'{{crawl="{name}",state="known"}}'] = each.known
        urls[f'{{crawl="{name}",state="open"}}'] = each.open
        urls[f'{{crawl="{name}",state="again"}}'] = each.again
    yield from _many("tamias_frontier_urls", "gauge", "URLs", urls)


def _blocked(lists: list[Blocked]) -> Iterator[str]:
    counts = {f'{{list="{_label(each.list)}"}}': float(each.urls) for each in lists}
    yield from _many("tamias_blocked_total", "counter", "URLs that block lists kept out", counts)


def _disk(data: Path) -> Iterator[str]:
    free = shutil.disk_usage(data).free
    yield from _one("tamias_disk_free_bytes", "gauge", "Free space on the disk of the data directory", free)


def _crawl(now: "CrawlSnapshot") -> Iterator[str]:
    yield from _one("tamias_crawl_visited_total", "counter", "URLs done with since the start", now.visited)
    yield from _one("tamias_crawl_put_off_total", "counter", "Attempts repeated later", now.put_off)
    yield from _one("tamias_crawl_quads_total", "counter", "Quads read", now.quads)
    yield from _one("tamias_crawl_bytes_total", "counter", "Bytes fetched", now.bytes)
    yield from _one("tamias_crawl_in_flight", "gauge", "Requests in progress", now.in_flight)
    yield from _one("tamias_crawl_workers", "gauge", "Workers", now.workers)
    outcomes = {f'{{outcome="{_label(word)}"}}': float(n) for word, n in sorted(now.outcomes.items())}
    yield from _many("tamias_crawl_outcomes_total", "counter", "Visits by outcome", outcomes)


def _traffic(traffic: "RequestCounts") -> Iterator[str]:
    counts = {
        f'{{method="{method}",route="{_label(route)}",status="{status}"}}': float(n)
        for (method, route, status), n in sorted(traffic.requests.items())
    }
    yield from _many("tamias_http_requests_total", "counter", "Requests answered", counts)
    seconds = {f'{{route="{_label(route)}"}}': value for route, value in sorted(traffic.seconds.items())}
    yield from _many("tamias_http_seconds_total", "counter", "Seconds spent on answers", seconds)
    yield from _one("tamias_http_open", "gauge", "Requests in progress", traffic.open)


def _process() -> Iterator[str]:
    yield from _one("process_cpu_seconds_total", "counter", "Processor time", time.process_time())
    yield from _one("process_start_time_seconds", "gauge", "When the service began", _BEGUN)


def _one(name: str, kind: str, about: str, value: float) -> Iterator[str]:
    return _many(name, kind, about, {"": value})


def _many(name: str, kind: str, about: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP {name} {about}."
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{labels} {value}"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

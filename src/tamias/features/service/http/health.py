"""The health of the service, and its metrics for Prometheus."""

import asyncio
import shutil
import time
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias import __version__
from tamias.features.service.http.endpoints import EndpointTable, ResponseSpec
from tamias.features.service.http.exchange import json_answer
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.features.stats.figures import basic_figures
from tamias.filters.blocked import Blocked, blocked_figures
from tamias.plugins import load_all

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
    values: Mapping[str, float]
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
    parts = load_all("metrics").values()
    gauges = await service.pool.run(
        lambda db: [*_stored(db), *(part(db.session, service.data, service.settings) for part in parts)]
    )
    traffic = service.traffic
    requests = {
        _labels(method=method, route=route, status=status): n
        for (method, route, status), n in sorted(traffic.requests.items())
    }
    seconds = {_labels(route=route): value for route, value in sorted(traffic.seconds.items())}
    free = shutil.disk_usage(service.data).free
    gauges += [
        _one("tamias_disk_free_bytes", "Free space on the disk of the data directory", free),
        Gauge("tamias_http_requests_total", "Requests answered", requests),
        Gauge("tamias_http_seconds_total", "Seconds spent on answers", seconds),
        _one("tamias_http_open", "Requests in progress", traffic.open),
        _one("process_cpu_seconds_total", "Processor time", time.process_time()),
        _one("process_start_time_seconds", "When the service began", _BEGUN),
    ]
    if (crawl := service.crawl()) is not None:
        outcomes = {_labels(outcome=word): n for word, n in sorted(crawl.outcomes.items())}
        gauges += [
            _one("tamias_crawl_visited_total", "URLs done with since the start", crawl.visited),
            _one("tamias_crawl_put_off_total", "Attempts repeated later", crawl.put_off),
            _one("tamias_crawl_quads_total", "Quads read", crawl.quads),
            _one("tamias_crawl_bytes_total", "Bytes fetched", crawl.bytes),
            _one("tamias_crawl_in_flight", "Requests in progress", crawl.in_flight),
            _one("tamias_crawl_workers", "Workers", crawl.workers),
            Gauge("tamias_crawl_outcomes_total", "Visits by outcome", outcomes),
        ]
    text = "".join(f"{line}\n" for each in gauges for line in _lines(each))
    return Response(text, media_type="text/plain; version=0.0.4")


def _stored(db: ServiceSession) -> Iterator[Gauge]:
    """Yield what the database knows."""
    basic, frontier = basic_figures(db.session), db.frontier.figures()
    yield _one("tamias_datasets", "Watched resources", basic.datasets)
    yield _one("tamias_versions", "Versions kept", basic.versions)
    yield _one("tamias_hosts", "Hosts of resources", basic.hosts)
    yield _one("tamias_sources", "Places that name resources", basic.sources)
    yield _one("tamias_bytes", "Bytes of all versions as they came", basic.bytes)
    yield _one("tamias_stored_bytes", "Bytes that they take on disk", basic.stored_bytes)
    hosts = {"known": frontier.hosts, "leased": frontier.leased, "ready": frontier.ready}
    yield Gauge("tamias_frontier_hosts", "Hosts", {_labels(state=state): n for state, n in hosts.items()})
    urls = {
        _labels(crawl=each.name, state=state): getattr(each, state)
        for each in frontier.crawls
        for state in ("known", "open", "again")
    }
    yield Gauge("tamias_frontier_urls", "URLs", urls)
    yield blocked_counter(blocked_figures(db.session))


def blocked_counter(lists: list[Blocked]) -> Gauge:
    """Count the URLs that each block list kept out."""
    counts = {_labels(list=each.list): each.urls for each in lists}
    return Gauge("tamias_blocked_total", "URLs that block lists kept out", counts)


def _one(name: str, about: str, value: float) -> Gauge:
    return Gauge(name, about, {"": value})


def _lines(metric: Gauge) -> Iterator[str]:
    """Yield a metric as Prometheus reads it; those that only grow are counters by their names."""
    yield f"# HELP {metric.name} {metric.about}."
    yield f"# TYPE {metric.name} {'counter' if metric.name.endswith('_total') else 'gauge'}"
    for labels, value in metric.values.items():
        yield f"{metric.name}{labels} {value}"


def _labels(**labels: object) -> str:
    """Write labels of a value.

    >>> _labels(list="a\\"b", status=200)
    '{list="a\\\\"b",status="200"}'
    """
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    return "{" + ",".join(f'{name}="{str(value).translate(escapes)}"' for name, value in labels.items()) + "}"

"""The corpus in figures."""

import re

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.features.dcat.joins import JoinCandidate, read_joins
from tamias.features.service.http.endpoints import PAGED, URL, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import (
    ListPage,
    base_of,
    cursor,
    json_answer,
    limit,
    page_answer,
    parameter,
)
from tamias.features.service.service import Service
from tamias.features.stats.figures import Basic, Figures, basic_figures, read_figures

_SECONDS = 0.2
"""How old figures may be: they are asked for by pages and monitors that ask often."""


ENDPOINTS = EndpointTable()
_SKIP = re.compile(r"[0-9]{1,9}")
_NAME = re.compile(r".{1,300}")


@ENDPOINTS.get("/api/v1/stats/basic", ResponseSpec("The numbers", Basic))
async def basic(request: Request, service: Service) -> Response:
    """The archive in six numbers."""
    found = await service.lately("basic", _SECONDS, lambda db: basic_figures(db.session))
    return json_answer(request, found)


@ENDPOINTS.get("/api/v1/stats", ResponseSpec("The figures", Figures))
async def figures(request: Request, service: Service) -> Response:
    """Return all statistics: hosts, sizes, types, states, visits, traffic, storage."""
    found = await service.lately("figures", _SECONDS, lambda db: read_figures(db.session))
    return json_answer(request, found)


@ENDPOINTS.get(
    "/api/v1/joins",
    ResponseSpec("Candidates", ListPage[JoinCandidate]),
    Parameter("url", "only those of this resource, on either side", URL),
    *PAGED,
)
async def joins(request: Request, service: Service) -> Response:
    """Join candidates: columns whose values are contained in another, best first."""
    most, after, named = limit(request), cursor(request, _SKIP), parameter(request, "url")
    resource = (await service.histories.find(named)).resource.id if named else None
    skip = int(after[0]) if after else 0
    items = await service.pool.run(lambda db: read_joins(db.session, resource, skip=skip, limit=most))
    return page_answer(request, items, str(skip + most) if len(items) == most else None)


class HostDescription(msgspec.Struct, frozen=True):
    """A host."""

    host: str
    datasets: int
    resources: str
    """Where its resources are listed."""


@ENDPOINTS.get("/api/v1/hosts", ResponseSpec("Hosts", ListPage[HostDescription]), *PAGED)
async def hosts(request: Request, service: Service) -> Response:
    """The hosts of the archive, by name."""
    most, after, base = limit(request), cursor(request, _NAME), base_of(request)
    values = {"after": after[0] if after else "", "limit": most}
    rows = await service.pool.run(lambda db: db.rows("hosts", values))
    items = [HostDescription(host, n, f"{base}/api/v1/resources?host={host}") for host, n in rows]
    return page_answer(request, items, items[-1].host if len(items) == most else None)

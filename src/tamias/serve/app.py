"""The web application: every endpoint, the pages, and places for what others add."""

from collections.abc import Sequence

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from tamias.plugins import load_all
from tamias.serve.access import routes as access
from tamias.serve.access.identify import Identify
from tamias.serve.api import (
    changes,
    datasets,
    files,
    forget,
    frontier,
    hosts,
    joins,
    portals,
    resources,
    snapshots,
    stats,
    tags,
    versions,
)
from tamias.serve.events import stream
from tamias.serve.events.webhooks import routes as webhooks
from tamias.serve.feeds import ldes
from tamias.serve.http import health
from tamias.serve.http.endpoints import Directly, Endpoint, ResponseSpec, routes
from tamias.serve.http.host_check import KnownNames
from tamias.serve.http.openapi import describe_api
from tamias.serve.http.traffic import TrafficCounter
from tamias.serve.pages.html.rendering import refusal, refused_route
from tamias.serve.pages.routes import routes_of_pages
from tamias.serve.published import catalogue, data_json, oai, sitemap
from tamias.serve.published.catalogue import catalogue_routes
from tamias.serve.published.datasets import dataset_routes, negotiated
from tamias.serve.replay import cdx, memento
from tamias.serve.service import Service

_MODULES = (
    stats,
    datasets,
    files,
    resources,
    versions,
    changes,
    hosts,
    portals,
    forget,
    joins,
    snapshots,
    memento,
    cdx,
    health,
    catalogue,
    data_json,
    oai,
    sitemap,
    ldes,
    webhooks,
    frontier,
    tags,
    access,
)


def application(service: Service, endpoints: Sequence[Endpoint] = ()) -> Starlette:
    """The application. Further `endpoints` are described with the others."""
    table = [*all_endpoints(), *stream.ENDPOINTS, *endpoints]
    description = msgspec.json.encode(describe_api(table))

    async def openapi(_: Request, __: Service) -> Response:
        return Response(description, media_type="application/json")

    about = Endpoint(
        path="/api/v1/openapi.json",
        handle=openapi,
        about="This description",
        answers={200: ResponseSpec("An OpenAPI document", media_types=("application/json",))},
    )
    usual = msgspec.structs.replace(about, path="/openapi.json")
    direct = routes([*map(_with_pages, table), about, usual], service)
    return Starlette(
        routes=[
            direct,
            *dataset_routes(service),
            *catalogue_routes(),
            *negotiated(routes_of_pages(service, table), service),
        ],
        middleware=[
            Middleware(TrafficCounter, traffic=service.traffic),
            Middleware(KnownNames, address=service.settings.serve.address),
            Middleware(
                Identify,
                secret=service.secret,
                pool=service.pool,
                public=service.settings.serve.public,
            ),
            Middleware(Directly, endpoints=direct),
        ],
        exception_handlers={HTTPException: refused_route},
    )


def _with_pages(endpoint: Endpoint) -> Endpoint:
    """The same; where the pages lead people to bytes, a browser is told of errors by a page."""
    led = any(endpoint is each for module in (memento, cdx) for each in module.ENDPOINTS)
    return msgspec.structs.replace(endpoint, refusal=refusal) if led else endpoint


def all_endpoints() -> list[Endpoint]:
    """Return the endpoints of the core and of all features, without those that are made with a service."""
    tables = [*(module.ENDPOINTS for module in _MODULES), *load_all("endpoints").values()]
    return [endpoint for table in tables for endpoint in table]

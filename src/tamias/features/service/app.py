"""The web application: the endpoints and routes of all installed features."""

from collections.abc import Callable, Sequence

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from tamias.archive.closed import closing_rules
from tamias.features.service.http.callers import Identify
from tamias.features.service.http.endpoints import Directly, Endpoint, ResponseSpec, describe_api, routes
from tamias.features.service.http.exchange import show_missing_route
from tamias.features.service.http.middleware import KnownNames, TrafficCounter
from tamias.features.service.service import Service
from tamias.plugins import load_all

AddRoutes = Callable[[Service, Sequence[BaseRoute]], list[BaseRoute]]
"""Returns the routes of a service with those of a feature; called in the order of the features' names."""


def application(service: Service) -> Starlette:
    """Return the application."""
    table = all_endpoints()
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
    direct = routes([*table, about, usual], service)
    others: list[BaseRoute] = []
    add: AddRoutes
    for add in load_all("routes").values():
        others = add(service, others)
    return Starlette(
        routes=[*direct, *others],
        middleware=[
            Middleware(TrafficCounter, traffic=service.traffic),
            Middleware(KnownNames, address=service.settings.serve.address),
            Middleware(
                Identify,
                secret=service.secret,
                pool=service.pool,
                public=service.settings.serve.public,
                closed=closing_rules(service.settings.archive.closed),
            ),
            Middleware(Directly, routes=direct),
        ],
        exception_handlers={HTTPException: show_missing_route},
    )


def all_endpoints() -> list[Endpoint]:
    """Return the endpoints of all features."""
    return [endpoint for table in load_all("endpoints").values() for endpoint in table]

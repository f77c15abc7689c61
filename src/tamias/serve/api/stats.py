"""The corpus in figures."""

from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.figures import Basic, Figures, basic_figures, read_figures
from tamias.serve.http.endpoints import Endpoint, ResponseSpec
from tamias.serve.http.responses import json_answer
from tamias.serve.pages.queries import lately
from tamias.serve.service import Service

_SECONDS = 0.2
"""How old figures may be: they are asked for by pages and monitors that ask often."""


async def basic(request: Request, service: Service) -> Response:
    """Six numbers."""
    found = await lately(service, "basic", _SECONDS, lambda db: basic_figures(db.session))
    return json_answer(request, found)


async def figures(request: Request, service: Service) -> Response:
    """All of them."""
    found = await lately(service, "figures", _SECONDS, lambda db: read_figures(db.session))
    return json_answer(request, found)


ENDPOINTS = [
    Endpoint(
        path="/api/v1/stats/basic",
        handle=basic,
        about="The archive in six numbers",
        answers={200: ResponseSpec("The numbers", Basic)},
    ),
    Endpoint(
        path="/api/v1/stats",
        handle=figures,
        about="All statistics: hosts, sizes, types, states, visits, traffic, storage",
        answers={200: ResponseSpec("The figures", Figures)},
    ),
]

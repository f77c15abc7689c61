"""The corpus in figures."""

from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.figures import Basic, Figures, basic_figures, read_figures
from tamias.serve.answers import json_answer
from tamias.serve.endpoints import Answer, Endpoint
from tamias.serve.service import Service


async def basic(request: Request, service: Service) -> Response:
    """Six numbers."""
    return json_answer(request, await service.desks.ask(lambda desk: basic_figures(desk.session)))


async def figures(request: Request, service: Service) -> Response:
    """All of them."""
    return json_answer(request, await service.desks.ask(lambda desk: read_figures(desk.session)))


ENDPOINTS = [
    Endpoint(
        path="/api/v1/stats/basic",
        handle=basic,
        about="The archive in six numbers",
        answers={200: Answer("The numbers", Basic)},
    ),
    Endpoint(
        path="/api/v1/stats",
        handle=figures,
        about="All figures: hosts, sizes, types, states, attempts, traffic, storage",
        answers={200: Answer("The figures", Figures)},
    ),
]

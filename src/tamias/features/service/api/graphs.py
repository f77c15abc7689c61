"""Changes of crawled graphs between two times: by document, host and predicate."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from tamias.features.service.files.comparison import turns
from tamias.features.service.http.endpoints import EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import json_answer, since, until
from tamias.features.service.service import Service
from tamias.model.diff import GraphsDiff
from tamias.plugins import load

MOST: Final = (200_000, 256 << 20)
"""Documents that are compared here, and bytes of statements; `tamias diff` compares any."""
PATH: Final = "/api/v1/graphs/changes"

ENDPOINTS = EndpointTable()


@ENDPOINTS.get(
    PATH,
    ResponseSpec("The changes", GraphsDiff),
    Parameter("since", "RFC 3339, or a date; without it, all graphs were added"),
    Parameter("until", "the same; without it, now"),
)
async def changes(request: Request, service: Service) -> Response:
    """Counts statements of crawled documents added and removed between two times."""
    return json_answer(request, await graph_changes(request, service))


async def graph_changes(request: Request, service: Service) -> GraphsDiff:
    """The changes between the times that a request names."""
    times = since(request, "since"), until(request, "until")
    async with turns:
        found: GraphsDiff = await service.pool.run(
            lambda db: load("comparisons", "graphs")(db.session, db.open_segment, *times, MOST)
        )
        return found

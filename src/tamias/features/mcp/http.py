"""The protocol over HTTP: every POST is answered at once as JSON, and nothing is remembered between them."""

from functools import partial
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from tamias.features.mcp.protocol import LARGEST_MESSAGE, VERSIONS, answer_bytes
from tamias.features.mcp.tools import Tool
from tamias.features.service.http.endpoints import EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.params import base_of, body
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.http.secret import may_read_all
from tamias.features.service.service import Service

PATH = "/mcp"
_OWN_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


ENDPOINTS = EndpointTable()


@ENDPOINTS.post(
    PATH,
    {
        200: ResponseSpec("The answer", media_types=("application/json",)),
        202: ResponseSpec("Taken; there is nothing to answer"),
    },
    Parameter("MCP-Protocol-Version", "as agreed upon", where="header"),
    body=dict[str, Any],
)
async def _answer(request: Request, service: Service) -> Response:
    """The Model Context Protocol (Streamable HTTP): tools that read the archive, for assistants."""
    check_origin(request)
    spoken = request.headers.get("mcp-protocol-version")
    if spoken is not None and spoken not in VERSIONS:
        raise HttpProblem(400, f"MCP-Protocol-Version is one of {', '.join(VERSIONS)}")
    content = await body(request, LARGEST_MESSAGE)
    answered = await answer_bytes(content, partial(_run, service, may_read_all(request)))
    if answered is None:
        return Response(status_code=202)
    return Response(answered, media_type="application/json", headers={"Cache-Control": "no-store"})


def check_origin(request: Request) -> None:
    """Raises `HttpProblem` for a request that the page of another site made a browser send."""
    origin = request.headers.get("origin")
    if origin is None or origin == base_of(request):
        return
    try:
        host = urlsplit(origin).hostname
    except ValueError:
        host = None
    own = request.url.hostname
    if host is None or host not in _OWN_HOSTS or own not in _OWN_HOSTS:
        raise HttpProblem(403, "the Origin of the request is another site")


async def _run(service: Service, owner: bool, tool: Tool, arguments: dict[str, Any]) -> str:
    if tool.on_session is not None:
        work = tool.on_session
        return await service.pool.run(lambda db: work(db, arguments, owner))
    asking, sparql = tool.of_catalogue, service.sparql
    assert asking is not None
    if sparql is None:
        raise HttpProblem(503, "this service has no catalogue")
    return await sparql.work(lambda: asking(sparql.catalogue.ask, arguments))

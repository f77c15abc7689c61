"""The protocol over HTTP: every POST is answered at once as JSON, and nothing is remembered between them."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from tamias.crawl.catalogue.catalogue import Catalogue
from tamias.serve.http.endpoints import Endpoint, Parameter, ResponseSpec
from tamias.serve.http.params import base_of, body
from tamias.serve.http.problems import HttpProblem
from tamias.serve.http.secret import may_read_all
from tamias.serve.mcp.protocol import LARGEST_MESSAGE, VERSIONS, answer_bytes
from tamias.serve.mcp.tools import Tool
from tamias.serve.service import Service
from tamias.serve.sparql.endpoint import SparqlEndpoint

RunFor = Callable[[Service, bool, Tool, dict[str, Any]], Awaitable[str]]
PATH = "/mcp"
_OWN_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


def mcp_endpoints(endpoint: SparqlEndpoint, catalogue: Catalogue) -> list[Endpoint]:
    """To be given to the application."""
    return [
        Endpoint(
            method="POST",
            path=PATH,
            handle=partial(_posted, partial(_run, endpoint, catalogue)),
            about="The Model Context Protocol (Streamable HTTP): tools that read the archive, for assistants",
            parameters=(Parameter("MCP-Protocol-Version", "as agreed upon", where="header"),),
            answers={
                200: ResponseSpec("The answer", media_types=("application/json",)),
                202: ResponseSpec("Taken; there is nothing to answer"),
            },
            body=dict[str, Any],
        )
    ]


async def _posted(run: RunFor, request: Request, service: Service) -> Response:
    check_origin(request)
    spoken = request.headers.get("mcp-protocol-version")
    if spoken is not None and spoken not in VERSIONS:
        raise HttpProblem(400, f"MCP-Protocol-Version is one of {', '.join(VERSIONS)}")
    content = await body(request, LARGEST_MESSAGE)
    owner = may_read_all(request)
    answered = await answer_bytes(content, partial(run, service, owner))
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


async def _run(
    endpoint: SparqlEndpoint,
    catalogue: Catalogue,
    service: Service,
    owner: bool,
    tool: Tool,
    arguments: dict[str, Any],
) -> str:
    if tool.on_session is not None:
        work = tool.on_session
        return await service.pool.run(lambda db: work(db, arguments, owner))
    asking = tool.of_catalogue
    assert asking is not None
    return await endpoint.work(lambda: asking(catalogue.ask, arguments))

"""The Model Context Protocol: what each message is answered with, over HTTP without any state."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias import __version__
from tamias.features.mcp.tools import TOOLS, SparqlTool, Tool
from tamias.features.service.http.callers import may_read_all
from tamias.features.service.http.endpoints import EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import base_of, body
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.service import Service
from tamias.model.errors import TamiasError

VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""That are spoken, the newest first."""
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMETERS = -32700, -32600, -32601, -32602
LARGEST_MESSAGE: Final = 1 << 20
MOST_IN_BATCH: Final = 20
_LONGEST_ANSWER: Final = 100_000
_ABOUT: Final = (
    "An archive of the Web of Data: every version of every watched resource. Find a resource with "
    "'search', then look at its history with 'versions', at what changed with 'diff', and at its content "
    "with 'read'; "
    "'sparql' queries the catalogue (DCAT) and the crawled graphs."
)

Message = dict[str, Any]
Run = Callable[[Tool], Awaitable[str]]
"""Runs a tool. Raises `HttpProblem` or `TamiasError`."""


async def answer_bytes(content: bytes, run: Run) -> bytes | None:
    """The answer to what came; None where there is nothing to answer."""
    try:
        decoded = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _encoded(_error(None, PARSE_ERROR, f"not JSON: {error}"))
    if not isinstance(decoded, list):
        return _encoded(await answer(decoded, run))
    if not 1 <= len(decoded) <= MOST_IN_BATCH:
        return _encoded(_error(None, INVALID_REQUEST, f"a batch has 1 to {MOST_IN_BATCH} messages"))
    answers = [answered for each in decoded if (answered := await answer(each, run)) is not None]
    return msgspec.json.encode(answers) if answers else None


async def answer(message: object, run: Run) -> Message | None:
    """The answer to one message; None to a notification or an answer."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return _error(None, INVALID_REQUEST, "no message of JSON-RPC 2.0")
    method, number = message.get("method"), message.get("id")
    if "id" not in message or not isinstance(method, str):
        if isinstance(method, str) or "result" in message or "error" in message:
            return None
        return _error(None, INVALID_REQUEST, "neither a request nor a notification nor an answer")
    if not isinstance(number, str | int) or isinstance(number, bool):
        return _error(None, INVALID_REQUEST, "an id is a text or a whole number")
    parameters = message.get("params", {})
    if not isinstance(parameters, dict):
        return _error(number, INVALID_PARAMETERS, "params is an object")
    return await _answered(number, method, parameters, run)


async def _answered(number: str | int, method: str, parameters: Message, run: Run) -> Message:
    match method:
        case "initialize":
            version = parameters.get("protocolVersion")
            introduced = {
                "protocolVersion": version if version in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "tamias", "title": "Tamias", "version": __version__},
                "instructions": _ABOUT,
            }
            return _result(number, introduced)
        case "ping":
            return _result(number, {})
        case "tools/list":
            return _result(number, {"tools": [tool.describe() for tool in TOOLS.values()]})
        case "tools/call":
            return await _called(number, parameters, run)
    return _error(number, NO_METHOD, f"there is no method {method[:100]!r}")


async def _called(number: str | int, parameters: Message, run: Run) -> Message:
    kind = TOOLS.get(str(parameters.get("name")))
    if kind is None:
        return _error(number, INVALID_PARAMETERS, f"there is no tool {str(parameters.get('name'))[:100]!r}")
    try:
        tool = msgspec.convert(parameters.get("arguments", {}), kind)
    except msgspec.ValidationError as error:
        return _result(number, _said(f"{kind.name}: {error}", failed=True))
    try:
        return _result(number, _said(await run(tool)))
    except (HttpProblem, TamiasError) as error:
        return _result(number, _said(str(error), failed=True))


def _said(text: str, *, failed: bool = False) -> Message:
    if len(text) > _LONGEST_ANSWER:
        text = f"{text[:_LONGEST_ANSWER]}\n[cut here: {len(text)} characters in all]"
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def _result(number: str | int, result: Message) -> Message:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _error(number: str | int | None, code: int, words: str) -> Message:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": words}}


def _encoded(message: Message | None) -> bytes | None:
    return None if message is None else msgspec.json.encode(message)


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


async def _run(service: Service, owner: bool, tool: Tool) -> str:
    if not isinstance(tool, SparqlTool):
        return await service.pool.run(lambda db: tool.answer(db, owner=owner))
    sparql = service.sparql
    if sparql is None:
        raise HttpProblem(503, "this service has no catalogue")
    return await sparql.work(lambda: tool.ask(sparql.catalogue.ask))

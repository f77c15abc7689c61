"""Endpoints: what each does and what a client must know of it. Routes and OpenAPI are made from them."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tamias import __version__
from tamias.access.audit import record
from tamias.features.service.http.callers import check_scope, record_of
from tamias.features.service.http.exchange import show_problem
from tamias.features.service.http.problems import MEDIA_TYPE, HttpProblem, ProblemDocument, problem_of
from tamias.features.service.service import Service
from tamias.features.tokens.tokens import AccessScope

_log = logging.getLogger(__name__)

Handle = Callable[[Request, Service], Awaitable[Response]]
Schema = dict[str, Any]
Method = Literal["GET", "POST", "DELETE"]

TEXT: Schema = {"type": "string"}
URL: Schema = {"type": "string", "minLength": 1, "examples": ["https://example.org/data.csv"]}
ID: Schema = {"type": "string", "pattern": "^[0-9a-f]{24}(_[1-9][0-9]{0,8})?$"}


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a route."""

    name: str
    about: str
    schema: Schema = msgspec.field(default_factory=lambda: TEXT)
    where: Literal["query", "path", "header"] = "query"
    required: bool = False


class ResponseSpec(msgspec.Struct, frozen=True):
    """A response of a route that succeeds."""

    about: str
    form: Any = None
    """The type of a JSON answer."""
    media_types: tuple[str, ...] = ()
    """Of other answers; `*/*` is whatever was archived."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A route and its method."""

    method: Method = "GET"
    path: str
    """As OpenAPI writes it; a last `{URL}` or `{TYPE}` takes the rest of the path, slashes and all."""
    handle: Handle
    about: str
    parameters: tuple[Parameter, ...] = ()
    answers: dict[int, ResponseSpec]
    body: Any = None
    scope: AccessScope | None = None
    """What a caller must be allowed; None: everybody may call it, and it changes nothing."""
    bounded: bool = False
    """Whether it checks itself that what it concerns is within the bounds of a caller (`check_targets`)."""
    for_people: bool = False
    """Whether pages link to it, so that a browser gets a page for an error."""

    @property
    def secret(self) -> bool:
        """Return whether a caller needs the secret or a token."""
        return self.scope is not None


Answers = ResponseSpec | dict[int, ResponseSpec]
Register = Callable[[Handle], Handle]


class EndpointTable(list[Endpoint]):
    """The endpoints of a module; its methods decorate handlers, whose docstrings describe the routes."""

    def add(
        self, method: Method, path: str, answers: Answers, *parameters: Parameter, **options: Any
    ) -> Register:
        """Register a handler, with its response for the status 200 or for each status."""

        def register(handle: Handle) -> Handle:
            about = options.pop("about", None) or (handle.__doc__ or "").partition("\n")[0].rstrip(".")
            given = {"answers": answers if isinstance(answers, dict) else {200: answers}, **options}
            self.append(
                Endpoint(method=method, path=path, handle=handle, about=about, parameters=parameters, **given)
            )
            return handle

        return register

    def get(self, path: str, answers: Answers, *parameters: Parameter, **options: Any) -> Register:
        """Register a handler of GET and HEAD."""
        return self.add("GET", path, answers, *parameters, **options)

    def post(self, path: str, answers: Answers, *parameters: Parameter, **options: Any) -> Register:
        """Register a handler of POST."""
        return self.add("POST", path, answers, *parameters, **options)


LIMIT = Parameter(
    "limit", "how many items", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
)
CURSOR = Parameter("cursor", "the cursor that the previous page returned")
PAGED = (LIMIT, CURSOR)
FOR_TRAINING = Parameter(
    "for", "training: leave out what servers refuse for the training of models", {"enum": ["training"]}
)
_REST = ("{URL}", "{TYPE}")


def path_parameter(name: str, about: str, schema: Schema = TEXT) -> Parameter:
    """A part of the path."""
    return Parameter(name, about, schema, "path", required=True)


def routes(endpoints: Sequence[Endpoint], service: Service) -> list[Route]:
    """The endpoints as routes of an application; those that take the rest of a path come last."""
    ordered = sorted(endpoints, key=lambda each: -len(_fixed_part(each.path)))
    return [Route(_pattern(each.path), _endpoint(each, service), methods=[each.method]) for each in ordered]


class Directly:
    """Middleware that finds endpoints by the beginning of a path: Starlette would try each in turn."""

    def __init__(self, app: ASGIApp, routes: Sequence[Route]) -> None:
        self._app = app
        self._by_path: dict[str, list[Route]] = {}
        self._by_beginning: list[tuple[str, Route]] = []
        for route in routes:
            if route.param_convertors:
                self._by_beginning.append((_fixed_part(route.path), route))
            else:
                self._by_path.setdefault(route.path, []).append(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer. No error gets out of an endpoint, so nothing is put around it to catch one."""
        for route in self._candidates(scope["path"]) if scope["type"] == "http" else ():
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                response = await found["endpoint"](Request(scope, receive, send))
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _candidates(self, path: str) -> Iterator[Route]:
        yield from self._by_path.get(path, ())
        for beginning, route in self._by_beginning:
            if path.startswith(beginning):
                yield route


def _fixed_part(path: str) -> str:
    return path.partition("{")[0]


def _pattern(path: str) -> str:
    for rest in _REST:
        if path.endswith(rest):
            return path.removesuffix("}") + ":path}"
    return path


def _endpoint(endpoint: Endpoint, service: Service) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        request.scope["tamias.route"] = endpoint.path
        try:
            given = await _call(endpoint, request, service)
            if endpoint.method != "GET":
                service.histories.cache.forget_all()
        except Exception as error:  # noqa: BLE001 - every error has a document
            return show_problem(request, error) if endpoint.for_people else problem_of(error).response()
        return given

    return answer


async def _call(endpoint: Endpoint, request: Request, service: Service) -> Response:
    """A call that changes something is noted, however it ends, if its caller is known."""
    if endpoint.scope is None:
        return await endpoint.handle(request, service)
    if endpoint.method == "GET":
        check_scope(request, endpoint.scope, bounded=True)
        return await endpoint.handle(request, service)
    what = f"{endpoint.method} {endpoint.path}"
    try:
        check_scope(request, endpoint.scope, bounded=endpoint.bounded)
        given = await endpoint.handle(request, service)
    except Exception as error:  # noqa: BLE001 - every error is noted
        raise await note_failure(request, service, what, error) from None
    await note_call(request, service, what)
    return given


async def note_failure(request: Request, service: Service, what: str, error: Exception) -> HttpProblem:
    """Writes a call that failed into the audit log; returns what its caller is told."""
    problem = problem_of(error)
    await note_call(request, service, what, f"{problem.status} {problem.detail}")
    return problem


async def note_call(request: Request, service: Service, what: str, outcome: str = "ok") -> None:
    """Writes a call into the audit log; those of nobody are only counted, as all requests are.

    The call is over: where the log cannot be written, its caller is told nevertheless how it ended.
    """
    caller = record_of(request).caller
    if caller is None:
        return
    targets = record_of(request).targets
    try:
        await service.pool.run(
            lambda db: record(db.session, service.data, caller.name, what, targets, outcome)
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, the call was answered
        _log.error("cannot write the audit log: %s by '%s': %s", what, caller.name, error)


_REFERENCES = "#/components/schemas/{name}"


def describe_api(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """An OpenAPI 3.1 document."""
    schemas, components = msgspec.json.schema_components(_forms(endpoints), ref_template=_REFERENCES)
    known = dict(zip((str(form) for form in _forms(endpoints)), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        spec = _operation(endpoint, known)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = spec
        if endpoint.method == "GET":
            bare = {
                status: {"description": response["description"]}
                for status, response in spec["responses"].items()
            }
            head = {"operationId": f"head{spec['operationId'][3:]}", "responses": bare}
            paths[endpoint.path]["head"] = {**spec, **head}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tamias",
            "version": __version__,
            "summary": "An archive of the Web of Data: every version of every watched resource.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": _SECURITY},
    }


_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "secret": {"type": "apiKey", "in": "query", "name": "secret"},
}


def _forms(endpoints: Sequence[Endpoint]) -> list[Any]:
    """Return each type that an endpoint takes or gives, once."""
    given = [answer.form for each in endpoints for answer in each.answers.values() if answer.form is not None]
    taken = [each.body for each in endpoints if each.body is not None]
    return list({str(form): form for form in [ProblemDocument, *given, *taken]}.values())


def _operation(endpoint: Endpoint, known: dict[str, Any]) -> dict[str, Any]:
    problem = {
        "description": "What went wrong",
        "content": {MEDIA_TYPE: {"schema": known[str(ProblemDocument)]}},
    }
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()} {endpoint.path}",
        "summary": endpoint.about,
        "parameters": [
            {
                "name": each.name,
                "in": each.where,
                "required": each.required,
                "description": each.about,
                "schema": each.schema,
            }
            for each in endpoint.parameters
        ],
        "responses": {
            **{str(status): _response(answer, known) for status, answer in endpoint.answers.items()},
            "default": problem,
        },
    }
    if endpoint.body is not None:
        content = {"application/json": {"schema": known[str(endpoint.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    if endpoint.secret:
        operation["security"] = [{"bearer": [endpoint.scope]}, {"secret": []}]
    return operation


def _response(answer: ResponseSpec, known: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.about}
    content: dict[str, Any] = {}
    if answer.form is not None:
        content["application/json"] = {"schema": known[str(answer.form)]}
    content |= {media_type: {} for media_type in answer.media_types}
    return {**described, "content": content} if content else described

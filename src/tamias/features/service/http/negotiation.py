"""The form of a response that a client would rather have: HTML, JSON or CSV, packed or not, errors too."""

import gzip
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tamias.features.catalogue.result_formats import weighed
from tamias.features.service.http.problems import HttpProblem, problem_of
from tamias.plugins import load_all

Answer = Callable[[Request], Awaitable[Response]]
ProblemPage = Callable[[Request, HttpProblem], Response]
"""Shows an error to people, who prefer HTML."""

FORMS = {"html": "text/html", "json": "application/json", "csv": "text/csv"}
_JSON = ("application/problem+json", "application/json")
_LONGEST_ACCEPT = 4096
_WORTH_PACKING = 1400
"""Bytes; less fits into one packet anyway."""
_LEVEL = 5


def wanted_form(request: Request) -> str:
    """`html`, `json` or `csv`: as `?format=` says, else as the Accept header does."""
    given = request.query_params.get("format")
    if given is None:
        return preferred(request.headers.get("accept", ""))
    if given not in FORMS:
        raise HttpProblem(400, f"'format' must be one of {', '.join(FORMS)}")
    return given


def preferred(accept: str) -> str:
    """The form that an Accept header names with the greatest weight; a page where it names none.

    >>> preferred("text/html,*/*;q=0.8"), preferred("*/*"), preferred("application/json, text/csv;q=0.5")
    ('html', 'html', 'json')
    """
    weights = _weights(accept)
    best = max(FORMS, key=lambda form: weights.get(FORMS[form], 0.0))
    return best if weights.get(FORMS[best], 0.0) > 0 else "html"


def prefers_html(accept: str) -> bool:
    """Return whether an Accept header prefers a page to JSON.

    >>> prefers_html("text/html,*/*;q=0.8"), prefers_html("*/*")
    (True, False)
    >>> prefers_html("text/html;q=0.5, application/json")
    False
    """
    weights = _weights(accept)
    return weights.get("text/html", 0.0) > max(weights.get(name, 0.0) for name in _JSON)


def show_problem(request: Request, error: Exception) -> Response:
    """Return an error as a page for whoever prefers that, else as a problem document."""
    problem = problem_of(error)
    pages: list[ProblemPage] = [*load_all("problem_pages").values()]
    wants_page = pages and prefers_html(request.headers.get("accept", ""))
    answer = pages[0](request, problem) if wants_page else problem.response()
    answer.headers["Vary"] = "Accept"
    return answer


async def show_missing_route(request: Request, error: Exception) -> Response:
    """Return what Starlette itself refuses: no such route, no such method."""
    path, problem = request.url.path, problem_of(error)
    details = {
        404: f"there is no page {path} here; /api lists all routes",
        405: f"{path} takes no {request.method}",
    }
    detail = details.get(problem.status, problem.detail)
    return show_problem(request, HttpProblem(problem.status, detail, problem.headers))


def guarded_route(path: str, answer: Answer, method: str = "GET") -> Route:
    """Return a route that packs its responses and shows errors as a page or a problem document."""

    async def guarded(request: Request) -> Response:
        request.scope["tamias.route"] = path
        try:
            return packed(request, await answer(request))
        except Exception as error:  # noqa: BLE001 - every error has a page
            return packed(request, show_problem(request, error))

    return Route(path, guarded, methods=[method])


def packed(request: Request, answer: Response) -> Response:
    """The same answer, smaller where the client takes gzip."""
    content = bytes(getattr(answer, "body", b""))  # what is streamed has none
    if len(content) < _WORTH_PACKING or "content-encoding" in answer.headers or not takes_gzip(request):
        return answer
    answer.body = gzip.compress(content, _LEVEL, mtime=0)
    answer.headers["Content-Encoding"] = "gzip"
    answer.headers["Content-Length"] = str(len(answer.body))
    answer.headers.setdefault("Vary", "Accept-Encoding")
    return answer


def takes_gzip(request: Request) -> bool:
    """Return whether the client accepts gzip."""
    return _weights(request.headers.get("accept-encoding", "")).get("gzip", 0.0) > 0


def _weights(header: str) -> dict[str, float]:
    return dict(map(weighed, header[:_LONGEST_ACCEPT].split(",")))

"""Values to HTML: the templates, how they write figures, and the headers that every page has."""

from collections.abc import Mapping
from http import HTTPStatus
from math import log
from typing import Any, Final
from urllib.parse import quote

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from tamias.serve.problems import Problem, problem_of

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-cache",
}
_JSON = ("application/problem+json", "application/json")
_LONGEST_ACCEPT = 4096
_UNITS = ("KiB", "MiB", "GiB", "TiB")


def html(template: str, values: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    """A page."""
    return HTMLResponse(_TEMPLATES.get_template(template).render(values), status, headers=HEADERS)


def refusal(request: Request, error: Exception) -> Response:
    """An error as a page for whoever prefers that, else as a problem document."""
    problem = problem_of(error)
    answer = _problem_page(problem) if prefers_html(request.headers.get("accept", "")) else problem.response()
    answer.headers["Vary"] = "Accept"
    return answer


async def refused_route(request: Request, error: Exception) -> Response:
    """For what Starlette itself refuses: no such route, no such method."""
    return refusal(request, error)


def prefers_html(accept: str) -> bool:
    """Whether an Accept header would rather have a page than JSON.

    >>> prefers_html("text/html,*/*;q=0.8"), prefers_html("*/*")
    (True, False)
    >>> prefers_html("text/html;q=0.5, application/json")
    False
    """
    weights = dict(_weighed(part) for part in accept[:_LONGEST_ACCEPT].split(","))
    return weights.get("text/html", 0.0) > max(weights.get(name, 0.0) for name in _JSON)


def size(octets: float) -> str:
    """Bytes as people say them.

    >>> size(999), size(1536), size(3 << 30)
    ('999 B', '1.5 KiB', '3.0 GiB')
    """
    if octets < 1024:
        return f"{octets:.0f} B"
    power = min(int(log(octets, 1024)), len(_UNITS))
    return f"{octets / 1024**power:.1f} {_UNITS[power - 1]}"


def number(value: float) -> str:
    """A count with its thousands apart; a fraction with what can be told of it.

    >>> number(1234567).split(), number(0.12345)
    (['1', '234', '567'], '0.123')
    """
    return f"{value:,}".replace(",", "\u00a0") if isinstance(value, int) else f"{value:.3g}"


def is_web(address: object) -> bool:
    """Whether an address may be made a link: `javascript:` and its like are only shown."""
    return isinstance(address, str) and address.lower().startswith(("http://", "https://"))


def cells(value: object) -> list[tuple[str, str]]:
    """A value of a diff as names and texts; without names where it has none."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [(str(name), _shown(each)) for name, each in value.items()]
    return [("", _shown(value))]


def _shown(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _weighed(part: str) -> tuple[str, float]:
    name, *parameters = (each.strip().lower() for each in part.split(";"))
    told = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        return name, float(told)
    except ValueError:
        return name, 0.0


def _problem_page(problem: Problem) -> Response:
    values = {
        "status": problem.status,
        "phrase": HTTPStatus(problem.status).phrase,
        "detail": problem.detail,
        "data": None,
    }
    answer = html("problem.html", values, problem.status)
    answer.headers.update(problem.headers)
    return answer


def _templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("tamias.serve.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(size=size, number=number, cells=cells, quoted=lambda text: quote(text, safe=""))
    made.tests["web"] = is_web
    return made


_TEMPLATES = _templates()

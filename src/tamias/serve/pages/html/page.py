"""A page: where it is, what it shows, and its data as JSON and CSV. Routes come from it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tamias.serve.http.problems import HttpProblem
from tamias.serve.http.responses import json_answer
from tamias.serve.http.secret import SignedIn, session_of
from tamias.serve.pages.html.negotiation import packed, wanted_form
from tamias.serve.pages.html.rendering import html, refusal, this_page
from tamias.serve.pages.html.tables import CsvTable, csv_answer
from tamias.serve.service import Service

Answered = Callable[[Request], Awaitable[Response]]


class HtmlPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page."""

    path: str
    template: str
    view: Callable[[Request, Service], Awaitable[Any]]
    """What it shows: a value that can be JSON, and that its template calls `view`."""
    data: str
    """Where that value is as JSON."""
    elsewhere: bool = False
    """Whether `data` is a route of others, which says the same and more."""
    table: Callable[[Any], CsvTable] | None = None
    """The rows of a view whose page is mainly a table, for whoever wants CSV."""
    headers: dict[str, str] = {}
    """Beside, or instead of, those that every page has."""


def page_routes(pages: Sequence[HtmlPage], service: Service) -> list[Route]:
    """Two for each page; those of the data come first, for the name of a thing could end in `.json`."""
    data = [
        Route(page.data, guarded(page.data, _data_of(page, service))) for page in pages if not page.elsewhere
    ]
    return data + [Route(page.path, guarded(page.path, _page_of(page, service))) for page in pages]


def guarded(path: str, answered: Answered) -> Answered:
    """The same, packed, with every error told as a page or as a problem document."""

    async def answer(request: Request) -> Response:
        request.scope["tamias.route"] = path
        try:
            return packed(request, await answered(request))
        except Exception as error:  # noqa: BLE001 - every error has a page
            return packed(request, refusal(request, error))

    return answer


def _page_of(page: HtmlPage, service: Service) -> Answered:
    async def answer(request: Request) -> Response:
        form = wanted_form(request)
        view = await page.view(request, service)
        answer = _in_form(page, request, view, form, session_of(request))
        answer.headers["Vary"] = "Accept, Accept-Encoding, Cookie"
        return answer

    return answer


def _in_form(page: HtmlPage, request: Request, view: Any, form: str, session: SignedIn | None) -> Response:
    if form == "json":
        return json_answer(request, view)
    if form == "csv":
        if page.table is None:
            raise HttpProblem(406, f"{page.path} is not a table and has no CSV; ?format=json has its data")
        return csv_answer(page.table(view))
    values = {
        "view": view,
        "here": page.path,
        "data": _address_of_data(page, request),
        "csv": page.table and _address_of_csv(request),
        "session": session,
        "this_page": this_page(request),
    }
    return html(page.template, values, headers=page.headers)


def _data_of(page: HtmlPage, service: Service) -> Answered:
    async def answer(request: Request) -> Response:
        return json_answer(request, await page.view(request, service))

    return answer


def _address_of_data(page: HtmlPage, request: Request) -> str:
    names = {name: quote(str(value), safe="") for name, value in request.path_params.items()}
    query = request.url.query
    return page.data.format(**names) + (f"?{query}" if query else "")


def _address_of_csv(request: Request) -> str:
    asked = {**request.query_params, "format": "csv"}
    return f"{request.scope['raw_path'].decode('latin-1')}?{urlencode(asked)}"

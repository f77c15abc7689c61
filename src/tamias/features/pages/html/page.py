"""A page: where it is, what it shows, and its data as JSON and CSV. Routes come from it."""

import csv
import io
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tamias.cli.console.output import csv_cell
from tamias.features.pages.html.rendering import html, this_page
from tamias.features.service.http.negotiation import Answer, guarded_route, wanted_form
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.http.responses import json_answer
from tamias.features.service.http.secret import SignedIn, session_of
from tamias.features.service.service import Service


class CsvTable(msgspec.Struct, frozen=True):
    """Columns and rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def table_of(items: Sequence[msgspec.Struct], *columns: str) -> CsvTable:
    """Items with some of their fields as columns."""
    return CsvTable(columns, [[getattr(each, name) for name in columns] for each in items])


def csv_answer(table: CsvTable) -> Response:
    """The table as RFC 4180 writes it, in UTF-8.

    >>> csv_answer(CsvTable(["=1+1"], [["=2+2"]])).body
    b"'=1+1\\r\\n'=2+2\\r\\n"
    """
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow([csv_cell(name) for name in table.columns])
    lines.writerows([csv_cell(value) for value in row] for row in table.rows)
    headers = {"Cache-Control": "no-cache", "Content-Disposition": 'inline; filename="tamias.csv"'}
    return Response(text.getvalue(), headers=headers, media_type="text/csv; header=present")


class HtmlPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page that is served as HTML, JSON and perhaps CSV."""

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
    data = [guarded_route(page.data, _data_of(page, service)) for page in pages if not page.elsewhere]
    return data + [guarded_route(page.path, _page_of(page, service)) for page in pages]


def _page_of(page: HtmlPage, service: Service) -> Answer:
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


def _data_of(page: HtmlPage, service: Service) -> Answer:
    async def answer(request: Request) -> Response:
        return json_answer(request, await page.view(request, service))

    return answer


def _address_of_data(page: HtmlPage, request: Request) -> str:
    names = {name: quote(str(value), safe="") for name, value in request.path_params.items()}
    query = request.url.query
    return page.data.format(**names) + (f"?{query}" if query else "")


def _address_of_csv(request: Request) -> str:
    parameters = {**request.query_params, "format": "csv"}
    return f"{request.scope['raw_path'].decode('latin-1')}?{urlencode(parameters)}"

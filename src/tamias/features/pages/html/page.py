"""Pages: where each is, what it shows as HTML, JSON or CSV, and what templates and static files need."""

import csv
import gzip
import io
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, partial, reduce
from hashlib import blake2b
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import jinja2
import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from tamias.cli.console.options import duration, size
from tamias.cli.console.output import csv_cell
from tamias.features.dcat.terms import PREFIXES
from tamias.features.pages.html import charts
from tamias.features.pages.jsonld import embedded
from tamias.features.service.http.callers import record_of
from tamias.features.service.http.exchange import guarded_route, json_answer, takes_gzip, wanted_form
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.service import Service
from tamias.plugins import installed_features, parts

PATH = "/static/{name}"
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOLDERS = ("static", "libraries")
"""Ours, and those that `make browser` fetches: absent where it was not run."""
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
_UNNAMED = {**_FOR_EVER, "Cache-Control": "no-cache"}


def address(name: str) -> str:
    """Return the address of a static file, which is another one when the file changes."""
    digest = blake2b(_FILES[name], digest_size=6).hexdigest()
    return f"/static/{name}?v={digest}"


def has_library(name: str) -> bool:
    """Return whether a file that comes from npm is there."""
    return name in _FILES


def static_route() -> Route:
    """Return the route of all static files."""
    return Route(PATH, _sent, methods=["GET"])


async def _sent(request: Request) -> Response:
    request.scope["tamias.route"] = PATH
    name = request.path_params["name"]
    content = _FILES.get(name)
    if content is None:
        return HttpProblem(404, "there is no such file").response()
    headers = _FOR_EVER if "v" in request.query_params else _UNNAMED
    if takes_gzip(request):
        content, headers = _packed(name), {**headers, "Content-Encoding": "gzip"}
    return Response(content, headers=headers, media_type=_TYPES[name.rpartition(".")[2]])


@cache
def _packed(name: str) -> bytes:
    return gzip.compress(_FILES[name], mtime=0)


def _in(folder: Traversable) -> dict[str, bytes]:
    if not folder.is_dir():
        return {}
    found = [each for each in folder.iterdir() if each.name.rpartition(".")[2] in _TYPES]
    return {each.name: each.read_bytes() for each in found}


_PAGES = files("tamias.features.pages")
_FILES = {name: body for folder in _FOLDERS for name, body in _in(_PAGES.joinpath(folder)).items()}


POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}


def html(
    template: str, values: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """A page, or a part of one."""
    text = _TEMPLATES.get_template(template).render(values, now=time.time())
    return HTMLResponse(text, status, headers={**HEADERS, **(headers or {})})


def this_page(request: Request) -> str:
    """The address of the page that was asked for, on this service."""
    path, query = (request.scope[name].decode("latin-1") for name in ("raw_path", "query_string"))
    return f"{path}?{query}" if query else path


def number(value: float) -> str:
    """Return a count with commas between thousands, or a fraction with three digits.

    >>> number(1234567), number(0.12345)
    ('1,234,567', '0.123')
    """
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def distance(at: str, now: float) -> str:
    """Return how far a time is from now.

    >>> distance("2026-01-01T00:00:00Z", 1767225600 + 7200), distance("2026-01-01T00:00:00Z", 1767225500)
    ('2 hours ago', 'in 2 minutes')
    """
    seconds = now - datetime.fromisoformat(at).timestamp()
    if abs(seconds) < 1:
        return "now"
    return f"{duration(seconds)} ago" if seconds > 0 else f"in {duration(-seconds)}"


def site(address: str) -> str:
    """The host and the path of a URL, as people name a site.

    >>> site("https://data.example:8080/"), site("https://data.example/portal/#ckan")
    ('data.example:8080', 'data.example/portal')
    """
    split = urlsplit(address)
    return (split.netloc + split.path).rstrip("/") or address


def is_web(address: object) -> bool:
    """Return whether an address may become a link; `javascript:` and its like may not."""
    return isinstance(address, str) and address.lower().startswith(("http://", "https://"))


def cells(value: object) -> list[tuple[str, str]]:
    """A value of a diff as names and texts; without names where it has none."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [(str(name), str(each)) for name, each in value.items()]
    return [("", str(value))]


def sentence(text: str) -> str:
    """A message as a sentence of its own.

    >>> sentence("there is no crawl 'x'"), sentence("http://a.example/ is gone")
    ("There is no crawl 'x'.", 'http://a.example/ is gone.')
    """
    start = text.partition(" ")[0]
    first = text[:1].upper() if start.isalpha() else text[:1]
    return first + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def shortened(term: str) -> str:
    """A term of N-Triples with the prefix that people know it by.

    >>> shortened("<http://www.w3.org/2004/02/skos/core#broader>"), shortened("<http://a.example/b>")
    ('skos:broader', '<http://a.example/b>')
    >>> shortened('"7"^^<http://www.w3.org/2001/XMLSchema#integer>')
    '"7"^^xsd:integer'
    """
    literal, mark, iri = term.rpartition("^^") if term.startswith('"') else ("", "", term)
    if not iri.startswith("<"):
        return term
    for prefix, space in PREFIXES.items():
        if iri.startswith(space, 1) and iri[1 + len(space) : -1].isidentifier():
            return f"{literal}{mark}{prefix}:{iri[1 + len(space) : -1]}"
    return term


def problem_page(request: Request, problem: HttpProblem) -> Response:
    """Show an error to people."""
    view = {"status": problem.status, "detail": problem.detail}
    values = {"view": view, "phrase": HTTPStatus(problem.status).phrase, "here": None, "data": None}
    found = {"session": record_of(request).session, "this_page": this_page(request)}
    return html("problem.html", {**values, **found}, problem.status, problem.headers)


def _templates() -> jinja2.Environment:
    with_pages = (each.feature for each in installed_features() if each.is_on and each.feature.parts("pages"))
    packages = ["tamias.features.pages", *(feature.module for feature in with_pages)]
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        size=size,
        site=site,
        clock=charts.clock,
        sentence=sentence,
        shortened=shortened,
        number=number,
        cells=cells,
        distance=distance,
        duration=duration,
        quoted=lambda text: quote(text, safe=""),
        combined=lambda one, other: {**one, **other},
        most_changed=lambda counted: sorted(
            counted.items(), key=lambda e: (-e[1].added - e[1].removed, e[0])
        ),
        hover=charts.text_of_slot,
        stack=lambda slot: [each for each in slot.values() if isinstance(each, int)],
        embedded=lambda document: Markup(embedded(document)),  # noqa: S704 - without any < in it
    )
    made.tests["web"] = is_web
    made.globals.update(
        asset=address,
        has_library=has_library,
        charts=charts,
        csv=None,
        has_endpoints=parts("endpoints").__contains__,
        has_page=parts("pages").__contains__,
        session=None,
        this_page="/",
    )
    return made


_TEMPLATES = _templates()


class CsvTable(msgspec.Struct, frozen=True):
    """Columns and rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def table_of(items: str, *columns: str) -> Callable[[Any], CsvTable]:
    """Return what makes a table of some items of a view, or of a view that is a list, by these fields."""

    def table(view: Any) -> CsvTable:
        found = reduce(_field, filter(None, items.split(".")), view)
        return CsvTable(columns, [[_field(each, name) for name in columns] for each in found])

    return table


def _field(value: Any, name: str) -> Any:
    return value[name] if isinstance(value, dict) else getattr(value, name)


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


View = Callable[[Request, Service], Awaitable[Any]]


class HtmlPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page that is served as HTML, JSON and perhaps CSV."""

    path: str
    template: str
    view: View
    """What it shows: a value that can be JSON, and that its template calls `view`."""
    data: str
    """Where that value is as JSON."""
    elsewhere: bool = False
    """Whether `data` is a route of others, which says the same and more."""
    table: Callable[[Any], CsvTable] | None = None
    """The rows of a view whose page is mainly a table, for whoever wants CSV."""
    headers: dict[str, str] = {}
    """Beside, or instead of, those that every page has."""


def page(path: str, template: str, **words: Any) -> Callable[[View], HtmlPage]:
    """Make a page of the function that returns what it shows. Its JSON is at the same path with `.json`."""
    return lambda view: HtmlPage(
        **{"path": path, "template": template, "view": view, "data": f"{path}.json", **words}
    )


def page_routes(pages: Sequence[HtmlPage], service: Service) -> list[Route]:
    """Two for each page; those of the data come first, for the name of a thing could end in `.json`."""
    data = [
        guarded_route(each.data, partial(_show_data, each, service)) for each in pages if not each.elsewhere
    ]
    return data + [guarded_route(each.path, partial(_show, each, service)) for each in pages]


async def _show(page: HtmlPage, service: Service, request: Request) -> Response:
    form = wanted_form(request)
    view = await page.view(request, service)
    if form == "json":
        answer = json_answer(request, view)
    elif form == "html":
        answer = html_page(request, page, view)
    elif page.table is not None:
        answer = csv_answer(page.table(view))
    else:
        raise HttpProblem(406, f"{page.path} is not a table and has no CSV; ?format=json has its data")
    answer.headers["Vary"] = "Accept, Accept-Encoding, Cookie"
    return answer


def html_page(request: Request, page: HtmlPage, view: Any, status: int = 200) -> Response:
    """Return a page as HTML, also as the answer to a form."""
    here = this_page(request)
    path, _, query = here.partition("?")
    names = {name: quote(str(value), safe="") for name, value in request.path_params.items()}
    values = {
        "view": view,
        "here": page.path,
        "data": page.data.format(**names) + (f"?{query}" if query else ""),
        "csv": page.table and f"{path}?{urlencode({**request.query_params, 'format': 'csv'})}",
        "session": record_of(request).session,
        "this_page": here,
    }
    return html(page.template, values, status, page.headers)


async def _show_data(page: HtmlPage, service: Service, request: Request) -> Response:
    return json_answer(request, await page.view(request, service))

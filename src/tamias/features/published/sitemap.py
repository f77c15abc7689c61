"""The sitemap for crawlers, with the Semantic Sitemap extension, and robots.txt."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final
from xml.sax.saxutils import escape

from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import rfc3339
from tamias.features.dcat.terms import bases_of
from tamias.features.published.graphs import SQL
from tamias.features.service.http.endpoints import EndpointTable, ResponseSpec, path_parameter
from tamias.features.service.http.exchange import base_of
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import unlisted
from tamias.features.service.service import Service
from tamias.features.stats.figures import basic_figures
from tamias.model.site import NAMESPACE

PLACES_A_PART: Final = 50_000
"""As many as one sitemap may have."""
MOST_PARTS: Final = 50_000
_SPACE: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
_PAGES: Final = ("/", "/search", "/query", "/api")
_NOT_FOR_ROBOTS: Final = (
    "/api/v1/", "/cdx", "/mcp", "/memento/", "/sparql", "/timegate/", "/timemap/", "/dataset/*/diff",
    "/query/send",
)  # fmt: skip
XML: Final = "application/xml"
Row = tuple[Any, ...]


ENDPOINTS = EndpointTable()


@ENDPOINTS.get("/sitemap.xml", ResponseSpec("A sitemap", media_types=(XML,)))
async def whole(request: Request, service: Service) -> Response:
    """The sitemap, with the Semantic Sitemap extension; an index if there are many datasets."""
    return await _sitemap(request, service, None)


@ENDPOINTS.get(
    "/sitemap/{part}.xml",
    ResponseSpec("A sitemap", media_types=(XML,)),
    path_parameter("part", "from 1 on", {"type": "integer", "minimum": 1}),
)
async def part(request: Request, service: Service) -> Response:
    """Return one part of the sitemap."""
    return await _sitemap(request, service, request.path_params["part"])


@ENDPOINTS.get("/robots.txt", ResponseSpec("robots.txt", media_types=("text/plain",)))
async def robots(request: Request, _: Service) -> Response:
    """Rules for robots."""
    lines = ["User-agent: *", *(f"Disallow: {path}" for path in _NOT_FOR_ROBOTS)]
    lines += ["", f"Sitemap: {base_of(request)}/sitemap.xml"]
    return Response("\n".join(lines) + "\n", media_type="text/plain")


def parts_of(total: int) -> int:
    """Return the number of parts of the sitemap.

    >>> parts_of(0), parts_of(49_996), parts_of(49_997)
    (1, 1, 2)
    """
    return -(-(total + len(_PAGES)) // PLACES_A_PART)


def index_lines(base: str, parts: int, latest: int | None) -> Iterator[str]:
    """The index of all parts."""
    yield f'<sitemapindex xmlns="{_SPACE}">'
    for number in range(1, min(parts, MOST_PARTS) + 1):
        yield f"<sitemap><loc>{escape(base)}/sitemap/{number}.xml</loc>{_lastmod(latest)}</sitemap>"
    yield "</sitemapindex>"


def part_lines(base: str, rows: Iterable[Row], semantic: Sequence[str]) -> Iterator[str]:
    """The pages of datasets, each with the time of its last version; the first part has the other pages."""
    yield f'<urlset xmlns="{_SPACE}" xmlns:sc="{NAMESPACE}">'
    yield from semantic
    for path in _PAGES if semantic else ():
        yield f"<url><loc>{escape(base)}{path}</loc></url>"
    for resource, captured_at in rows:
        yield f"<url><loc>{escape(base)}/dataset/{resource}</loc>{_lastmod(captured_at)}</url>"
    yield "</urlset>"


def semantic_lines(address: str, latest: int | None) -> list[str]:
    """The archive as one body of RDF, and the ways to have it."""
    place = escape(address)
    return [
        "<sc:dataset>",
        "<sc:datasetLabel>Archive of datasets</sc:datasetLabel>",
        f"<sc:datasetURI>{place}/.well-known/void#archive</sc:datasetURI>",
        f'<sc:linkedDataPrefix slicing="subject">{place}/dataset/</sc:linkedDataPrefix>',
        f'<sc:sparqlEndpointLocation slicing="subject">{place}/sparql</sc:sparqlEndpointLocation>',
        "<changefreq>daily</changefreq>",
        *([_lastmod(latest)] if latest else []),
        "</sc:dataset>",
    ]


async def _sitemap(request: Request, service: Service, name: str | None) -> Response:
    base, address = base_of(request), bases_of(service.settings.serve).service
    content = await service.pool.run(partial(_part, base=base, address=address, name=name))
    return Response(content, headers={"Cache-Control": "max-age=3600"}, media_type=XML)


def _part(db: ServiceSession, base: str, address: str, name: str | None) -> bytes:
    """Return a part by its number; without one, the index of all parts, or the only part."""
    latest, _ = db.session.fetch_all(SQL["latest_change"])[0]
    parts = parts_of(basic_figures(db.session).datasets)
    if name is None and parts > 1:
        return _document(index_lines(base, parts, latest))
    name = name or "1"
    if not (name.isascii() and name.isdecimal() and len(name) < 6 and 1 <= int(name) <= parts):
        raise HttpProblem(404, f"the sitemap has no part {name[:20]!r}; it has {parts}")
    number = int(name)
    semantic = semantic_lines(address, latest) if number == 1 else []
    return _document(part_lines(base, _rows(db, number - 1), semantic))


def _rows(db: ServiceSession, part: int) -> list[Row]:
    """The first part has room for the other pages. What no search is to find is in none."""
    start = max(0, part * PLACES_A_PART - len(_PAGES))
    limit = PLACES_A_PART - (0 if part else len(_PAGES))
    found = db.session.fetch_all(SQL["page_sitemap"], {"start": start, "limit": limit})
    hidden = unlisted(db, (row[0] for row in found))
    return [row for row in found if row[0] not in hidden]


def _lastmod(moment: int | None) -> str:
    return "" if moment is None else f"<lastmod>{rfc3339(moment)}</lastmod>"


def _document(lines: Iterable[str]) -> bytes:
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', *lines]).encode()

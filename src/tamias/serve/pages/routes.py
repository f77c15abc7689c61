"""All pages and what belongs to them, as routes of the application."""

from collections.abc import Sequence

from starlette.routing import Route

from tamias.serve.http.endpoints import Endpoint
from tamias.serve.pages import overview, portal, portal_at, query, search, sign_in
from tamias.serve.pages.crawl import add, crawl, documents, frontier, graph, host, hosts
from tamias.serve.pages.datasets import dataset, difference, preview, version, watching
from tamias.serve.pages.html.page import Answered, guarded, page_routes
from tamias.serve.pages.html.static import static_route
from tamias.serve.pages.reference import reference_page
from tamias.serve.service import Service

_PAGES = (
    overview.PAGE,
    search.PAGE,
    difference.PAGE,
    preview.PAGE,
    version.PAGE,
    dataset.PAGE,
    hosts.PAGE,
    host.PAGE,
    portal.LIST,
    portal.PAGE,
    portal_at.PAGE,
    frontier.PAGE,
    crawl.PAGE,
    documents.LIST,
    documents.PAGE,
    graph.PAGE,
    query.PAGE,
    add.PAGE,
    sign_in.PAGE,
)


def routes_of_pages(service: Service, endpoints: Sequence[Endpoint]) -> list[Route]:
    """The pages; `endpoints` are those that the page about the API lists."""
    return [
        static_route(),
        Route("/query/send", guarded("/query/send", query.sent), methods=["GET"]),
        Route("/overview/live", guarded("/overview/live", overview.live_part(service)), methods=["GET"]),
        *page_routes([*_PAGES, reference_page(endpoints)], service),
        _form(add.PAGE.path, add.adding(service)),
        _form(sign_in.PAGE.path, sign_in.signing_in(service)),
        _form("/sign-out", sign_in.signing_out(service)),
        _form(watching.PATH, watching.changing(service)),
    ]


def _form(path: str, answered: Answered) -> Route:
    return Route(path, guarded(path, answered), methods=["POST"])

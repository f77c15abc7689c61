"""All pages and what belongs to them, as routes of the application."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib.resources import files

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tamias.serve.endpoints import Endpoint
from tamias.serve.pages import add, dataset, difference, host, overview, query, search
from tamias.serve.pages.page import Page, guarded, page_routes
from tamias.serve.service import Service

_PAGES = (overview.PAGE, search.PAGE, difference.PAGE, dataset.PAGE, host.PAGE, query.PAGE, add.PAGE)


class Listed(msgspec.Struct, frozen=True):
    """A route of the API, in a list."""

    method: str
    path: str
    about: str
    secret: bool


def routes_of_pages(service: Service, endpoints: Sequence[Endpoint]) -> list[Route]:
    """The pages; `endpoints` are those that the page about the API lists."""
    listed = [Listed(each.method, each.path, each.about, each.secret) for each in endpoints]
    about = Page(
        path="/api", template="api.html", view=partial(_listed, listed), data="/openapi.json", elsewhere=True
    )
    return [
        Route("/style.css", _style(), methods=["GET"]),
        Route("/query/send", guarded("/query/send", query.sent), methods=["GET"]),
        *page_routes([*_PAGES, about], service),
        Route(add.PAGE.path, guarded(add.PAGE.path, add.adding(service)), methods=["POST"]),
    ]


async def _listed(listed: list[Listed], _: Request, __: Service) -> list[Listed]:
    return listed


def _style() -> Callable[[Request], Awaitable[Response]]:
    content = files(__package__).joinpath("style.css").read_bytes()
    headers = {"Cache-Control": "max-age=3600"}
    return partial(_sent, content, headers)


async def _sent(content: bytes, headers: dict[str, str], _: Request) -> Response:
    return Response(content, headers=headers, media_type="text/css")

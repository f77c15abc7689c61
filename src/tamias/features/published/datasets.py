"""Datasets and versions by their IRIs: a page for people, statements for machines, and links from each."""

import re
from collections.abc import Awaitable, Sequence

from pyoxigraph import Quad
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tamias.archive.reader.library import NotArchived
from tamias.features.dcat.terms import bases_of
from tamias.features.published.catalogue import catalogue_routes
from tamias.features.published.graphs import (
    dataset_graph,
    link_header,
    linkset,
    version_graph,
)
from tamias.features.service.http.exchange import Answer, base_of, guarded_route
from tamias.features.service.http.rdf import FORMS, rdf_answer, wanted_form
from tamias.features.service.queries.history import resource_named
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service

DATASET = "/dataset/{id}"
VERSION = "/dataset/{id}/{number}"
_ID = re.compile(r"[0-9a-f]{24}")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def dataset_routes(service: Service) -> list[Route]:
    """Return the routes of datasets and versions by file ending, and of linksets."""

    async def links(request: Request) -> Response:
        return await linkset(request, service, named_in(request))

    forms = [(f"{path}.{ending}", _as(ending, service)) for path in (DATASET, VERSION) for ending in FORMS]
    return [guarded_route(path, answer) for path, answer in [(f"{DATASET}/linkset", links), *forms]]


def add_routes(service: Service, routes: Sequence[BaseRoute]) -> list[BaseRoute]:
    """Return the routes of the service with those of datasets, whose pages are also available as RDF."""
    negotiated = [_negotiated(each, service) if _is_described(each) else each for each in routes]
    return [*dataset_routes(service), *catalogue_routes(), *negotiated]


def named_in(request: Request) -> str:
    """The id in the path. Raises `NotArchived` for what is none."""
    named = str(request.path_params["id"])
    if not _ID.fullmatch(named):
        raise NotArchived(f"{named[:100]} is not in the archive")
    return named


def number_in(request: Request) -> int:
    """The number of a version in the path. Raises `NotArchived` for what is none."""
    text = str(request.path_params["number"])
    if not _NUMBER.fullmatch(text):
        raise NotArchived(f"{named_in(request)} has no version {text[:20]}")
    return int(text)


def _is_described(page: BaseRoute) -> bool:
    return isinstance(page, Route) and page.path in (DATASET, VERSION)


def _negotiated(page: BaseRoute, service: Service) -> Route:
    assert isinstance(page, Route)
    shown: Answer = page.endpoint

    async def answer(request: Request) -> Response:
        ending = wanted_form(request)
        if ending is not None:
            return await _described(request, service, ending)
        response = await shown(request)
        response.headers.setdefault("Vary", "Accept")
        if response.status_code == 200:
            response.headers["Link"] = await _links(request, service)
        return response

    return guarded_route(page.path, answer)


def _links(request: Request, service: Service) -> Awaitable[str]:
    number = number_in(request) if "number" in request.path_params else None
    return link_header(request, service, named_in(request), number)


def _as(ending: str, service: Service) -> Answer:
    async def answer(request: Request) -> Response:
        return await _described(request, service, ending)

    return answer


async def _described(request: Request, service: Service, ending: str) -> Response:
    """The statements on a dataset or a version."""
    named, bases = named_in(request), bases_of(service.settings.serve)
    number = number_in(request) if "number" in request.path_params else None

    def read(db: ServiceSession) -> list[Quad]:
        resource = resource_named(db, named)
        if number is None:
            return dataset_graph(db.session, resource, bases)
        return version_graph(db.session, resource, number, bases)

    quads = await service.pool.run(read)
    page = f"{base_of(request)}{request.url.path.removesuffix(f'.{ending}')}"
    links = f'<{page}>; rel="describes", {await _links(request, service)}'
    return await rdf_answer(request, quads, ending, {"Link": links})

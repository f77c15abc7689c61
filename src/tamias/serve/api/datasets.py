"""Datasets: one by its URL, or those of a domain or a type, each with all its versions."""

import re
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.reader.descriptions import DatasetDescription, describe
from tamias.archive.versions.resources import page_of_resources, read_versions
from tamias.model.resource import Resource
from tamias.serve.http.endpoints import PAGED, URL, Endpoint, ResponseSpec, path_parameter
from tamias.serve.http.params import base_of, cursor, limit, media_type, path_behind, url_behind
from tamias.serve.http.responses import ListPage, encoded, page_answer, send_encoded
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.service import Service

ID_CURSOR = re.compile(r"[0-9a-f]{24}")
_BY_URL = "/api/v1/get/dataset/"
_BY_TYPE = "/api/v1/get/dataset/type/"
_BY_DOMAIN = "/api/v1/get/datasets/"


async def by_url(request: Request, service: Service) -> Response:
    """One dataset."""
    url, base = url_behind(request, _BY_URL), base_of(request)
    found = await service.histories.find(url)
    form = found.form(("dataset", base), lambda: encoded(describe(found.resource, found.versions, base)))
    return send_encoded(request, form)


async def by_domain(request: Request, service: Service) -> Response:
    """Those of a host."""
    host = path_behind(request, _BY_DOMAIN).lower().rstrip(".")
    return await _page(request, service, host=host)


async def by_type(request: Request, service: Service) -> Response:
    """Those whose current version is of a type."""
    return await _page(request, service, media_type=media_type(path_behind(request, _BY_TYPE)))


def described(db: ServiceSession, resources: list[Resource], base: str) -> list[DatasetDescription]:
    """Resources as JSON tells them, with their versions."""
    versions = read_versions(db.session, [resource.id for resource in resources])
    return [describe(resource, versions[resource.id], base) for resource in resources]


async def _page(
    request: Request, service: Service, *, host: str | None = None, media_type: str | None = None
) -> Response:
    most, after, base = limit(request), cursor(request, ID_CURSOR), base_of(request)
    page = partial(
        page_of_resources, after=after[0] if after else "", limit=most, host=host, media_type=media_type
    )
    items = await service.pool.run(lambda db: described(db, page(db.session), base))
    return page_answer(request, items, items[-1].id if len(items) == most else None)


_ONE = ResponseSpec("The dataset with its versions, oldest first", DatasetDescription)
_SOME = ResponseSpec("Datasets in the order of their ids", ListPage[DatasetDescription])

ENDPOINTS = [
    Endpoint(
        path=_BY_URL + "{URL}",
        handle=by_url,
        about="One dataset by its URL, as it is or percent-encoded, or by its id",
        parameters=(path_parameter("URL", "the URL of the dataset", URL),),
        answers={200: _ONE},
    ),
    Endpoint(
        path=_BY_TYPE + "{TYPE}",
        handle=by_type,
        about="The datasets of a media type",
        parameters=(path_parameter("TYPE", "a media type, or a short name such as csv"), *PAGED),
        answers={200: _SOME},
    ),
    Endpoint(
        path=_BY_DOMAIN + "{domain}",
        handle=by_domain,
        about="The datasets of a domain",
        parameters=(path_parameter("domain", "a host, such as data.example.org"), *PAGED),
        answers={200: _SOME},
    ),
]

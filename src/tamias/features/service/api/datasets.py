"""Datasets: one by its URL, or those of a domain or a type, each with all its versions."""

import re
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.reader.descriptions import DatasetDescription, describe
from tamias.archive.versions.resources import page_of_resources, read_versions
from tamias.features.service.http.endpoints import PAGED, URL, EndpointTable, ResponseSpec, path_parameter
from tamias.features.service.http.params import base_of, cursor, limit, media_type, path_behind, url_behind
from tamias.features.service.http.responses import ListPage, encoded, page_answer, send_encoded
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.resource import Resource

ID_CURSOR = re.compile(r"[0-9a-f]{24}")
_BY_URL = "/api/v1/get/dataset/"
_BY_TYPE = "/api/v1/get/dataset/type/"
_BY_DOMAIN = "/api/v1/get/datasets/"


ENDPOINTS = EndpointTable()
_ONE = ResponseSpec("The dataset with its versions, oldest first", DatasetDescription)
_SOME = ResponseSpec("Datasets in the order of their ids", ListPage[DatasetDescription])


@ENDPOINTS.get(_BY_URL + "{URL}", _ONE, path_parameter("URL", "the URL of the dataset", URL))
async def by_url(request: Request, service: Service) -> Response:
    """Return one dataset by its URL, as it is or percent-encoded, or by its id."""
    url, base = url_behind(request, _BY_URL), base_of(request)
    found = await service.histories.find(url)
    form = found.form(("dataset", base), lambda: encoded(describe(found.resource, found.versions, base)))
    return send_encoded(request, form)


@ENDPOINTS.get(
    _BY_DOMAIN + "{domain}", _SOME, path_parameter("domain", "a host, such as data.example.org"), *PAGED
)
async def by_domain(request: Request, service: Service) -> Response:
    """The datasets of a domain."""
    host = path_behind(request, _BY_DOMAIN).lower().rstrip(".")
    return await _page(request, service, host=host)


@ENDPOINTS.get(
    _BY_TYPE + "{TYPE}", _SOME, path_parameter("TYPE", "a media type, or a short name such as csv"), *PAGED
)
async def by_type(request: Request, service: Service) -> Response:
    """The datasets of a media type."""
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

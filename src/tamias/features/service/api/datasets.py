"""Datasets and their versions, by URL, domain, type and page by page; their hosts, and all in figures."""

import re
from functools import partial

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.versions.resources import page_of_resources, page_of_suspects, read_versions
from tamias.features.archive.descriptions import (
    DatasetDescription,
    SameContent,
    VersionDescription,
    describe,
    describe_suspect,
    describe_version,
    same_content,
)
from tamias.features.dcat.joins import JoinCandidate, read_joins
from tamias.features.service.http.callers import may_read_all
from tamias.features.service.http.endpoints import (
    ID,
    LIMIT,
    PAGED,
    URL,
    EndpointTable,
    Parameter,
    ResponseSpec,
    path_parameter,
)
from tamias.features.service.http.exchange import (
    Encoded,
    ListPage,
    base_of,
    cursor,
    encoded,
    encoded_page,
    json_answer,
    limit,
    media_type,
    page_answer,
    parameter,
    path_behind,
    url_behind,
)
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.history import ResourceHistory
from tamias.features.service.queries.search import FACETS, Search, find, read_search
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.features.stats.figures import Basic, Figures, basic_figures, read_figures
from tamias.model.item import NEVER

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
    return json_answer(request, form)


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


@ENDPOINTS.get(
    "/api/v1/search",
    ResponseSpec("What was found, the best first, with counts by facet", Search),
    Parameter("q", "words, all of which occur; the beginning of a word is enough"),
    *(Parameter(name, "only what has this value of the facet") for name in FACETS),
    LIMIT,
)
async def search(request: Request, service: Service) -> Response:
    """Search for datasets by words, filters or both."""
    words, filters = read_search(request)
    most, owner = limit(request), may_read_all(request)
    return json_answer(
        request, await service.pool.run(lambda db: find(db, words, most, filters, owner=owner))
    )


async def _page(
    request: Request, service: Service, *, host: str | None = None, media_type: str | None = None
) -> Response:
    most, after, base = limit(request), cursor(request, ID_CURSOR), base_of(request)
    place = after[0] if after else ""

    def read(db: ServiceSession) -> list[DatasetDescription]:
        found = page_of_resources(db.session, place, most, host=host, media_type=media_type)
        versions = read_versions(db.session, [resource.id for resource in found])
        return [describe(resource, versions[resource.id], base) for resource in found]

    items = await service.pool.run(read)
    return page_answer(request, items, items[-1].id if len(items) == most else None)


_NUMBER = re.compile(r"[0-9]{1,9}")
_SUSPECT = re.compile(r"([0-9]{1,18})-([0-9a-f]{24})")


@ENDPOINTS.get(
    "/api/v1/versions",
    ResponseSpec("Versions", ListPage[VersionDescription]),
    Parameter("url", "the URL of the resource", URL),
    Parameter("id", "or its id", ID),
    Parameter(
        "suspicious",
        "1: responses that are stored but are not versions, of all resources unless one is named",
    ),
    Parameter("same_as", "1: each version with those of other resources that have the same content"),
    *PAGED,
)
async def listing(request: Request, service: Service) -> Response:
    """The versions of a resource, oldest first."""
    named = parameter(request, "url") or parameter(request, "id")
    if parameter(request, "suspicious") not in {None, "0"}:
        return await _suspicious(request, service, named)
    if named is None:
        raise HttpProblem(400, "name a resource: ?url=URL or ?id=ID")
    most, after, base = limit(request), cursor(request, _NUMBER), base_of(request)
    found = await service.histories.find(named)
    seen = int(after[0]) if after else 0
    if parameter(request, "same_as") in {None, "0"}:
        form = found.form(("versions", base, seen, most), lambda: _page_of_versions(found, seen, most, base))
        return json_answer(request, form)
    # Versions of others change without a visit here.
    shown = [version for version in found.versions if version.number > seen][:most]
    same = await service.pool.run(lambda db: same_content(db.session, shown))
    return json_answer(request, _page_of_versions(found, seen, most, base, same))


async def _suspicious(request: Request, service: Service, named: str | None) -> Response:
    """Suspicious responses of a resource, or of all, the newest first."""
    most, after = limit(request), cursor(request, _SUSPECT)
    resource = None if named is None else (await service.histories.find(named)).resource.id
    before = (int(after[1]), after[2]) if after else (NEVER, "")
    read = partial(page_of_suspects, resource=resource, limit=most + 1, before=before)
    found = await service.pool.run(lambda db: read(db.session))
    last = found[most - 1] if len(found) > most else None
    items = [describe_suspect(each) for each in found[:most]]
    return page_answer(request, items, f"{last.seen_at}-{last.resource}" if last else None)


def _page_of_versions(
    found: ResourceHistory,
    seen: int,
    most: int,
    base: str,
    same: dict[str, tuple[SameContent, ...]] | None = None,
) -> Encoded:
    """Return versions after some, with those of others that have the same content where they are wanted."""
    later = [version for version in found.versions if version.number > seen]
    items = [
        describe_version(each, base, UNSET if same is None else same.get(each.id, ()))
        for each in later[:most]
    ]
    return encoded_page(items, str(items[-1].number) if len(later) > most else None)


_SECONDS = 0.2
"""How old figures may be: they are asked for by pages and monitors that ask often."""


_NAME = re.compile(r".{1,300}")


@ENDPOINTS.get("/api/v1/stats/basic", ResponseSpec("The numbers", Basic))
async def basic(request: Request, service: Service) -> Response:
    """The archive in six numbers."""
    found = await service.lately("basic", _SECONDS, lambda db: basic_figures(db.session))
    return json_answer(request, found)


@ENDPOINTS.get("/api/v1/stats", ResponseSpec("The figures", Figures))
async def figures(request: Request, service: Service) -> Response:
    """Return all statistics: hosts, sizes, types, states, visits, traffic, storage."""
    found = await service.lately("figures", _SECONDS, lambda db: read_figures(db.session))
    return json_answer(request, found)


@ENDPOINTS.get(
    "/api/v1/joins",
    ResponseSpec("Candidates", ListPage[JoinCandidate]),
    Parameter("url", "only those of this resource, on either side", URL),
    *PAGED,
)
async def joins(request: Request, service: Service) -> Response:
    """Join candidates: columns whose values are contained in another, best first."""
    most, after, named = limit(request), cursor(request, _NUMBER), parameter(request, "url")
    resource = (await service.histories.find(named)).resource.id if named else None
    skip = int(after[0]) if after else 0
    items = await service.pool.run(lambda db: read_joins(db.session, resource, skip=skip, limit=most))
    return page_answer(request, items, str(skip + most) if len(items) == most else None)


class HostDescription(msgspec.Struct, frozen=True):
    """A host."""

    host: str
    datasets: int
    resources: str
    """Where its resources are listed."""


@ENDPOINTS.get("/api/v1/hosts", ResponseSpec("Hosts", ListPage[HostDescription]), *PAGED)
async def hosts(request: Request, service: Service) -> Response:
    """The hosts of the archive, by name."""
    most, after, base = limit(request), cursor(request, _NAME), base_of(request)
    values = {"after": after[0] if after else "", "limit": most}
    rows = await service.pool.run(lambda db: db.rows("hosts", values))
    items = [HostDescription(host, n, f"{base}/api/v1/resources?host={host}") for host, n in rows]
    return page_answer(request, items, items[-1].host if len(items) == most else None)

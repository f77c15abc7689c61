"""Watched resources: list them, add some, make them due now."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import rfc3339_or_none, shown
from tamias.archive.versions.resources import WatchedResource, list_watched, note_wanted
from tamias.crawl.revisit.watches import Added, Wanted
from tamias.crawl.visit.stages import harvesters
from tamias.features.service.api.datasets import ID_CURSOR
from tamias.features.service.http.callers import check_targets, record_of
from tamias.features.service.http.endpoints import PAGED, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import (
    ListPage,
    base_of,
    cursor,
    json_answer,
    json_body,
    limit,
    media_type,
    page_answer,
    parameter,
    stored_text,
)
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.features.tokens.tokens import urls_of
from tamias.frontier.due import make_due
from tamias.model.errors import UsageError
from tamias.model.item import TRUSTED, WATCH
from tamias.model.kind import SITEMAP
from tamias.model.resource import State
from tamias.model.url import fetch_url, is_address
from tamias.schedule.rules import seconds_of, span_of

MOST_BYTES = 64 * 1024
MOST_BYTES_OF_MANY = 32 * 1024 * 1024
MOST_AT_ONCE = 100_000
_KEY_BYTES = 2000
"""Of what stands in an index of the database."""
_SQL_BATCH = 1000


class ResourceDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A resource in a list, without its versions."""

    id: str
    url: str
    title: str | None
    media_type: str | None
    state: State
    added_at: str
    last_crawl: str | None
    next_crawl: str | None
    change_rate: float | None
    every: str | None
    """How often the user wants it visited, such as `1d`; null leaves it to the schedule."""
    priority: float
    trouble: str | None
    """Why the latest visit brought nothing; null when it did."""
    version_count: int
    dataset: str
    """Where it is told of in full."""


class NewResource(msgspec.Struct, frozen=True, kw_only=True):
    """An address to be put under watch."""

    url: Annotated[str, Meta(min_length=1, max_length=4096)]
    kind: Annotated[str, Meta(max_length=40)] | None = None
    """For a source of many: `portal`, or more exactly `ckan`, `sparql`, `oai-pmh`, `sitemap` and others."""
    title: str | None = None
    format: str | None = None
    source: str | None = None
    portal: str | None = None
    every: Annotated[str, Meta(max_length=20)] | None = None
    """How often it is to be visited: `90m`, `12h`, `1d`, `2w`."""
    priority: Annotated[float, Meta(ge=0.01, le=100)] | None = None


class UrlList(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses of watched resources."""

    urls: Annotated[list[str], Meta(min_length=1, max_length=1000)]


class StoppedUrls(msgspec.Struct, frozen=True):
    """The result of a request to stop watching URLs."""

    stopped: int
    unknown: list[str]


class RefusedUrl(msgspec.Struct, frozen=True):
    """An address that was not taken."""

    url: str
    reason: str


class AddedUrls(msgspec.Struct, frozen=True):
    """The result of a request to watch URLs."""

    new: int
    known: int
    refused: list[RefusedUrl]


class Hastened(msgspec.Struct, frozen=True):
    """Counts of resources, and of those that became due by the request."""

    resources: int
    hastened: int


NewResources = Annotated[list[NewResource], Meta(max_length=MOST_AT_ONCE)]


ENDPOINTS = EndpointTable()


@ENDPOINTS.get(
    "/api/v1/resources",
    ResponseSpec("Resources in the order of their ids", ListPage[ResourceDescription]),
    Parameter("host", "of this host"),
    Parameter("type", "only if the current version has this media type; a short name works too"),
    Parameter("portal", "only resources that this portal lists"),
    Parameter("state", "in this state: active, gone or stopped"),
    Parameter("trouble", "given with any value: whose latest visit brought nothing"),
    Parameter("hvd", "given with any value: files of what a portal says is a high-value dataset"),
    *PAGED,
)
async def listing(request: Request, service: Service) -> Response:
    """The watched resources, all or some."""
    most, after, given_type = limit(request), cursor(request, ID_CURSOR), parameter(request, "type")
    state = parameter(request, "state")
    if state not in (None, "active", "gone", "stopped"):
        raise HttpProblem(400, "state is one of active, gone, stopped")
    found = await service.pool.run(
        lambda db: list_watched(
            db.session,
            state=state,
            trouble=parameter(request, "trouble") is not None,
            hvd=parameter(request, "hvd") is not None,
            after=after[0] if after else "",
            limit=most,
            host=parameter(request, "host"),
            media_type=media_type(given_type) if given_type else None,
            portal=parameter(request, "portal"),
        )
    )
    base = base_of(request)
    items = [_described(each, base) for each in found]
    return page_answer(request, items, items[-1].id if len(items) == most else None)


@ENDPOINTS.post(
    "/api/v1/post/resource",
    {
        200: ResponseSpec("It was known", AddedUrls),
        201: ResponseSpec("It is watched now", AddedUrls),
    },
    body=NewResource,
    scope="add",
    bounded=True,
)
async def add_one(request: Request, service: Service) -> Response:
    """Watch a resource: every version of it is stored."""
    new = await json_body(request, NewResource, MOST_BYTES)
    taken = await _add(request, service, [new])
    if taken.refused:
        raise HttpProblem(422, f"not taken: {taken.refused[0].reason}")
    return json_answer(request, taken, 201 if taken.new else 200)


@ENDPOINTS.post(
    "/api/v1/post/resources",
    ResponseSpec("What became of them", AddedUrls),
    body=NewResources,
    scope="add",
    bounded=True,
)
async def add_many(request: Request, service: Service) -> Response:
    """Watch many resources."""
    new = await json_body(request, NewResources, MOST_BYTES_OF_MANY)
    return json_answer(request, await _add(request, service, new))


async def _add(request: Request, service: Service, new: list[NewResource]) -> AddedUrls:
    portals = sorted({each.portal for each in new if each.portal})
    await check_targets(request, service.pool, [each.url for each in new], portals)
    check_sources(request, new)
    return await service.pool.run(partial(add_wanted, wanted=new))


@ENDPOINTS.post(
    "/api/v1/crawl",
    {202: ResponseSpec("They are due now", Hastened)},
    Parameter("id", "a resource's id"),
    Parameter("domain", "a host"),
    scope="crawl",
    bounded=True,
)
async def crawl(request: Request, service: Service) -> Response:
    """Visit a resource, or all resources of a host, as soon as politeness allows."""
    named, domain = parameter(request, "id"), parameter(request, "domain")
    if (named is None) == (domain is None):
        raise HttpProblem(
            400, "name what to visit: ?id=ID for one resource, or ?domain=HOST for all of a host"
        )
    targets = await service.pool.run(lambda db: urls_of(db.session, [named])) if named else [str(domain)]
    await check_targets(request, service.pool, targets)
    answer = await service.pool.run(partial(_hasten, named=named, host=domain and domain.lower()))
    if not answer.resources:
        raise HttpProblem(404, f"nothing is watched as {named or domain}")
    return json_answer(request, answer, 202)


@ENDPOINTS.post(
    "/api/v1/post/remove",
    ResponseSpec("What became of them", StoppedUrls),
    body=UrlList,
    scope="add",
    bounded=True,
)
async def remove(request: Request, service: Service) -> Response:
    """Stop watching resources; their versions stay."""
    named = await json_body(request, UrlList, MOST_BYTES_OF_MANY)
    await check_targets(request, service.pool, named.urls)
    unknown = await service.pool.run(lambda db: db.watcher.stop(named.urls))
    if len(unknown) == len(named.urls):
        raise HttpProblem(404, "none of these is watched")
    return json_answer(request, StoppedUrls(len(named.urls) - len(unknown), unknown))


def check_sources(request: Request, new: Sequence[NewResource]) -> None:
    """Raises `HttpProblem` for a source that could name what is out of the bounds of the caller."""
    caller = record_of(request).caller
    if (
        caller
        and caller.bounds
        and (out := [each for each in new if each.kind and each.url not in caller.bounds])
    ):
        raise HttpProblem(403, f"the token '{caller.name}' has bounds, and {out[0].url} could name anything")


def _described(resource: WatchedResource, base: str) -> ResourceDescription:
    return shown(
        ResourceDescription,
        resource,
        last_crawl=rfc3339_or_none(resource.last_visit),
        every=None if resource.every is None else span_of(resource.every / 1000),
        next_crawl=rfc3339_or_none(resource.next_visit),
        version_count=resource.versions,
        dataset=f"{base}/api/v1/get/dataset/{resource.id}",
    )


def add_wanted(db: ServiceSession, wanted: list[NewResource]) -> AddedUrls:
    """Puts resources under watch; what is no address is told as refused."""
    good = [each for each in wanted if is_address(each.url)]
    refused = [RefusedUrl(each.url, "not a valid URL") for each in wanted if not is_address(each.url)]
    added: Added = db.watcher.add([_wanted(each) for each in good if each.kind is None], by_user=True)
    _add_sources(db, [each for each in good if each.kind is not None], added)
    refused += [RefusedUrl(url, reason) for url, reason in added.refused]
    return AddedUrls(added.new, added.known, refused)


def _add_sources(db: ServiceSession, wanted: list[NewResource], added: Added) -> None:
    """Portals and other sources are harvested, again and again, and what they name is watched."""
    items = []
    for each in wanted:
        url = fetch_url(each.url)
        reason = None if each.kind in {*harvesters(), SITEMAP} else f"unknown source type '{each.kind}'"
        if reason := reason or db.admission.watch_refusal(url):
            added.refused.append((each.url, reason))
        else:
            items.append(db.admission.item(url, 0, WATCH, each.kind, tags=(TRUSTED,)))
    new = db.watcher.add_sources(items)
    added.new += new
    added.known += len(items) - new


def _wanted(new: NewResource) -> Wanted:
    try:
        every = None if new.every is None else seconds_of(new.every) * 1000
    except UsageError as error:
        raise HttpProblem(422, str(error)) from None
    return Wanted(
        url=new.url,
        title=stored_text("a title", new.title, 10 * _KEY_BYTES),
        format=stored_text("a format", new.format, _KEY_BYTES),
        source=stored_text("a source", new.source, _KEY_BYTES) or "",
        portal=stored_text("a portal", new.portal, _KEY_BYTES),
        every=every,
        priority=new.priority,
    )


def _hasten(db: ServiceSession, named: str | None, host: str | None) -> Hastened:
    values = {"after": "", "resource": named, "host": host, "limit": _SQL_BATCH}
    resources, hastened = 0, 0
    while rows := db.rows("wanted_now", values):
        items = [db.admission.item(url, 0, WATCH) for _, url in rows]
        note_wanted(db.session, [resource for resource, _ in rows])
        hastened += make_due(db.session, db.frontier, items)
        resources += len(rows)
        values["after"] = rows[-1][0]
    return Hastened(resources, hastened)

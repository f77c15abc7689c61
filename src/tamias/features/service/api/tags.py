"""Tags over REST: which there are, those of one URL, and to give and take them away."""

from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import rfc3339
from tamias.crawl.plan.admit import queue_key, same_url
from tamias.features.service.api.frontier import crawl_number, rows_of
from tamias.features.service.http.callers import check_targets
from tamias.features.service.http.endpoints import URL, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import ListPage, json_answer, json_body, parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.frontier.tags import TagChange, Tagging, checked_tag
from tamias.model.url import fetch_url, is_address, shown_target, url_key

MOST_BYTES = 64 * 1024
MOST_TAGS = 1000
"""Of a list, those of most URLs."""
DEFAULT = "default"
_Tag = Annotated[str, Meta(min_length=1, max_length=100)]


class TagCount(msgspec.Struct, frozen=True):
    """A tag, and how many URLs have it."""

    tag: str
    urls: int
    open: int
    """Of these, to be visited some day."""


class SetBy(msgspec.Struct, frozen=True):
    """The setter of a tag, and when it was set."""

    by: str
    at: str


class UrlTags(msgspec.Struct, frozen=True, kw_only=True):
    """The tags of one URL."""

    url: str
    crawl: str
    tags: tuple[str, ...]
    set_by: dict[str, SetBy]
    """Who set which of them; those that the crawler found itself have no entry."""


class RequestedChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tags to give to a URL, and to take from it."""

    url: Annotated[str, Meta(min_length=1, max_length=4096)]
    crawl: Annotated[str, Meta(min_length=1, max_length=300)] = DEFAULT
    add: Annotated[list[_Tag], Meta(max_length=32)] = []
    remove: Annotated[list[_Tag], Meta(max_length=32)] = []
    by: Annotated[str, Meta(min_length=1, max_length=100)] = "api"
    """Who sets them."""


ENDPOINTS = EndpointTable()
_CRAWL = Parameter("crawl", "of this crawl; the default is `default`")


@ENDPOINTS.get("/api/v1/tags", ResponseSpec("Tags", ListPage[TagCount]))
async def listing(request: Request, service: Service) -> Response:
    """The tags of the frontier, by the number of URLs that have them."""
    return json_answer(request, ListPage(await service.pool.run(count_tags), None))


@ENDPOINTS.get(
    "/api/v1/tags/of",
    ResponseSpec("Its tags", UrlTags),
    Parameter("url", "its URL", URL, required=True),
    _CRAWL,
)
async def of_url(request: Request, service: Service) -> Response:
    """The tags of one URL."""
    url, crawl = parameter(request, "url"), parameter(request, "crawl") or DEFAULT
    if url is None:
        raise HttpProblem(400, "name a URL: ?url=URL")
    return json_answer(request, await service.pool.run(partial(_of_url, url=url, crawl=crawl)))


@ENDPOINTS.post(
    "/api/v1/tags", ResponseSpec("Its tags now", UrlTags), body=RequestedChange, scope="crawl", bounded=True
)
async def change(request: Request, service: Service) -> Response:
    """Add or remove tags of a URL in the frontier."""
    wanted = await json_body(request, RequestedChange, MOST_BYTES)
    await check_targets(request, service.pool, [wanted.url])
    if not wanted.add and not wanted.remove:
        raise HttpProblem(400, "name tags to add ('add') or remove ('remove')")
    made = TagChange(add=_checked(wanted.add), remove=_checked(wanted.remove))
    return json_answer(request, await service.pool.run(partial(_change, wanted=wanted, made=made)))


def count_tags(db: ServiceSession) -> list[TagCount]:
    """Count the URLs of each tag, the most frequent first."""
    sums: dict[str, tuple[int, int]] = {}
    for bucket in range(db.frontier.buckets):
        for tag, known, waiting in rows_of(db, "tag_sums", {"bucket": bucket}):
            before = sums.get(tag, (0, 0))
            sums[tag] = before[0] + known, before[1] + waiting
    counted = [TagCount(tag, known, waiting) for tag, (known, waiting) in sums.items() if known]
    return sorted(counted, key=lambda each: (-each.urls, each.tag))[:MOST_TAGS]


def _of_url(db: ServiceSession, url: str, crawl: str) -> UrlTags:
    place = _place(db, url, crawl)
    tagging = _tagging(db)
    found = tagging.tags(*place)
    if found is None:
        raise HttpProblem(404, f"the crawl {crawl[:100]} does not know {url[:200]}")
    set_by = {each.tag: SetBy(each.by, rfc3339(each.at)) for each in tagging.setters(*place)}
    return UrlTags(url=place[2], crawl=crawl, tags=found, set_by=set_by)


def _change(db: ServiceSession, wanted: RequestedChange, made: TagChange) -> UrlTags:
    _tagging(db).change(*_place(db, wanted.url, wanted.crawl), made, wanted.by)
    return _of_url(db, wanted.url, wanted.crawl)


def _tagging(db: ServiceSession) -> Tagging:
    return Tagging(db.session, same_url=same_url(frozenset(db.settings.filters.session_names)))


def _place(db: ServiceSession, url: str, crawl: str) -> tuple[str, int, str, str]:
    """The queue, the crawl, the form to fetch and the key of a URL."""
    if not is_address(url):
        raise HttpProblem(400, f"{shown_target(url)[:200]!r} is not a valid URL")
    fetched = fetch_url(url)
    number = crawl_number(db, crawl)
    names = frozenset(db.settings.filters.session_names)
    return queue_key(db.settings)(fetched), number, fetched, url_key(fetched, names)


def _checked(tags: list[str]) -> tuple[str, ...]:
    return tuple(checked_tag(tag) for tag in tags)

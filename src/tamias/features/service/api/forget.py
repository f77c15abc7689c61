"""Takedown over REST: a tombstone is put at once, and the service removes the bytes in the background."""

import re
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import rfc3339, shown
from tamias.archive.tombstones import (
    LONGEST_REASON,
    ForgetTarget,
    Tombstone,
    all_tombstones,
    find_target,
    lift_blocks,
    put_tombstone,
)
from tamias.features.service.http.callers import check_targets, record_of
from tamias.features.service.http.endpoints import PAGED, EndpointTable, ResponseSpec
from tamias.features.service.http.exchange import ListPage, cursor, json_answer, json_body, limit, page_answer
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service

MOST_BYTES = 64 * 1024
_PATH = "/api/v1/forget"
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")

Url = Annotated[str, Meta(min_length=1, max_length=4096)]


class ForgetOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A request to forget a resource or a version."""

    url: Url
    version: Annotated[int, Meta(ge=1)] | None = None
    """Only this version; without it, all of it, and the URL is not fetched again."""
    reason: Annotated[str, Meta(max_length=LONGEST_REASON)] | None = None
    """Whoever asks for it is told."""
    dry_run: bool = False


class ForgetAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The resource or version that is forgotten from now on."""

    url: str
    version: int | None
    versions: int
    """How many versions and suspicious responses that removes."""
    bytes: int
    dry_run: bool


class LiftOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A URL that may be fetched again."""

    url: Url


class LiftedUrls(msgspec.Struct, frozen=True):
    """URLs that may be fetched again."""

    lifted: list[str]


class TombstoneDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A tombstone: a URL that was forgotten, when and why."""

    url: str
    version: int | None
    at: str
    reason: str
    blocked: bool
    """Whether the URL is not fetched again."""
    finished: bool
    """Whether its bytes are removed."""


ENDPOINTS = EndpointTable()


@ENDPOINTS.post(
    _PATH,
    {
        200: ResponseSpec("What that would remove", ForgetAnswer),
        202: ResponseSpec("Forgotten; the bytes are removed in the background", ForgetAnswer),
    },
    body=ForgetOrder,
    scope="forget",
    bounded=True,
)
async def forget(request: Request, service: Service) -> Response:
    """Forget a resource or one version of it for good; a tombstone stays."""
    wanted = await json_body(request, ForgetOrder, MOST_BYTES)
    await check_targets(request, service.pool, [wanted.url])
    by_whom = record_of(request).name
    found = await service.pool.run(partial(_forget, wanted=wanted, by_whom=by_whom))
    answer = shown(ForgetAnswer, found, version=found.number, dry_run=wanted.dry_run)
    return json_answer(request, answer, 200 if wanted.dry_run else 202)


def _forget(db: ServiceSession, wanted: ForgetOrder, by_whom: str) -> ForgetTarget:
    names = frozenset(db.settings.filters.session_names)
    found = find_target(db.session, wanted.url, wanted.version, names)
    if not wanted.dry_run:
        put_tombstone(db.session, found, wanted.reason, by_whom)
    return found


@ENDPOINTS.post(
    _PATH + "/lift",
    ResponseSpec("What may be fetched again", LiftedUrls),
    body=LiftOrder,
    scope="forget",
    bounded=True,
)
async def lift(request: Request, service: Service) -> Response:
    """Let a forgotten URL be fetched again; what was forgotten stays so."""
    wanted = await json_body(request, LiftOrder, MOST_BYTES)
    await check_targets(request, service.pool, [wanted.url])
    by_whom = record_of(request).name
    names = frozenset(service.settings.filters.session_names)
    lifted = await service.pool.run(lambda db: lift_blocks(db.session, [wanted.url], names, by_whom))
    return json_answer(request, LiftedUrls(lifted))


@ENDPOINTS.get("/api/v1/tombstones", ResponseSpec("Tombstones", ListPage[TombstoneDescription]), *PAGED)
async def tombstones(request: Request, service: Service) -> Response:
    """List what was forgotten, when and why; the latest first."""
    most, found_cursor = limit(request), cursor(request, _NUMBER)
    before = int(found_cursor[0]) if found_cursor else None
    found = await service.pool.run(lambda db: all_tombstones(db.session, before=before, limit=most))
    items = [describe_tombstone(each) for each in found]
    return page_answer(request, items, str(found[-1].forgotten) if len(found) == most else None)


def describe_tombstone(tombstone: Tombstone) -> TombstoneDescription:
    """Return a tombstone as JSON shows it."""
    finished = tombstone.finished_at is not None
    at = rfc3339(tombstone.at)
    return shown(TombstoneDescription, tombstone, version=tombstone.number, at=at, finished=finished)

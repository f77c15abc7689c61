"""The frontier over REST: what waits and where, which crawls and hosts are paused, and how to pause them."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import milliseconds, of_row, rfc3339, shown
from tamias.database.sql import statements
from tamias.features.service.http.callers import check_targets, record_of
from tamias.features.service.http.endpoints import (
    PAGED,
    EndpointTable,
    Parameter,
    ResponseSpec,
    path_parameter,
)
from tamias.features.service.http.exchange import ListPage, cursor, json_answer, limit, page_answer, parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.frontier import crawls as side_by_side
from tamias.frontier.crawls import CrawlState
from tamias.frontier.keys import bucket_of, host_hash
from tamias.frontier.service import Queues
from tamias.model.errors import UsageError

SQL = statements("tamias.features.service.api", "frontier.sql")
LONGEST_NAME: Final = 300
_LAST: Final = 2**63 - 1
_START: Final = (-(2**63), 0, 0)
_NEVER: Final = 253_402_300_799_000
"""The end of the year 9999: what is later is never."""
_CURSOR = re.compile(r"([0-9]{1,5}),(-?[0-9]{1,19}),([0-9]{1,9}),([0-9]{1,9})")
_BLOCK_CURSOR = re.compile(r"([0-9]{1,5}),(-?[0-9]{1,19})")
Row = tuple[Any, ...]


class FrontierState(msgspec.Struct, frozen=True, kw_only=True):
    """The frontier in figures."""

    at: str
    hosts: int
    leased: int
    """Hosts that workers are at."""
    ready: int
    """Hosts that could be asked at once."""
    crawls: list[CrawlState]


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """A queue: the URLs of a crawl at a host; URLs of other tags are in another queue."""

    host: str
    crawl: str
    known: int
    open: int
    active: bool
    leased: bool
    next_due: str | None
    ready_at: str | None
    blocked_until: str | None
    delay_seconds: float


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """The politeness of a host, and its queues."""

    host: str
    delay_seconds: float
    blocked_until: str | None
    ready_at: str | None
    leased: bool
    queues: list[QueueState]


class BlockedHost(msgspec.Struct, frozen=True):
    """A host that is left in peace."""

    host: str
    until: str | None
    """Null: for good."""


class Steered(msgspec.Struct, frozen=True, kw_only=True):
    """The crawl or host that was changed."""

    crawl: str | None = None
    host: str | None = None
    state: str
    until: str | None = None


ENDPOINTS = EndpointTable()
_HOST = Parameter("host", "the name of its queue, as in the lists", required=True)
_CRAWL = Parameter("crawl", "the name of a crawl; `watch` is the archive's own", required=True)


@ENDPOINTS.get("/api/v1/frontier", ResponseSpec("Figures", FrontierState))
async def figures(request: Request, service: Service) -> Response:
    """Statistics of the frontier: hosts, and the URLs of each crawl."""
    return json_answer(request, await service.pool.run(_figures))


@ENDPOINTS.get(
    "/api/v1/frontier/queues",
    ResponseSpec("Queues", ListPage[QueueState]),
    Parameter("crawl", "of this crawl"),
    *PAGED,
)
async def queues(request: Request, service: Service) -> Response:
    """The queues, all or of one crawl."""
    most, after, crawl = limit(request), cursor(request, _CURSOR), _text(request, "crawl")
    first, *place = map(int, after.groups()) if after else (0, *_START)
    rows = await service.pool.run(
        lambda db: _across(db, "page_queues", first, place, most, crawl=crawl, to=_LAST)
    )
    last = rows[-1] if len(rows) == most else None
    following = ",".join(str(each) for each in last[:4]) if last else None
    return page_answer(request, [of_row(QueueState, row[4:]) for row in rows], following)


@ENDPOINTS.get(
    "/api/v1/frontier/hosts/{host}",
    ResponseSpec("The host", HostState),
    path_parameter("host", "the name of its queue, such as data.example.org"),
)
async def host(request: Request, service: Service) -> Response:
    """The politeness of a host, and its queues."""
    name = request.path_params["host"]
    return json_answer(request, await service.pool.run(partial(_host, name=name)))


@ENDPOINTS.get("/api/v1/frontier/blocks", ResponseSpec("Hosts", ListPage[BlockedHost]), *PAGED)
async def blocks(request: Request, service: Service) -> Response:
    """The hosts that are paused now."""
    most, after = limit(request), cursor(request, _BLOCK_CURSOR)
    first, *place = map(int, after.groups()) if after else (0, *_START)
    rows = await service.pool.run(lambda db: _across(db, "page_blocks", first, place, most))
    following = f"{rows[-1][0]},{rows[-1][1]}" if len(rows) == most else None
    return page_answer(request, [of_row(BlockedHost, row[2:]) for row in rows], following)


@ENDPOINTS.post("/api/v1/frontier/pause", ResponseSpec("It is paused", Steered), _CRAWL, scope="crawl")
async def pause(request: Request, service: Service) -> Response:
    """Pause a crawl; visits in progress are finished."""
    return await _steer_crawl(request, service, side_by_side.pause, side_by_side.PAUSED)


@ENDPOINTS.post(
    "/api/v1/frontier/resume",
    ResponseSpec("Resumed", Steered),
    _CRAWL,
    Parameter("by", "service: this service works on it, whoever began it", {"enum": ["service"]}),
    scope="crawl",
)
async def resume(request: Request, service: Service) -> Response:
    """Resume a crawl."""
    if parameter(request, "by") == "service":
        return await _steer_crawl(request, service, side_by_side.resume_in_service, side_by_side.SERVED)
    return await _steer_crawl(request, service, side_by_side.resume, side_by_side.ACTIVE)


@ENDPOINTS.post("/api/v1/frontier/stop", ResponseSpec("It is stopped", Steered), _CRAWL, scope="crawl")
async def stop(request: Request, service: Service) -> Response:
    """End the run of a crawl: nobody works on it until it is resumed, or 'tamias crawl' continues it."""
    return await _steer_crawl(request, service, side_by_side.end_run, side_by_side.STOPPED)


@ENDPOINTS.post(
    "/api/v1/frontier/block",
    ResponseSpec("It is paused", Steered),
    _HOST,
    Parameter("until", "up to this time; without it, indefinitely"),
    scope="crawl",
    bounded=True,
)
async def block(request: Request, service: Service) -> Response:
    """Pause a host."""
    given = parameter(request, "until")
    until = _NEVER if given is None else min(milliseconds(given), _NEVER)
    name = await _steer_host(request, service, until)
    shown_until = rfc3339(until) if until < _NEVER else None
    return json_answer(request, Steered(host=name, state="blocked", until=shown_until))


@ENDPOINTS.post(
    "/api/v1/frontier/unblock", ResponseSpec("Unblocked", Steered), _HOST, scope="crawl", bounded=True
)
async def unblock(request: Request, service: Service) -> Response:
    """Unblock a host."""
    return json_answer(request, Steered(host=await _steer_host(request, service, 0), state="open"))


def crawl_number(db: ServiceSession, name: str) -> int:
    """Return the number of a crawl. Raises `HttpProblem` where there is none of the name."""
    try:
        return side_by_side.named(db.session, name)
    except UsageError as error:
        raise HttpProblem(404, str(error)) from error


def crawl_states(db: ServiceSession) -> list[CrawlState]:
    """Return the states and figures of all crawls."""
    return [shown(CrawlState, each) for each in side_by_side.crawls(db.session)]


def rows_of(db: ServiceSession, name: str, values: dict[str, Any]) -> list[Row]:
    """Return the rows of a statement of `frontier.sql`."""
    return db.session.fetch_all(SQL[name], values)


def _figures(db: ServiceSession) -> FrontierState:
    now = db.frontier.figures()
    return shown(FrontierState, now, at=rfc3339(now.now), crawls=crawl_states(db))


def _across(
    db: ServiceSession, statement: str, first: int, place: Sequence[int], most: int, **values: Any
) -> list[Row]:
    """Return rows with their buckets, across buckets, after a place in the first one."""
    found: list[Row] = []
    for bucket in range(first, db.frontier.buckets):
        where = dict(zip(("qid", "after_crawl", "lane"), place, strict=False)) | {"bucket": bucket}
        where |= {"now": db.session.now(), "never": _NEVER, "limit": most - len(found)}
        found += [(bucket, *row) for row in rows_of(db, statement, {**values, **where})]
        if len(found) == most:
            break
        place = _START
    return found


def _host(db: ServiceSession, name: str) -> HostState:
    qid = host_hash(_checked(name))
    place = {
        "bucket": bucket_of(qid, db.frontier.buckets),
        "qid": qid,
        "now": db.session.now(),
        "never": _NEVER,
    }
    found = rows_of(db, "one_host", place)
    if not found or found[0][0] != name:
        raise HttpProblem(
            404, f"the frontier knows no host {name[:200]!r}; a queue may be that of its domain"
        )
    rest = {"after_crawl": -1, "lane": -1, "to": place["qid"], "crawl": None, "limit": 1000}
    rows = rows_of(db, "page_queues", {**place, **rest})
    return of_row(HostState, found[0], queues=[of_row(QueueState, row[3:]) for row in rows])


async def _steer_crawl(request: Request, service: Service, change: Any, state: str) -> Response:
    name = _text(request, "crawl")
    if name is None:
        raise HttpProblem(400, "name a crawl: ?crawl=NAME")
    record_of(request).targets.extend([name])

    def steer(db: ServiceSession) -> None:
        change(db.session, crawl_number(db, name))

    await service.pool.run(steer)
    return json_answer(request, Steered(crawl=name, state=state))


async def _steer_host(request: Request, service: Service, until: int) -> str:
    name = _text(request, "host")
    if name is None:
        raise HttpProblem(400, "name a host: ?host=NAME")
    # Unless queues are of hosts, one may have all subdomains.
    also = [] if service.settings.frontier.queue == "host" else [f"*.{name}"]
    await check_targets(request, service.pool, [name], also)

    def steer(db: ServiceSession) -> None:
        if not Queues(db.session, same_url=str.__eq__).pause_for_all(_checked(name), until):
            _host(db, name)  # says that it is not known

    await service.pool.run(steer)
    return name


def _text(request: Request, name: str) -> str | None:
    given = parameter(request, name)
    return None if given is None else _checked(given)


def _checked(name: str) -> str:
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise HttpProblem(
            400, f"a name has {LONGEST_NAME} characters at most, none of them a control character"
        )
    return name

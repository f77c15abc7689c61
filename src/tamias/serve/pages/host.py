"""The page of one host: its resources, its latest changes, its robots.txt and how politely it is asked."""

from typing import Any

import msgspec
from starlette.requests import Request

from tamias.archive.library import NotArchived
from tamias.archive.moments import rfc3339
from tamias.archive.resources import page_of_resources
from tamias.crawl.admit import queue_key
from tamias.frontier.keys import bucket_of, host_hash
from tamias.permit.robots import Rules
from tamias.serve.api.datasets import ID_CURSOR
from tamias.serve.asked import cursor
from tamias.serve.desks import Desk
from tamias.serve.pages.overview import Latest, latest
from tamias.serve.pages.page import Page
from tamias.serve.pages.search import Hit
from tamias.serve.problems import Problem
from tamias.serve.service import Service

MOST_RESOURCES = 100
MOST_RULES = 100
LONGEST_HOST = 255


class Politeness(msgspec.Struct, frozen=True, kw_only=True):
    """How the host's queue stands. Hosts of one domain may share a queue."""

    queue: str
    delay_seconds: float
    blocked_until: str | None
    known: int
    open: int


class Robots(msgspec.Struct, frozen=True, kw_only=True):
    """What one robots.txt says to us."""

    authority: str
    status: int | None
    fetched_at: str
    crawl_delay: float | None
    rules: list[str]
    sitemaps: list[str]


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    host: str
    resources: list[Hit]
    next: str | None
    """The cursor of the next page of resources."""
    changes: list[Latest]
    politeness: Politeness | None
    robots: list[Robots]


async def host(request: Request, service: Service) -> Host:
    """All that is known of a host. Raises `NotArchived`."""
    name = request.path_params["host"].lower().rstrip(".")
    if len(name) > LONGEST_HOST or not name.isprintable():
        raise Problem(400, f"a host has {LONGEST_HOST} characters at most, none of them a control character")
    after = cursor(request, ID_CURSOR)
    return await service.desks.ask(lambda desk: _host(desk, name, after[0] if after else ""))


def _host(desk: Desk, name: str, after: str) -> Host:
    found = page_of_resources(desk.session, after, MOST_RESOURCES, host=name)
    if not found:
        raise NotArchived(f"nothing of the host {name} is in the archive")
    return Host(
        host=name,
        resources=[
            Hit(each.id, each.url, name, each.title, each.state, each.media_type, each.versions)
            for each in found
        ],
        next=found[-1].id if len(found) == MOST_RESOURCES else None,
        changes=latest(desk, name, 10),
        politeness=_politeness(desk, name),
        robots=_robots(desk, name),
    )


def _place(desk: Desk, name: str) -> dict[str, int] | None:
    """Where the host's queue is; None where only a name server could say."""
    by = desk.settings.frontier.queue
    if by == "ip":
        return None
    qid = host_hash(queue_key(by)(f"http://{name}/"))
    return {"bucket": bucket_of(qid, desk.frontier.buckets), "qid": qid}


def _politeness(desk: Desk, name: str) -> Politeness | None:
    place = _place(desk, name)
    rows = desk.rows("politeness", place) if place else []
    if not rows:
        return None
    queue, delay_ms, blocked_until, known, waiting = rows[0]
    return Politeness(
        queue=queue,
        delay_seconds=delay_ms / 1000,
        blocked_until=rfc3339(blocked_until) if blocked_until > desk.session.now() else None,
        known=known,
        open=waiting,
    )


def _robots(desk: Desk, name: str) -> list[Robots]:
    place = _place(desk, name)
    rows = desk.rows("robots", place) if place else []
    return [_robots_of(row) for row in rows if _is_of(row[0], name)]


def _is_of(authority: str, name: str) -> bool:
    behind = authority.partition("://")[2]
    return behind == name or behind.rpartition(":")[0] == name


def _robots_of(row: tuple[Any, ...]) -> Robots:
    authority, status, fetched_at, packed = row
    rules = msgspec.msgpack.decode(packed, type=Rules)
    blanket = [rules.blanket.rule] if rules.blanket else []
    return Robots(
        authority=authority,
        status=status,
        fetched_at=rfc3339(fetched_at),
        crawl_delay=rules.crawl_delay,
        rules=blanket + [rule.text for rule in rules.literal[:MOST_RULES]],
        sitemaps=list(rules.sitemaps[:MOST_RULES]),
    )


PAGE = Page(path="/host/{host}", template="host.html", view=host, data="/host/{host}.json")

"""Hosts: a list of them, and of each its resources, changes, robots.txt and politeness."""

from typing import Any

import msgspec
from starlette.requests import Request

from tamias.archive.moments import of_row, rfc3339
from tamias.archive.reader.library import NotArchived
from tamias.crawl.plan.admit import queue_key
from tamias.features.pages.crawl.activity import HostTrouble, troubles
from tamias.features.pages.html.page import HtmlPage, table_of
from tamias.features.pages.overview import Latest
from tamias.features.pages.queries import place_of_host, rows
from tamias.features.service.api.datasets import ID_CURSOR
from tamias.features.service.http.exchange import cursor, parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.search import COLUMNS, Hit, hit
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.capture import Outcome
from tamias.permit.robots import Rules

MOST_HOSTS = 200
_SECONDS = 3.0


class HostRow(msgspec.Struct, frozen=True):
    """A host, and how many datasets it has."""

    host: str
    datasets: int


class Hosts(msgspec.Struct, frozen=True):
    """A page of hosts."""

    hosts: list[HostRow]
    next: str | None
    """The host after which the next page begins."""
    troubles: list[HostTrouble]
    """On the first page only."""


async def hosts(request: Request, service: Service) -> Hosts:
    """List the hosts after the one that `after` names."""
    after = parameter(request, "after") or ""
    found = await service.pool.run(lambda db: _listed(db, after))
    wrong = [] if after else await service.lately("troubles", _SECONDS, troubles)
    return Hosts(found, found[-1].host if len(found) == MOST_HOSTS else None, wrong)


def _listed(db: ServiceSession, after: str) -> list[HostRow]:
    return [HostRow(*row) for row in db.rows("hosts", {"after": after, "limit": MOST_HOSTS})]


LIST = HtmlPage(
    path="/hosts",
    template="hosts.html",
    view=hosts,
    data="/hosts.json",
    table=table_of("hosts", "host", "datasets"),
)


MOST_RESOURCES = 100
MOST_RULES = 100
MOST_CHANGES = 10
MOST_FAILURES = 25
MOST_ATTEMPTS = 10_000
LONGEST_HOST = 255
Place = dict[str, int] | None


class Politeness(msgspec.Struct, frozen=True, kw_only=True):
    """The politeness of a host's queue, which hosts of a domain may share."""

    queue: str
    delay_seconds: float
    blocked_until: str | None
    known: int
    open: int


class Robots(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a robots.txt for this crawler."""

    authority: str
    status: int | None
    fetched_at: str
    crawl_delay: float | None
    rules: list[str]
    sitemaps: list[str]


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that was refused or failed."""

    at: str
    outcome: str
    status: int | None
    url: str
    reason: str


class HostView(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page."""

    host: str
    resources: list[Hit]
    next: str | None
    """The cursor of the next page of resources."""
    changes: list[Latest]
    politeness: Politeness | None
    robots: list[Robots]
    outcomes: dict[str, int]
    """How attempts at its queue ended; of very many, some."""
    failures: list[Failed]
    """The latest attempts at its queue that were refused or failed."""


async def host(request: Request, service: Service) -> HostView:
    """Return the data of a host. Raises `NotArchived`."""
    name = request.path_params["host"].lower().rstrip(".")
    if len(name) > LONGEST_HOST or not name.isprintable():
        raise HttpProblem(
            400, f"a host has {LONGEST_HOST} characters at most, none of them a control character"
        )
    after = cursor(request, ID_CURSOR)
    return await service.pool.run(lambda db: _host(db, name, after[0] if after else ""))


def _host(db: ServiceSession, name: str, after: str) -> HostView:
    place = place_of_host(db, name)
    found = [hit(row) for row in rows(db, "host_resources", host=name, after=after, limit=MOST_RESOURCES)]
    politeness = _politeness(db, place)
    if not found and politeness is None:
        raise NotArchived(f"nothing of the host {name} is in the archive")
    return HostView(
        host=name,
        resources=found,
        next=found[-1].id if len(found) == MOST_RESOURCES else None,
        changes=[of_row(Latest, row) for row in rows(db, "host_changes", host=name, limit=MOST_CHANGES)],
        politeness=politeness,
        robots=_robots(db, name, place),
        outcomes=_outcomes(db, place),
        failures=_failures(db, place),
    )


def _outcomes(db: ServiceSession, place: Place) -> dict[str, int]:
    found = rows(db, "host_outcomes", **place, most=MOST_ATTEMPTS) if place else []
    return {Outcome(outcome).word: n for outcome, n in sorted(found)}


def _failures(db: ServiceSession, place: Place) -> list[Failed]:
    found = rows(db, "host_troubles", **place, limit=MOST_FAILURES) if place else []
    return [
        Failed(at=rfc3339(at), outcome=Outcome(outcome).word, status=status, url=url, reason=reason)
        for at, outcome, status, url, reason in found
    ]


def _politeness(db: ServiceSession, place: Place) -> Politeness | None:
    found = db.rows("politeness", place) if place else []
    if not found:
        return None
    queue, delay_ms, blocked_until, known, waiting = found[0]
    return Politeness(
        queue=queue,
        delay_seconds=delay_ms / 1000,
        blocked_until=rfc3339(blocked_until) if blocked_until > db.session.now() else None,
        known=known,
        open=waiting,
    )


def _robots(db: ServiceSession, name: str, place: Place) -> list[Robots]:
    """Read the robots.txt of a host, or of all hosts of a domain that shares a queue."""
    found = db.rows("robots", place) if place else []
    whole = name == queue_key(db.settings)(f"http://{name}/") if place else False
    return [_robots_of(row) for row in found if whole or _is_of(row[0], name)]


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


PAGE = HtmlPage(
    path="/host/{host}",
    template="host.html",
    view=host,
    data="/host/{host}.json",
    table=table_of("resources", *COLUMNS),
)

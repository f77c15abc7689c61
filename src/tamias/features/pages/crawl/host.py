"""Hosts: a list of them, and of each its resources, changes, robots.txt and politeness."""

from typing import Any

import msgspec
from starlette.requests import Request

from tamias.archive.moments import rfc3339
from tamias.archive.reader.library import NotArchived
from tamias.crawl.plan.admit import queue_key
from tamias.features.pages.crawl.activity import troubles
from tamias.features.pages.html.page import page, table_of
from tamias.features.pages.queries import Record, place_of_host, records, rows
from tamias.features.service.api.datasets import ID_CURSOR
from tamias.features.service.http.exchange import cursor, parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.search import COLUMNS, hit
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.capture import Outcome
from tamias.permit.robots import Rules

MOST_HOSTS = 200
MOST_RESOURCES = 100
MOST_RULES = 100
MOST_CHANGES = 10
MOST_FAILURES = 25
MOST_ATTEMPTS = 10_000
LONGEST_HOST = 255
_SECONDS = 3.0


@page("/hosts", "hosts.html", table=table_of("hosts", "host", "datasets"))
async def hosts(request: Request, service: Service) -> Record:
    """List the hosts after the one that `after` names; on the first page also those with errors."""
    after = parameter(request, "after") or ""
    found = await service.pool.run(lambda db: db.rows("hosts", {"after": after, "limit": MOST_HOSTS}))
    return {
        "hosts": [{"host": name, "datasets": datasets} for name, datasets in found],
        "next": found[-1][0] if len(found) == MOST_HOSTS else None,
        "troubles": [] if after else await service.lately("troubles", _SECONDS, troubles),
    }


@page("/host/{host}", "host.html", table=table_of("resources", *COLUMNS))
async def host(request: Request, service: Service) -> Record:
    """Return the data of a host. Raises `NotArchived`."""
    name = request.path_params["host"].lower().rstrip(".")
    if len(name) > LONGEST_HOST or not name.isprintable():
        raise HttpProblem(
            400, f"a host has {LONGEST_HOST} characters at most, none of them a control character"
        )
    after = cursor(request, ID_CURSOR)
    return await service.pool.run(lambda db: _host(db, name, after[0] if after else ""))


def _host(db: ServiceSession, name: str, after: str) -> Record:
    place = place_of_host(db, name) or {}
    found = [hit(row) for row in rows(db, "host_resources", host=name, after=after, limit=MOST_RESOURCES)]
    politeness = _politeness(db, place)
    if not found and politeness is None:
        raise NotArchived(f"nothing of the host {name} is in the archive")
    outcomes = rows(db, "host_outcomes", **place, most=MOST_ATTEMPTS) if place else []
    return {
        "host": name,
        "resources": found,
        "next": found[-1].id if len(found) == MOST_RESOURCES else None,
        "changes": records(db, "host_changes", host=name, limit=MOST_CHANGES),
        "politeness": politeness,
        "robots": _robots(db, name, place),
        "outcomes": {Outcome(outcome).word: n for outcome, n in sorted(outcomes)},
        "failures": records(db, "host_troubles", **place, limit=MOST_FAILURES) if place else [],
    }


def _politeness(db: ServiceSession, place: dict[str, int]) -> Record | None:
    found = db.rows("politeness", place) if place else []
    if not found:
        return None
    queue, delay_ms, blocked_until, known, waiting = found[0]
    blocked = rfc3339(blocked_until) if blocked_until > db.session.now() else None
    delay = {"delay_seconds": delay_ms / 1000, "blocked_until": blocked}
    return {"queue": queue, **delay, "known": known, "open": waiting}


def _robots(db: ServiceSession, name: str, place: dict[str, int]) -> list[Record]:
    """Read the robots.txt of a host, or of all hosts of a domain that shares a queue."""
    found = db.rows("robots", place) if place else []
    whole = bool(place) and name == queue_key(db.settings)(f"http://{name}/")
    return [_robots_of(*row) for row in found if whole or _is_of(row[0], name)]


def _is_of(authority: str, name: str) -> bool:
    behind = authority.partition("://")[2]
    return behind == name or behind.rpartition(":")[0] == name


def _robots_of(authority: str, status: int | None, fetched_at: int, packed: Any) -> Record:
    rules = msgspec.msgpack.decode(packed, type=Rules)
    blanket = [rules.blanket.rule] if rules.blanket else []
    return {
        "authority": authority,
        "status": status,
        "fetched_at": rfc3339(fetched_at),
        "crawl_delay": rules.crawl_delay,
        "rules": blanket + [rule.text for rule in rules.literal[:MOST_RULES]],
        "sitemaps": rules.sitemaps[:MOST_RULES],
    }

"""Lists of datasets: by state, host, portal or type, and those that a search finds."""

import re
import time
from typing import Any, Final

from msgspec.structs import asdict
from starlette.requests import Request

from tamias.features.pages.html.page import page, table_of
from tamias.features.pages.queries import Record, rows
from tamias.features.service.http.callers import may_read_all
from tamias.features.service.http.exchange import LATEST, cursor, parameter
from tamias.features.service.http.exchange import media_type as media_type_of
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.search import COLUMNS, Search, find, hit, read_search
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import unlisted
from tamias.features.service.service import Service

MOST_LISTED: Final = 50
WEEKS: Final = 26
MOST_DRAWN: Final = 200
"""Versions of one dataset that its sparkline is made of, the newest."""
STATES: Final = ("active", "failing", "gone", "stopped")
_WEEK: Final = 7 * 86_400_000
_SECONDS: Final = 60.0
_CURSOR: Final = re.compile(r"([0-9]{1,18})-([0-9a-f]{24})")


@page("/datasets", "datasets/listing.html", table=table_of("datasets", *COLUMNS, "trouble"))
async def datasets(request: Request, service: Service) -> Record:
    """A page of the list, with the media types to choose from, the most frequent first."""
    state, given_type = parameter(request, "state"), parameter(request, "type")
    if state not in (None, *STATES):
        raise HttpProblem(400, f"'state' must be one of {', '.join(STATES)}")
    wanted = {
        "state": state,
        "host": parameter(request, "host"),
        "portal": parameter(request, "portal"),
        "type": media_type_of(given_type) if given_type else None,
    }
    after = cursor(request, _CURSOR)
    place = (int(after[1]), after[2]) if after else (LATEST, "")
    owner = may_read_all(request)
    listed = await service.pool.run(lambda db: _listed(db, wanted, place, owner=owner))
    types = await service.lately("types", _SECONDS, lambda db: [name for (name,) in rows(db, "types")])
    return {"filter": wanted, "types": types, **listed}


def _listed(
    db: ServiceSession, wanted: dict[str, str | None], after: tuple[int, str], *, owner: bool
) -> Record:
    found = _rows(db, wanted, after)
    hidden = frozenset() if owner else unlisted(db, (row[0] for row in found))
    listed = [hit(row) for row in found if row[0] not in hidden]
    weeks = _weeks(db, [each.id for each in listed])
    last = found[-1] if len(found) == MOST_LISTED else None
    return {
        "datasets": [
            {**asdict(each), "shown_state": each.shown_state, "weeks": weeks[each.id]} for each in listed
        ],
        "next": f"{last[7] or 0}-{last[0]}" if last else None,
    }


def _rows(db: ServiceSession, values: dict[str, Any], after: tuple[int, str]) -> list[tuple[Any, ...]]:
    """List datasets with a version, the newest first; then those without one, by their ids."""
    at, resource = after
    found = []
    if at:
        found = rows(db, "datasets", **values, at=at, resource=resource, limit=MOST_LISTED)
        resource = ""
    if len(found) < MOST_LISTED:
        left = MOST_LISTED - len(found)
        found += rows(db, "datasets_without_version", **values, resource=resource, limit=left)
    return found


def _weeks(db: ServiceSession, resources: list[str]) -> dict[str, list[int]]:
    """Count the new versions of resources in each of the last weeks, the oldest first."""
    first = int(time.time() * 1000) - WEEKS * _WEEK
    found = {each: [0] * WEEKS for each in resources}
    values = {"resource": resources, "first": first, "week": _WEEK, "most": MOST_DRAWN}
    for resource, week, count in rows(db, "datasets_weeks", **values):
        found[resource][min(week, WEEKS - 1)] += count
    return found


@page("/search", "search.html", table=table_of("hits", *COLUMNS, "columns"))
async def search(request: Request, service: Service) -> Search:
    """Search for the words of the parameter `q`, with facets as filters."""
    words, filters = read_search(request)
    owner = may_read_all(request)
    return await service.pool.run(lambda db: find(db, words, filters=filters, owner=owner))

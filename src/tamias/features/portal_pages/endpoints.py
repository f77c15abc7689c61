"""Portals over REST: which there are, how their harvests went, and how they are steered."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import milliseconds
from tamias.features.harvests.sources import HarvestEntry, PortalState, Sources
from tamias.features.service.api.portals import RECORD_CURSOR, named_portal
from tamias.features.service.http.callers import check_targets
from tamias.features.service.http.endpoints import PAGED, URL, EndpointTable, Handle, Parameter, ResponseSpec
from tamias.features.service.http.exchange import ListPage, cursor, json_answer, limit, page_answer, parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.features.tokens.tokens import AccessScope
from tamias.model.item import NEVER

ENDPOINTS = EndpointTable()
PORTAL = Parameter("url", "an address of the portal", URL, required=True)
_EVERY = Parameter("every", "such as 90m, 12h, 1d or 2w, or auto", required=True)


class SteeredPortal(msgspec.Struct, frozen=True):
    """A portal, and what was done with it."""

    portal: str
    done: str


def sources_of(db: ServiceSession) -> Sources:
    """Return the sources of the archive, in a thread of the service."""
    return Sources(db.session, db.frontier, db.admission)


@ENDPOINTS.get("/api/v1/portals", ResponseSpec("Portals by address", ListPage[PortalState]), *PAGED)
async def portals(request: Request, service: Service) -> Response:
    """The portals and other sources that are harvested, what each has and what is wrong."""
    most, after = limit(request), cursor(request, RECORD_CURSOR)
    items = await service.pool.run(lambda db: sources_of(db).page(after[0] if after else "", most))
    return page_answer(request, items, items[-1].url if len(items) == most else None)


@ENDPOINTS.get("/api/v1/portals/harvests", ResponseSpec("Harvests", ListPage[HarvestEntry]), PORTAL, *PAGED)
async def harvests(request: Request, service: Service) -> Response:
    """The harvests of a portal, the newest first."""
    named, most, after = named_portal(request), limit(request), cursor(request, RECORD_CURSOR)
    before = milliseconds(after[0]) if after else NEVER
    items = await service.pool.run(lambda db: sources_of(db).harvests(named, before, most))
    return page_answer(request, items, items[-1].started_at if len(items) == most else None)


def steering(action: str) -> Handle:
    """Make the handler of an action."""

    async def steer(request: Request, service: Service) -> Response:
        named, every = named_portal(request), parameter(request, "every")
        if action == "every" and every is None:
            raise HttpProblem(400, f"name an interval: ?every=INTERVAL, {_EVERY.about}")
        await check_targets(request, service.pool, [named])
        done = await service.pool.run(lambda db: sources_of(db).steer(action, named, every or ""))
        return json_answer(request, SteeredPortal(named, done))

    return steer


def _add(action: str, about: str, scope: AccessScope, *parameters: Parameter) -> None:
    path, answer = f"/api/v1/portals/{action}", ResponseSpec("What was done", SteeredPortal)
    words = {"about": about, "scope": scope, "bounded": True}
    ENDPOINTS.post(path, answer, PORTAL, *parameters, **words)(steering(action))


_add("harvest", "Make the next harvest of a portal due now", "crawl")
_add("stop", "Harvest a portal no more; its files stay watched", "add")
_add("resume", "Harvest a portal again that was stopped or removed", "add")
_add("remove", "Stop a portal, and the visits of files that only it names; what is stored stays", "add")
_add("every", "Set how often a portal is harvested", "add", _EVERY)

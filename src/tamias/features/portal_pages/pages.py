"""Portals: which there are, what each describes and how good it is, and what it listed at a time."""

from collections.abc import Sequence
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from tamias.archive.moments import rfc3339
from tamias.archive.reader.library import NotArchived
from tamias.features.harvests.verb import ACTIONS
from tamias.features.pages.datasets.dataset import measured
from tamias.features.pages.html.forms import check_form, sent_form
from tamias.features.pages.html.page import CsvTable, page, table_of
from tamias.features.pages.queries import Record, records, rows
from tamias.features.pages.routes import form_route
from tamias.features.portal_pages.endpoints import sources_of
from tamias.features.service.api.datasets import ID_CURSOR
from tamias.features.service.api.portals import (
    RECORD_CURSOR,
    absences,
    listed_at,
    named_portal,
)
from tamias.features.service.http.exchange import LATEST, cursor, limit, parameter, until
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.search import COLUMNS, hit
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.url import host

MOST_PORTALS = 100
MOST_RESOURCES = 100
MOST_COUNTED = 50_000
"""Resources of a portal that are looked at for its figures."""
MOST_CHANGES = 10
MOST_VANISHED = 20
MOST_HARVESTS = 30


_COLUMNS_OF_LIST = ("url", "kind", "state", "datasets", "files", "last_harvest", "next_harvest", "trouble")


@page("/portals", "portals.html", table=table_of("portals", *_COLUMNS_OF_LIST))
async def portals(request: Request, service: Service) -> Record:
    """Return a page of portals."""
    after = parameter(request, "after") or ""
    found = await service.pool.run(lambda db: sources_of(db).page(after, MOST_PORTALS))
    return {"portals": found, "next": found[-1].url if len(found) == MOST_PORTALS else None}


@page("/portal", "portal.html", table=table_of("resources", *COLUMNS))
async def portal(request: Request, service: Service) -> Record:
    """The one that `url` names. Raises `NotArchived`."""
    named, after = named_portal(request), cursor(request, ID_CURSOR)
    return await service.pool.run(lambda db: _portal(db, named, after[0] if after else ""))


def _portal(db: ServiceSession, named: str, after: str) -> Record:
    sources = sources_of(db)
    try:
        about = sources.find(named)
    except NotArchived:  # no harvest knows it: only its name is known, from those who added its files
        about = None
    url = about.url if about else named
    found = [hit(row) for row in rows(db, "portal_resources", url=url, after=after, limit=MOST_RESOURCES)]
    if not about and not found:
        raise NotArchived(f"the portal {named[:200]} is not known; /portals lists those that are")
    return {
        "url": url,
        "host": host(url),
        "about": about,
        "harvests": sources.harvests(url, limit=MOST_HARVESTS) if about else [],
        "hosts": records(db, "portal_hosts", url=url, most=MOST_COUNTED),
        "changes": records(db, "portal_changes", url=url, most=MOST_COUNTED, limit=MOST_CHANGES),
        "vanished": records(db, "vanished", url=url, limit=MOST_VANISHED),
        "measures": measured(db, url),
        "resources": found,
        "next": found[-1].id if len(found) == MOST_RESOURCES else None,
    }


async def steer(request: Request, service: Service) -> Response:
    """Harvest, stop, resume or remove a portal, or set how often, and show its page again."""
    fields, _ = await sent_form(request, service)
    action, url = fields.get("do", ""), fields.get("url", "")
    if action not in ACTIONS:
        raise HttpProblem(400, f"'do' is one of {', '.join(ACTIONS)}")
    await check_form(request, service, "crawl" if action == "harvest" else "add", [url])
    await service.pool.run(lambda db: sources_of(db).steer(action, url, fields.get("every", "")))
    return RedirectResponse(f"/portal?url={quote(url, safe='')}", 303)


def add_routes(service: Service, routes: Sequence[BaseRoute]) -> list[BaseRoute]:
    """Return the routes of the service with that of the form."""
    return [*routes, form_route("/portal/steer", steer, service)]


MOST_ABSENCES = 100
_OF_FILE = ("url", "format", "title_from", "version", "captured_at", "sha256", "byte_size", "gone")
_COLUMNS = ("dataset", "record", "title", "title_from", "url", "format", "format_from", *_OF_FILE[3:])


def _table(view: Record) -> CsvTable:
    """A line for each file; one without a URL for a dataset that had none."""
    lines = [
        [
            *(dataset.iri, dataset.record, dataset.title, dataset.title_from),
            *(getattr(file, name, None) for name in _OF_FILE),
        ]
        for dataset in view["datasets"]
        for file in dataset.files or (None,)
    ]
    return CsvTable(_COLUMNS, lines)


@page("/portal/at", "portal_at.html", table=_table)
async def portal_at(request: Request, service: Service) -> Record:
    """The one that `url` names, at the time `at`. Raises `NotArchived`."""
    named, given, at = named_portal(request), parameter(request, "at"), until(request, "at")
    most, after = limit(request), cursor(request, RECORD_CURSOR)

    def read(db: ServiceSession) -> Record:
        found = listed_at(db, named, at, after[0] if after else "", most)
        return {
            "url": named,
            "at": given,
            "until": None if at == LATEST else rfc3339(at),
            "datasets": found,
            "absences": absences(db.session, named, 0, MOST_ABSENCES),
            "next": found[-1].record if len(found) == most else None,
        }

    return await service.pool.run(read)

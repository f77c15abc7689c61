"""Portals: which there are, what each describes and how good it is, and what it listed at a time."""

from starlette.requests import Request

from tamias.archive.moments import rfc3339
from tamias.archive.reader.library import NotArchived
from tamias.features.pages.datasets.dataset import measured
from tamias.features.pages.html.page import CsvTable, page, table_of
from tamias.features.pages.queries import Record, records, rows
from tamias.features.service.api.datasets import ID_CURSOR
from tamias.features.service.api.portals import (
    RECORD_CURSOR,
    absences,
    listed_at,
    named_portal,
)
from tamias.features.service.http.exchange import LATEST, cursor, limit, parameter, until
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
_SECONDS = 10.0


@page(
    "/portals",
    "portals.html",
    table=table_of("portals", "url", "kind", "first_seen", "walked_at", "described", "gone"),
)
async def portals(request: Request, service: Service) -> Record:
    """Return a page of portals."""
    after = parameter(request, "after")
    if after is None:
        return await service.lately("portals", _SECONDS, lambda db: _portals(db, ""))
    return await service.pool.run(lambda db: _portals(db, after))


@page("/portal", "portal.html", table=table_of("resources", *COLUMNS))
async def portal(request: Request, service: Service) -> Record:
    """The one that `url` names. Raises `NotArchived`."""
    named, after = named_portal(request), cursor(request, ID_CURSOR)
    return await service.pool.run(lambda db: _portal(db, named, after[0] if after else ""))


def _portals(db: ServiceSession, after: str) -> Record:
    found = records(db, "portals", url=None, after=after, limit=MOST_PORTALS)
    return {"portals": found, "next": found[-1]["url"] if len(found) == MOST_PORTALS else None}


def _portal(db: ServiceSession, named: str, after: str) -> Record:
    about = records(db, "portals", url=named, after="", limit=1)
    found = [hit(row) for row in rows(db, "portal_resources", url=named, after=after, limit=MOST_RESOURCES)]
    if not about and not found:
        raise NotArchived(
            f"the portal {named[:200]} is not known, or has not been read yet; /portals lists those that are"
        )
    return {
        "url": named,
        "host": host(named),
        # None where its catalogue was never harvested: only its name is known.
        "about": about[0] if about else None,
        "hosts": records(db, "portal_hosts", url=named, most=MOST_COUNTED),
        "changes": records(db, "portal_changes", url=named, most=MOST_COUNTED, limit=MOST_CHANGES),
        "vanished": records(db, "vanished", url=named, limit=MOST_VANISHED),
        "measures": measured(db, named),
        "resources": found,
        "next": found[-1].id if len(found) == MOST_RESOURCES else None,
    }


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

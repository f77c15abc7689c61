"""Portals: which there are, what each describes and how good it is, and what it listed at a time."""

import msgspec
from starlette.requests import Request

from tamias.archive.moments import of_row, rfc3339
from tamias.archive.reader.library import NotArchived
from tamias.features.pages.datasets.dataset import Measured, measured
from tamias.features.pages.html.page import CsvTable, HtmlPage, table_of
from tamias.features.pages.overview import Latest
from tamias.features.pages.queries import rows
from tamias.features.service.api.datasets import ID_CURSOR
from tamias.features.service.api.portals import (
    RECORD_CURSOR,
    Absence,
    ListedDataset,
    absences,
    listed_at,
    named_portal,
)
from tamias.features.service.http.exchange import LATEST, cursor, limit, parameter, until
from tamias.features.service.queries.search import COLUMNS, Hit, hit
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


class PortalRow(msgspec.Struct, frozen=True, kw_only=True):
    """A catalogue in figures."""

    url: str
    kind: str
    first_seen: str
    walked_at: str | None
    """When it was last seen as a whole."""
    described: int
    """Datasets that it describes, or did."""
    gone: int
    """Of these, those that it describes no longer."""


class Portals(msgspec.Struct, frozen=True):
    """The data of the list."""

    portals: list[PortalRow]
    next: str | None


class FileHost(msgspec.Struct, frozen=True):
    """A host on which a portal's files are."""

    host: str
    datasets: int
    gone: int
    never: int
    """Without any version yet."""
    failing: int
    """Whose last attempts told nothing."""


class Vanished(msgspec.Struct, frozen=True):
    """A dataset that the portal has no longer."""

    title: str
    iri: str
    gone_at: str


class PortalView(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page of a portal."""

    url: str
    host: str
    about: PortalRow | None
    """None where its catalogue was never harvested: only its name is known."""
    hosts: list[FileHost]
    changes: list[Latest]
    vanished: list[Vanished]
    measures: list[Measured]
    resources: list[Hit]
    next: str | None


async def portals(request: Request, service: Service) -> Portals:
    """Return a page of portals."""
    after = parameter(request, "after")
    if after is None:
        return await service.lately("portals", _SECONDS, lambda db: _portals(db, ""))
    return await service.pool.run(lambda db: _portals(db, after))


async def portal(request: Request, service: Service) -> PortalView:
    """The one that `url` names. Raises `NotArchived`."""
    named, after = named_portal(request), cursor(request, ID_CURSOR)
    return await service.pool.run(lambda db: _portal(db, named, after[0] if after else ""))


def _portals(db: ServiceSession, after: str) -> Portals:
    found = [of_row(PortalRow, row) for row in rows(db, "portals", url=None, after=after, limit=MOST_PORTALS)]
    return Portals(found, found[-1].url if len(found) == MOST_PORTALS else None)


def _portal(db: ServiceSession, named: str, after: str) -> PortalView:
    about = rows(db, "portals", url=named, after="", limit=1)
    found = rows(db, "portal_resources", url=named, after=after, limit=MOST_RESOURCES)
    if not about and not found:
        raise NotArchived(
            f"the portal {named[:200]} is not known, or has not been read yet; /portals lists those that are"
        )
    changed = rows(db, "portal_changes", url=named, most=MOST_COUNTED, limit=MOST_CHANGES)
    gone = rows(db, "vanished", url=named, limit=MOST_VANISHED)
    return PortalView(
        url=named,
        host=host(named),
        about=of_row(PortalRow, about[0]) if about else None,
        hosts=[FileHost(*row) for row in rows(db, "portal_hosts", url=named, most=MOST_COUNTED)],
        changes=[of_row(Latest, row) for row in changed],
        vanished=[of_row(Vanished, row) for row in gone],
        measures=measured(db, named),
        resources=[hit(row) for row in found],
        next=found[-1][0] if len(found) == MOST_RESOURCES else None,
    )


LIST = HtmlPage(
    path="/portals",
    template="portals.html",
    view=portals,
    data="/portals.json",
    table=table_of("portals", "url", "kind", "first_seen", "walked_at", "described", "gone"),
)
PAGE = HtmlPage(
    path="/portal",
    template="portal.html",
    view=portal,
    data="/portal.json",
    table=table_of("resources", *COLUMNS),
)


MOST_ABSENCES = 100
_OF_FILE = ("url", "format", "title_from", "version", "captured_at", "sha256", "byte_size", "gone")
_COLUMNS = ("dataset", "record", "title", "title_from", "url", "format", "format_from", *_OF_FILE[3:])


class PortalAtView(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page."""

    url: str
    at: str | None
    """As it was asked for; null: now."""
    until: str | None
    """The same as a time."""
    datasets: list[ListedDataset]
    absences: list[Absence]
    next: str | None


async def portal_at(request: Request, service: Service) -> PortalAtView:
    """The one that `url` names, at the time `at`. Raises `NotArchived`."""
    named, given, at = named_portal(request), parameter(request, "at"), until(request, "at")
    most, after = limit(request), cursor(request, RECORD_CURSOR)

    def read(db: ServiceSession) -> PortalAtView:
        found = listed_at(db, named, at, after[0] if after else "", most)
        return PortalAtView(
            url=named,
            at=given,
            until=None if at == LATEST else rfc3339(at),
            datasets=found,
            absences=absences(db.session, named, 0, MOST_ABSENCES),
            next=found[-1].record if len(found) == most else None,
        )

    return await service.pool.run(read)


def _table(view: PortalAtView) -> CsvTable:
    """A line for each file; one without a URL for a dataset that had none."""
    lines = [
        [
            *(dataset.iri, dataset.record, dataset.title, dataset.title_from),
            *(getattr(file, name, None) for name in _OF_FILE),
        ]
        for dataset in view.datasets
        for file in dataset.files or (None,)
    ]
    return CsvTable(_COLUMNS, lines)


AT = HtmlPage(
    path="/portal/at", template="portal_at.html", view=portal_at, data="/portal/at.json", table=_table
)

"""The page of a portal at a time, with datasets that left it and came back."""

import msgspec
from starlette.requests import Request

from tamias.archive.moments import rfc3339
from tamias.features.pages.html.page import CsvTable, HtmlPage
from tamias.features.service.api.portals import RECORD_CURSOR, listed_at, named_portal
from tamias.features.service.http.params import LATEST, cursor, limit, parameter, until
from tamias.features.service.queries.portals import Absence, ListedDataset, absences
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service

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
    rows = [
        [
            *(dataset.iri, dataset.record, dataset.title, dataset.title_from),
            *(getattr(file, name, None) for name in _OF_FILE),
        ]
        for dataset in view.datasets
        for file in dataset.files or (None,)
    ]
    return CsvTable(_COLUMNS, rows)


PAGE = HtmlPage(
    path="/portal/at", template="portal_at.html", view=portal_at, data="/portal/at.json", table=_table
)

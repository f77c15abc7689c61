"""The datasets that a portal listed at a time, and when datasets and files of it were missing."""

import re
from collections import defaultdict
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import of_row, rfc3339
from tamias.archive.reader.library import NotArchived
from tamias.archive.sources.source_records import catalogue_of, records_at
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.service.http.endpoints import PAGED, URL, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import (
    LATEST,
    ListPage,
    cursor,
    limit,
    page_answer,
    parameter,
    until,
)
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.dataset import Dataset

_SQL = statements("tamias.archive.reader", "library.sql")


class ListedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a dataset, as it was at the time."""

    url: str
    title: str | None
    format: str | None
    title_from: str
    """The start of the harvest that brought the title and the format, as with datasets."""
    version: str | None
    """The id of the version that was current then; null: none was captured until then."""
    captured_at: str | None
    sha256: str | None
    byte_size: int | None
    gone: bool
    """Whether its server said then that it was gone."""


class ListedDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that a portal listed, and its files."""

    record: str
    """The portal's own identifier."""
    iri: str
    title: str
    title_from: str
    """The start of the harvest that brought the title and the IRI. If it is later than the time asked for,
    nothing of that time is stored, and they are the earliest known ones."""
    files: list[ListedFile]


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """A time during which a dataset or a file was not there."""

    record: str
    iri: str
    title: str
    url: str | None
    """Of the file; null: the dataset as a whole."""
    gone_at: str
    back_at: str | None
    """Null while it lasts."""


def datasets_at(session: Session, portal: str, at: int, after: str, limit: int) -> list[ListedDataset]:
    """Return datasets that a portal listed at a time in milliseconds, in the order of their records."""
    values = {"portal": portal, "at": at, "after": after, "limit": limit}
    datasets = session.fetch_all(_SQL["datasets_at"], values)
    files: dict[str, list[ListedFile]] = defaultdict(list)
    named = {"portal": portal, "at": at, "record": [record for record, *_ in datasets]}
    for record, *row in session.fetch_all(_SQL["files_at"], named):
        files[record].append(of_row(ListedFile, row))
    return [of_row(ListedDataset, row, files=files[row[0]]) for row in datasets]


def absences(session: Session, portal: str, skip: int, limit: int) -> list[Absence]:
    """Return the latest absences of a portal, newest first."""
    found = session.fetch_all(_SQL["absences"], {"portal": portal, "skip": skip, "limit": limit})
    return [of_row(Absence, (*row[:3], row[3] or None, *row[4:])) for row in found]


RECORD_CURSOR = re.compile(r".{1,4096}", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,9}")
MOST_RECORD = 1 << 20
"""Bytes of a record that is read for this."""


ENDPOINTS = EndpointTable()
_PORTAL = Parameter("url", "the address of the portal", URL, required=True)


@ENDPOINTS.get(
    "/api/v1/portal/at",
    ResponseSpec("Datasets", ListPage[ListedDataset]),
    _PORTAL,
    Parameter("at", "the time, such as 2026-05-01; default: now"),
    *PAGED,
)
async def at_a_time(request: Request, service: Service) -> Response:
    """The datasets that a portal listed at a time, with their files and current versions."""
    named, at, most = named_portal(request), until(request, "at"), limit(request)
    after = cursor(request, RECORD_CURSOR)
    items = await service.pool.run(lambda db: listed_at(db, named, at, after[0] if after else "", most))
    return page_answer(request, items, items[-1].record if len(items) == most else None)


@ENDPOINTS.get("/api/v1/portal/absences", ResponseSpec("Absences", ListPage[Absence]), _PORTAL, *PAGED)
async def missing(request: Request, service: Service) -> Response:
    """List the times that a dataset or a file of a portal was not there, the latest first."""
    named, most, after = named_portal(request), limit(request), cursor(request, _NUMBER)
    skip = int(after[0]) if after else 0

    def read(db: ServiceSession) -> list[Absence]:
        expect_portal(db, named)
        return absences(db.session, named, skip, most)

    items = await service.pool.run(read)
    return page_answer(request, items, str(skip + most) if len(items) == most else None)


def named_portal(request: Request) -> str:
    """The portal that `url` names."""
    named = parameter(request, "url")
    if named is None:
        raise HttpProblem(400, "name a portal: ?url=ADDRESS; /portals lists them")
    return named


def listed_at(db: ServiceSession, portal: str, at: int, after: str, most: int) -> list[ListedDataset]:
    """Return datasets that a portal listed at a time. Raises `NotArchived`."""
    expect_portal(db, portal)
    found = datasets_at(db.session, portal, at, after, most)
    return found if at == LATEST else with_words_of_records(db.session, portal, at, found)


def with_words_of_records(
    session: Session, portal: str, at: int, datasets: Sequence[ListedDataset]
) -> list[ListedDataset]:
    """The datasets; of those with words of a later time, in the words of their records of that time."""
    time = rfc3339(at)
    late = [each.record for each in datasets if each.title_from > time]
    catalogue = catalogue_of(session, portal) if late else None
    if catalogue is None:
        return list(datasets)
    # All harvesters are behind this import: a service that is never asked for records does not load them.
    from tamias.features.dcat.datasets.mapping import BAD, dataset_again
    from tamias.features.dcat.datasets.terms import below

    listed = {each.record: each for each in datasets}
    names = [below(catalogue, record).value for record in late]
    for record, captured_at in records_at(session, portal, names, at, MOST_RECORD):
        try:
            dataset = dataset_again(record)
        except (*BAD, SyntaxError):
            continue  # by rules that are no more
        if dataset is not None:
            listed[record.record] = _reworded(listed[record.record], dataset, rfc3339(captured_at))
    return list(listed.values())


def _reworded(listed: ListedDataset, dataset: Dataset, since: str) -> ListedDataset:
    forms = {form.url: form for form in dataset.distributions}
    files = [
        replace(file, title=form.title, format=form.format, title_from=since)
        if (form := forms.get(file.url))
        else file
        for file in listed.files
    ]
    return replace(listed, iri=dataset.iri, title=dataset.title, title_from=since, files=files)


def expect_portal(db: ServiceSession, portal: str) -> None:
    """Raises `NotArchived` where its catalogue was never harvested."""
    if db.session.fetch_one(b"SELECT FROM portal WHERE portal.url = %(url)b::text", {"url": portal}) is None:
        raise NotArchived(f"the portal {portal[:200]} is not known; /portals lists those that are")

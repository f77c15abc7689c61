"""The page of one resource: its versions, what is in the current one, and when it is visited next."""

import re
from typing import Any

import msgspec
from starlette.requests import Request

from tamias.archive.library import NotArchived
from tamias.archive.moments import rfc3339
from tamias.archive.profiles import read_profile
from tamias.archive.quality import METRICS, Metric, read_measures
from tamias.archive.resources import read_resources, read_suspects, read_versions
from tamias.model.profile import Profile
from tamias.model.resource import Resource, Source, State, Version
from tamias.serve.desks import Desk
from tamias.serve.memento import Travels
from tamias.serve.pages.page import Page
from tamias.serve.pages.reasons import Schedule, reason
from tamias.serve.service import Service

MOST_VERSIONS = 200
MOST_SUSPECTS = 20
_ID = re.compile(r"[0-9a-f]{24}")


class VersionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A version in the table."""

    number: int
    captured_at: str
    byte_size: int
    media_type: str | None
    noise: bool
    """Whether its content is that of the version before."""
    download: str
    memento: str


class NotBelieved(msgspec.Struct, frozen=True):
    """A body that was not taken for a version."""

    seen_at: str
    byte_size: int
    reason: str


class Measured(msgspec.Struct, frozen=True):
    """A measure of quality, with what it means."""

    metric: Metric
    value: float


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    id: str
    url: str
    title: str | None
    state: State
    media_type: str | None
    expected: str | None
    added_at: str
    sources: tuple[Source, ...]
    change_rate: float | None
    next_visit: str | None
    reason: str
    """Why it is visited then."""
    version_count: int
    versions: list[VersionRow]
    """The newest of them, newest first."""
    profile: Profile | None
    suspects: list[NotBelieved]
    measures: list[Measured]


async def dataset(request: Request, service: Service) -> Dataset:
    """All that is known of one resource. Raises `NotArchived`."""
    named = request.path_params["id"]
    return await service.desks.ask(lambda desk: _dataset(desk, resource_named(desk, named)))


def resource_named(desk: Desk, named: str) -> Resource:
    """A resource by its id. Raises `NotArchived`."""
    found = read_resources(desk.session, [named]) if _ID.fullmatch(named) else []
    if not found:
        raise NotArchived(f"{named[:100]} is not in the archive")
    return found[0]


def _dataset(desk: Desk, resource: Resource) -> Dataset:
    versions = read_versions(desk.session, [resource.id])[resource.id]
    return Dataset(
        id=resource.id,
        url=resource.url,
        title=resource.title,
        state=resource.state,
        media_type=resource.media_type,
        expected=resource.expected,
        added_at=rfc3339(resource.added_at),
        sources=resource.sources,
        change_rate=resource.change_rate,
        next_visit=None if resource.next_visit is None else rfc3339(resource.next_visit),
        reason=reason(resource, _schedule(desk, resource.id)),
        version_count=len(versions),
        versions=_rows(resource, versions),
        profile=read_profile(desk.session, versions[-1].sha256) if versions else None,
        suspects=_suspects(desk, resource.id),
        measures=_measures(desk, resource.id),
    )


def _rows(resource: Resource, versions: list[Version]) -> list[VersionRow]:
    travels = Travels(resource, versions, "")
    pairs = list(zip(travels.stamps(), versions, strict=True))[: -MOST_VERSIONS - 1 : -1]
    return [_row(version, travels.address(stamp)) for stamp, version in pairs]


def _row(version: Version, memento: str) -> VersionRow:
    return VersionRow(
        number=version.number,
        captured_at=rfc3339(version.captured_at),
        byte_size=version.byte_size,
        media_type=version.media_type,
        noise=version.noise,
        download=f"/api/v1/get/file/id/{version.id}",
        memento=memento,
    )


def _schedule(desk: Desk, resource: str) -> Schedule:
    rows: list[tuple[Any, ...]] = desk.rows("schedule", {"resource": resource})
    return Schedule(*rows[0]) if rows else Schedule(None, None, 0)


def _suspects(desk: Desk, resource: str) -> list[NotBelieved]:
    found = sorted(read_suspects(desk.session, resource), key=lambda each: -each.seen_at)
    return [NotBelieved(rfc3339(each.seen_at), each.byte_size, each.reason) for each in found[:MOST_SUSPECTS]]


def _measures(desk: Desk, resource: str) -> list[Measured]:
    found = read_measures(desk.session, [resource]).get(resource, [])
    return [Measured(METRICS[each.metric], each.value) for each in found if each.metric in METRICS]


PAGE = Page(path="/dataset/{id}", template="dataset.html", view=dataset, data="/dataset/{id}.json")

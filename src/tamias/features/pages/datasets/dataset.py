"""The page of one resource: its versions, what is in the current one, and when it is visited next."""

from collections import Counter
from collections.abc import Container
from datetime import UTC, date, datetime
from typing import Any

import msgspec
from starlette.requests import Request

from tamias.archive.moments import rfc3339, rfc3339_or_none, shown
from tamias.archive.tombstones import tombstones_of
from tamias.archive.versions.resources import page_of_suspects, read_versions
from tamias.features.archive.descriptions import SameContent, same_content
from tamias.features.dcat.joins import AlikeTables, read_alike
from tamias.features.dcat.measures import read_measures
from tamias.features.dcat.metrics import METRICS, Metric
from tamias.features.dcat.profiles import read_profile
from tamias.features.dcat.terms import bases_of
from tamias.features.pages.datasets.preview import Preview, small_preview
from tamias.features.pages.datasets.reasons import Schedule, reason
from tamias.features.pages.html.charts import Mark
from tamias.features.pages.html.page import HtmlPage, size, table_of
from tamias.features.pages.jsonld import dataset_jsonld
from tamias.features.service.files.delivery import memento_paths
from tamias.features.service.http.callers import may_read_all
from tamias.features.service.queries.history import resource_named
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import UsageTerms, usages
from tamias.features.service.service import Service
from tamias.model.profile import Profile
from tamias.model.resource import Resource, Source, State, Version
from tamias.model.url import host
from tamias.schedule.rules import span_of

MOST_VERSIONS = 200
MOST_SUSPECTS = 20
MOST_TOMBSTONES = 50
MOST_SAME = 3
MOST_ALIKE = 20
_LEAST_MARK = 0.08
"""How tall the mark of the smallest version is."""


class VersionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A version in the table."""

    number: int
    captured_at: str
    byte_size: int
    media_type: str | None
    sha256: str
    noise: str | None
    """Whether its content is that of the version before."""
    download: str
    memento: str | None
    withheld: bool
    """Whether whoever asked is not given its body, because its server asks for that."""
    same_as: tuple[SameContent, ...]
    """Some versions of other resources with the same content."""


class NotBelieved(msgspec.Struct, frozen=True):
    """A body that was not taken for a version."""

    seen_at: str
    byte_size: int
    reason: str


class ForgottenVersion(msgspec.Struct, frozen=True):
    """A version that was taken down, and why."""

    number: int | None
    """None: all that there was at the time."""
    at: str
    reason: str
    finished: bool


class Measured(msgspec.Struct, frozen=True):
    """A measure of quality, with what it means."""

    metric: Metric
    value: float


class DatasetView(msgspec.Struct, frozen=True, kw_only=True):
    """The page of a dataset."""

    id: str
    url: str
    host: str
    title: str | None
    state: State
    media_type: str | None
    expected: str | None
    added_at: str
    sources: tuple[Source, ...]
    change_rate: float | None
    next_visit: str | None
    is_due: bool
    reason: str
    """Why it is visited then."""
    last_visit: str | None
    fails: int
    """Attempts in a row that told nothing."""
    trouble: str | None
    """Why the latest visit brought nothing, if so."""
    last_error: str | None
    last_error_at: str | None
    """The latest visit that brought nothing, also when later ones succeeded."""
    every: str | None
    """How often the user wants it visited; None leaves it to the schedule."""
    priority: float | None
    version_count: int
    versions: list[VersionRow]
    """The newest of them, newest first."""
    profile: Profile | None
    preview: Preview | None
    """Of the newest version, where it is small; None where it is not, or must not be shown."""
    usage: UsageTerms
    alike: list[AlikeTables]
    """Tables of other resources that have most of their columns and values in common with its own."""
    suspects: list[NotBelieved]
    tombstones: list[ForgottenVersion]
    """The newest first."""
    measures: list[Measured]
    changes_by_day: dict[date, int]
    """Versions with other content."""
    today: date
    json_ld: dict[str, Any] | None
    """For search engines; None where they are not wanted."""

    def marks(self) -> list[Mark]:
        """The versions on a line of time, as `charts.timeline` takes them."""
        times = [datetime.fromisoformat(each.captured_at).timestamp() for each in self.versions]
        largest = max((each.byte_size for each in self.versions), default=0) or 1
        first, span = min(times, default=0.0), max(times, default=0.0) - min(times, default=0.0)
        return [
            Mark(
                (at - first) / span if span else 0.5,
                max(_LEAST_MARK, each.byte_size / largest),
                "soft" if each.noise else "accent",
                f"version {each.number}, {each.captured_at[:16].replace('T', ' ')}: {size(each.byte_size)}",
            )
            for at, each in zip(times, self.versions, strict=True)
        ]


async def dataset(request: Request, service: Service) -> DatasetView:
    """Return the page of one resource. Raises `NotArchived`."""
    named = request.path_params["id"]
    owner = may_read_all(request)
    return await service.pool.run(lambda db: _dataset(db, resource_named(db, named), owner=owner))


def _dataset(db: ServiceSession, resource: Resource, *, owner: bool) -> DatasetView:
    versions = read_versions(db.session, [resource.id])[resource.id]
    newest = versions[-1] if versions else None
    profile = read_profile(db.session, newest.sha256) if newest else None
    said = usages(db, [each.capture for each in versions[-MOST_VERSIONS:]])
    withheld = frozenset[str]() if owner else {capture for capture, each in said.items() if each.noarchive}
    about = said[newest.capture] if newest else UsageTerms()
    schedule = _schedule(db, resource.id)
    bases = bases_of(db.settings.serve)
    return shown(
        DatasetView,
        schedule,
        resource,
        host=host(resource.url),
        is_due=resource.next_visit is not None and resource.next_visit <= db.session.now(),
        reason=reason(resource, schedule),
        last_visit=rfc3339_or_none(schedule.tried_at),
        last_error=resource.last_error.reason if resource.last_error else None,
        last_error_at=rfc3339_or_none(resource.last_error.at) if resource.last_error else None,
        every=None if schedule.every is None else span_of(schedule.every / 1000),
        version_count=len(versions),
        versions=_rows(db, resource, versions, withheld),
        profile=profile,
        preview=small_preview(db, resource, newest, withheld),
        usage=about,
        alike=read_alike(db.session, resource.id, limit=MOST_ALIKE),
        suspects=_suspects(db, resource.id),
        tombstones=_tombstones(db, resource.id),
        measures=measured(db, resource.id),
        changes_by_day=Counter(_day(each.captured_at) for each in versions if not each.noise),
        today=datetime.now(UTC).date(),
        json_ld=None if about.noindex else dataset_jsonld(resource, versions, profile, bases),
    )


def measured(db: ServiceSession, subject: str) -> list[Measured]:
    """The quality of a resource or a portal, as far as it was measured."""
    found = read_measures(db.session, [subject]).get(subject, [])
    return [Measured(METRICS[each.metric], each.value) for each in found if each.metric in METRICS]


def _tombstones(db: ServiceSession, resource: str) -> list[ForgottenVersion]:
    found = tombstones_of(db.session, [resource])[:MOST_TOMBSTONES]
    return [
        ForgottenVersion(each.number, rfc3339(each.at), each.reason, each.finished_at is not None)
        for each in found
    ]


def _rows(
    db: ServiceSession, resource: Resource, versions: list[Version], withheld: Container[str]
) -> list[VersionRow]:
    same = same_content(db.session, versions[-MOST_VERSIONS:], MOST_SAME)
    pairs = list(zip(memento_paths(resource.url, versions), versions, strict=True))[: -MOST_VERSIONS - 1 : -1]
    return [
        shown(
            VersionRow,
            version,
            download=f"/api/v1/get/file/id/{version.id}",
            memento=memento,
            withheld=version.capture in withheld,
            same_as=same.get(version.id, ()),
        )
        for memento, version in pairs
    ]


def _schedule(db: ServiceSession, resource: str) -> Schedule:
    rows: list[tuple[Any, ...]] = db.rows("schedule", {"resource": resource})
    return Schedule(*rows[0]) if rows else Schedule(None, None, 0)


def _suspects(db: ServiceSession, resource: str) -> list[NotBelieved]:
    found = page_of_suspects(db.session, resource)
    return [NotBelieved(rfc3339(each.seen_at), each.byte_size, each.reason) for each in found[:MOST_SUSPECTS]]


def _day(at: int) -> date:
    return datetime.fromtimestamp(at / 1000, UTC).date()


PAGE = HtmlPage(
    path="/dataset/{id}",
    template="datasets/dataset.html",
    view=dataset,
    data="/dataset/{id}.json",
    table=table_of(
        "versions",
        "number",
        "captured_at",
        "byte_size",
        "media_type",
        "sha256",
        "noise",
        "download",
        "memento",
        "withheld",
    ),
)

"""The page of one resource: its versions, what is in the current one, and when it is visited next."""

from collections import Counter
from collections.abc import Container
from contextlib import suppress
from datetime import UTC, datetime

from msgspec import to_builtins
from starlette.requests import Request

from tamias.archive.moments import as_datetime, rfc3339, rfc3339_or_none
from tamias.archive.sources.source_records import records_at
from tamias.archive.tombstones import tombstones_of
from tamias.archive.versions.resources import page_of_suspects, read_versions
from tamias.features.archive.descriptions import describe_suspect, describe_version, same_content
from tamias.features.dcat.datasets.mapping import BAD, dataset_again
from tamias.features.dcat.joins import read_alike
from tamias.features.dcat.measures import METRICS, read_measures
from tamias.features.dcat.profiles import read_profile
from tamias.features.dcat.terms import bases_of
from tamias.features.pages.crawl.documents import links_to
from tamias.features.pages.datasets.preview import small_preview
from tamias.features.pages.datasets.reasons import Schedule, reason
from tamias.features.pages.html.page import page, table_of
from tamias.features.pages.jsonld import dataset_jsonld
from tamias.features.pages.queries import Record, rows
from tamias.features.service.api.forget import describe_tombstone
from tamias.features.service.files.delivery import memento_paths
from tamias.features.service.http.callers import may_read_all
from tamias.features.service.http.exchange import LATEST
from tamias.features.service.queries.history import resource_named
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import UsageTerms, usages
from tamias.features.service.service import Service
from tamias.model.resource import Resource, Version
from tamias.model.url import host
from tamias.plugins import notes_of
from tamias.schedule.rules import span_of

MOST_VERSIONS = 200
MOST_SUSPECTS = 20
MOST_TOMBSTONES = 50
MOST_SAME = 3
MOST_ALIKE = 20
_OF_RESOURCE = ("id", "url", "title", "state", "media_type", "expected", "sources", "change_rate")
MOST_DESCRIPTIONS = 5
LARGEST_RECORD = 1 << 20
_OF_DESCRIPTION = ("title", "description", "licence", "keywords", "landing_page", "issued", "modified")
_OF_SCHEDULE = ("fails", "trouble", "priority")


@page(
    "/dataset/{id}",
    "datasets/dataset.html",
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
async def dataset(request: Request, service: Service) -> Record:
    """Return the page of one resource. Raises `NotArchived`."""
    named = request.path_params["id"]
    owner = may_read_all(request)
    return await service.pool.run(lambda db: _dataset(db, resource_named(db, named), owner=owner))


def _dataset(db: ServiceSession, resource: Resource, *, owner: bool) -> Record:
    versions = read_versions(db.session, [resource.id])[resource.id]
    newest = versions[-1] if versions else None
    profile = read_profile(db.session, newest.sha256) if newest else None
    said = usages(db, [each.capture for each in versions[-MOST_VERSIONS:]])
    withheld = frozenset[str]() if owner else {capture for capture, each in said.items() if each.noarchive}
    about = said[newest.capture] if newest else UsageTerms()
    suspects = page_of_suspects(db.session, resource.id)[:MOST_SUSPECTS]
    changes = [each for each in versions if not each.noise]
    bases = bases_of(db.settings.serve)
    return {
        **{name: getattr(resource, name) for name in _OF_RESOURCE},
        **_visits(db, resource),
        "host": host(resource.url),
        "added_at": rfc3339(resource.added_at),
        "version_count": len(versions),
        "versions": _rows(db, resource, versions, withheld),
        "profile": profile,
        "preview": small_preview(db, resource, newest, withheld),
        "usage": about,
        "alike": read_alike(db.session, resource.id, limit=MOST_ALIKE),
        "suspects": [describe_suspect(each) for each in suspects],
        "tombstones": [
            describe_tombstone(each) for each in tombstones_of(db.session, [resource.id])[:MOST_TOMBSTONES]
        ],
        "measures": measured(db, resource.id),
        "descriptions": _descriptions(db, resource.url),
        **links_to(db, resource.url),
        "changes_by_day": Counter(as_datetime(each.captured_at).date() for each in changes),
        "today": datetime.now(UTC).date(),
        # For search engines, where they are wanted.
        "json_ld": None if about.noindex else dataset_jsonld(resource, versions, profile, bases),
    }


def _descriptions(db: ServiceSession, url: str) -> list[Record]:
    """Return what portals say of the datasets that a file belongs to, read again from their records."""
    found = []
    for portal, iri in rows(db, "records_of_file", url=url, limit=MOST_DESCRIPTIONS):
        for record, _ in records_at(db.session, portal, [iri], LATEST, LARGEST_RECORD):
            with suppress(*BAD):
                if said := dataset_again(record):
                    texts = {name: getattr(said, name) for name in _OF_DESCRIPTION}
                    agents = {name: getattr(said, name) for name in ("publisher", "contact")}
                    found.append({"portal": portal, **texts, **agents})
    return found


def _visits(db: ServiceSession, resource: Resource) -> Record:
    """Return when a dataset was visited, when it will be, and why then."""
    found = db.rows("schedule", {"resource": resource.id})
    schedule = Schedule(*found[0]) if found else Schedule(None, None, 0)
    error = resource.last_error
    return {
        **{name: getattr(schedule, name) for name in _OF_SCHEDULE},
        "next_visit": rfc3339_or_none(resource.next_visit),
        "is_due": resource.next_visit is not None and resource.next_visit <= db.session.now(),
        "reason": reason(resource, schedule),
        "last_visit": rfc3339_or_none(schedule.tried_at),
        "last_error": error and error.reason,
        "last_error_at": error and rfc3339_or_none(error.at),
        "every": None if schedule.every is None else span_of(schedule.every / 1000),
    }


def measured(db: ServiceSession, subject: str) -> list[Record]:
    """Return the quality of a resource or a portal, as far as it was measured."""
    found = read_measures(db.session, [subject]).get(subject, [])
    return [{"metric": METRICS[each.metric], "value": each.value} for each in found if each.metric in METRICS]


def _rows(
    db: ServiceSession, resource: Resource, versions: list[Version], withheld: Container[str]
) -> list[Record]:
    """Return the newest versions, newest first, with some of the others that have the same content."""
    same = same_content(db.session, versions[-MOST_VERSIONS:], MOST_SAME)
    notes = notes_of(db.session, resource.id)
    pairs = list(zip(memento_paths(resource.url, versions), versions, strict=True))[: -MOST_VERSIONS - 1 : -1]
    return [
        {
            **to_builtins(
                describe_version(version, "", same.get(version.id, ()), notes.get(version.number, ()))
            ),
            "memento": memento,
            "withheld": version.capture in withheld,
        }
        for memento, version in pairs
    ]

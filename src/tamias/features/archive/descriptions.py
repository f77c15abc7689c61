"""A resource and its versions as JSON, and versions of others that have the same content."""

from collections.abc import Sequence

import msgspec

from tamias.archive.moments import rfc3339, rfc3339_or_none, shown
from tamias.archive.versions.resources import Suspect
from tamias.database.columns import Digests, Texts
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.model.resource import LastError, Resource, Source, State, Version

_SQL = statements("tamias.features.archive", "same_content.sql")
MOST = 20


class SameContent(msgspec.Struct, frozen=True, kw_only=True):
    """A version of another resource that has the same content: the first of that resource."""

    id: str
    number: int
    url: str
    captured_at: str
    same_bytes: bool
    """Whether also the bytes are the same; else only rows, statements or values are."""


class SharedContent(msgspec.Struct, frozen=True):
    """The share of the archive that several resources have."""

    versions: int
    """Versions whose content another resource has as well."""
    same_bytes: int
    """Those whose bytes another resource has as well."""
    bodies: int
    """The different bodies of those."""
    bytes_saved: int
    """Bytes of versions that were stored before, under the same URL or another, and not again."""


def same_content(
    session: Session, versions: Sequence[Version], most: int = MOST
) -> dict[str, tuple[SameContent, ...]]:
    """Return, by version id, versions of other resources with the same content, the earliest first.

    So many for each version; versions whose content nobody else has are left out.
    """
    values = {
        "resource": Texts(version.resource for version in versions),
        "sha256": Digests(version.sha256 for version in versions),
        "fingerprint": Digests(version.fingerprint for version in versions),
        "most": most,
    }
    found: dict[str, tuple[SameContent, ...]] = {}
    for place, resource, number, url, captured_at, same_bytes in session.fetch_all(
        _SQL["same_content"], values
    ):
        name = versions[place - 1].id
        other = SameContent(
            id=f"{resource}_{number}",
            number=number,
            url=url,
            captured_at=rfc3339(captured_at),
            same_bytes=same_bytes,
        )
        found[name] = (*found.get(name, ()), other)
    return found


def earlier_content(session: Session, versions: Sequence[Version]) -> dict[str, SameContent]:
    """Return, by version id, the first version of another resource that had the content earlier."""
    when = {version.id: rfc3339(version.captured_at) for version in versions}
    return {
        name: first
        for name, (first, *_) in same_content(session, versions, 1).items()
        if (first.captured_at, first.id) < (when[name], name)
    }


def shared_content(session: Session, seconds: float) -> SharedContent | None:
    """Return how much of all is there several times; None if the database would need longer to tell."""
    try:
        row = next(session.rows(_SQL["shared"].text, {}, seconds=seconds))
    except TimeoutError:
        return None
    return SharedContent(*row)


SERVED_AT = "http://127.0.0.1:8080"
"""Where `tamias serve` answers unless it is told otherwise."""


class VersionDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A version; or a suspicious response, which has no number and says of which resource it is."""

    id: str | None = None
    number: int | None = None
    captured_at: str
    sha256: str
    byte_size: int
    media_type: str | None
    declared_type: str | None = msgspec.field(default=None, name="told_type")
    noise: str | None = None
    """Why only its bytes differ from those of the version before; null where its content does."""
    suspicious: str | None
    """Why it was suspicious before it was accepted because it stayed; null where it never was."""
    download: str | None = None
    """Where the service gives it out."""
    same_as: tuple[SameContent, ...] | msgspec.UnsetType = msgspec.UNSET
    """With `same_as=1`: versions of other resources with the same content."""
    notes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """What features say of it, such as that it broke its schema."""
    dataset: str | msgspec.UnsetType = msgspec.UNSET
    """The id of the resource."""
    url: str | msgspec.UnsetType = msgspec.UNSET


class ErrorDescription(msgspec.Struct, frozen=True):
    """The reason why a visit brought nothing, and its time."""

    reason: str
    at: str | None


class DatasetDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A resource with all its versions, oldest first."""

    id: str
    url: str
    title: str | None
    media_type: str | None
    portals: tuple[str, ...]
    sources: tuple[str, ...]
    named_by: tuple[Source, ...]
    """The sources in full: what each says of it."""
    state: State
    added_at: str
    next_crawl: str | None
    change_rate: float | None
    last_error: ErrorDescription | None
    """The latest visit that brought nothing; it stays when later ones succeed."""
    versions: tuple[VersionDescription, ...]


def describe_version(
    version: Version,
    served_at: str = SERVED_AT,
    same_as: tuple[SameContent, ...] | msgspec.UnsetType = msgspec.UNSET,
    notes: tuple[str, ...] = (),
) -> VersionDescription:
    """Return a version as JSON shows it."""
    download = f"{served_at}/api/v1/get/file/id/{version.id}"
    return shown(
        VersionDescription, version, download=download, same_as=same_as, notes=notes or msgspec.UNSET
    )


def describe_suspect(each: Suspect) -> VersionDescription:
    """Return a suspicious response as JSON shows it."""
    captured_at = rfc3339(each.seen_at)
    return shown(
        VersionDescription, each, dataset=each.resource, captured_at=captured_at, suspicious=each.reason
    )


def describe(
    resource: Resource, versions: Sequence[Version], served_at: str = SERVED_AT
) -> DatasetDescription:
    """Return a resource as JSON shows it."""
    portals = dict.fromkeys(source.portal for source in resource.sources if source.portal)
    return shown(
        DatasetDescription,
        resource,
        portals=tuple(portals),
        sources=tuple(source.source for source in resource.sources if source.source),
        named_by=resource.sources,
        next_crawl=rfc3339_or_none(resource.next_visit),
        last_error=_described_error(resource.last_error),
        versions=tuple(describe_version(version, served_at) for version in versions),
    )


def _described_error(error: LastError | None) -> ErrorDescription | None:
    if error is None:
        return None
    return ErrorDescription(error.reason, rfc3339_or_none(error.at))

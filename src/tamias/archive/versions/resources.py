"""Resources as rows: put under watch, judged and kept when they come, read by whoever wants them."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, TypedDict, Unpack

import msgspec

from tamias.archive.versions.judgement import KnownState
from tamias.database.columns import Digests, Longs, RowSchema, Texts, storable
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.model.capture import Column
from tamias.model.item import NEVER
from tamias.model.resource import LastError, Resource, Source, State, Version

_VERSION = (
    "version.resource, version.number, version.captured_at, encode(version.sha256, 'hex'),"
    " version.byte_size, version.media_type, version.told_type, encode(version.fingerprint, 'hex'),"
    " version.noise, version.suspicious, version.capture::text"
)
_VERSION_FIELDS = (
    "resource", "number", "captured_at", "sha256", "byte_size", "media_type", "declared_type", "fingerprint",
    "noise", "suspicious", "capture",
)  # fmt: skip
LICENCE = (
    "SELECT form.value ->> 'licence' AS licence FROM offered"
    " JOIN portal ON portal.portal = offered.portal AND portal.url = source.portal"
    " JOIN described ON described.portal = offered.portal AND described.record = offered.record"
    " CROSS JOIN LATERAL jsonb_array_elements(described.told -> 'forms') AS form (value)"
    " WHERE offered.url = resource.url AND form.value ->> 'url' = offered.url AND form.value ? 'licence'"
    " ORDER BY described.gone_at IS NOT NULL, offered.record LIMIT 1"
)
"""The licence that the portal of a `source` names of the file of a `resource`."""
_SQL = statements("tamias.archive.versions", "resources.sql", version=_VERSION, licence=LICENCE)
PAGE = 1000


class Watched(msgspec.Struct, frozen=True):
    """The state of a resource by which a response is judged."""

    id: str
    url: str
    host: str
    state: State
    importance: float
    versions: int
    known: KnownState
    history: bytes | None
    visited_at: int | None
    fails: int
    hint_at: int | None
    """When somebody says that it last changed."""
    frequency: str | None = None
    """How often somebody says that it changes."""
    every: int | None = None
    """How often the user wants it visited, in milliseconds."""
    wanted_at: int | None = None
    """When somebody last asked for a visit."""


class VisitNote(msgspec.Struct, frozen=True, kw_only=True):
    """The consequences of a visit for the schedule."""

    resource: Annotated[str, Column("text")]
    state: Annotated[State, Column("text")]
    now: Annotated[int, Column("int8")]
    next_visit: Annotated[int | None, Column("int8")]
    """None leaves what is known."""
    fails: Annotated[int, Column("int4")]
    history: Annotated[bytes | None, Column("bytea")] = None
    change_rate: Annotated[float | None, Column("float8")] = None
    visited_at: Annotated[int | None, Column("int8")] = None
    trouble: Annotated[str | None, Column("text")] = None
    """Why the visit brought nothing, if so."""
    missed: Annotated[float, Column("float8")] = 0.0
    """Versions since the last visit that probably nobody saw."""
    suspicious: Annotated[bool | None, Column("bool")] = None
    """Whether what came was suspicious; None where nothing came."""


VERSION_ROWS = RowSchema(Version, "version")
_RESOURCE = ("id", "url", "state", "title", "media_type", "expected", "added_at", "next_visit",
             "change_rate", "versions")  # fmt: skip
_NOTES = RowSchema(VisitNote, "resource")


class WatchedResource(msgspec.Struct, frozen=True):
    """A resource in a list of what is watched; times in milliseconds UTC."""

    id: str
    url: str
    title: str | None
    media_type: str | None
    state: State
    added_at: int
    versions: int
    last_visit: int | None
    next_visit: int | None
    change_rate: float | None
    every: int | None
    priority: float
    trouble: str | None
    """Why the latest visit brought nothing; None when it did."""
    missed: int
    """Versions that came and went between two visits, as it seems."""


class Suspect(msgspec.Struct, frozen=True):
    """A suspicious response: stored, but not a version."""

    seen_at: int
    sha256: str
    byte_size: int
    media_type: str | None
    reason: str
    resource: str = ""
    """The id of the resource, and its URL; empty where they are known anyway."""
    url: str = ""


def put_resources(
    cursor: Cursor, new: Sequence[tuple[Resource, str]], now: int, *, by_user: bool = False
) -> int:
    """Makes resources known, each with its host, and their sources; returns how many were new.

    What the user stopped stays so, unless the user names it again.
    """
    unique = {resource.id: (resource, host) for resource, host in new}
    rows = cursor.execute(_SQL["put_resources"].text, {"now": now, **_columns(unique.values())}).fetchall()
    if by_user:
        cursor.execute(_SQL["go_on"].text, {"resource": list(unique)})
    named = [(resource.id, source) for resource, _ in new for source in resource.sources]
    pairs = {(resource, source.source): source for resource, source in named}
    if pairs:
        cursor.execute(_SQL["put_sources"].text, {"now": now, **_source_columns(pairs)})
    return sum(inserted for _, inserted in rows)


def read_watched(
    session: Session, resources: Iterable[str], bodies: Iterable[tuple[str, str]]
) -> tuple[dict[str, Watched], dict[tuple[str, str], int]]:
    """Resources by their ids; and how many resources have each body, for pairs of host and SHA-256."""
    pairs = list(bodies)
    values = {"host": Texts([host for host, _ in pairs]), "sha256": Digests([sha256 for _, sha256 in pairs])}
    watched, shared = session.fetch_many(
        (_SQL["read_watched"], {"resource": Texts(resources)}), (_SQL["count_shared"], values)
    )
    return (
        {row[0]: Watched(*(*row[:6], KnownState(*row[6:13]), *row[13:])) for row in watched},
        {(host, digest.hex()): count for host, digest, count in shared},
    )


def read_declared_type(session: Session, resource: str) -> str | None:
    """The Content-Type that came with the current version."""
    row = session.fetch_one(_SQL["read_declared_type"], {"resource": resource})
    return row[0] if row else None


def add_versions(cursor: Cursor, new: Sequence[Version]) -> None:
    """A version more of each resource, which may stand among them once. The blobs must be there.

    The same attempt twice is one version, and so is the body that is the current one by now.
    """
    if new:
        cursor.execute(_SQL["add_versions"].text, VERSION_ROWS.parameters(new))


def add_suspects(cursor: Cursor, new: Sequence[tuple[Version, str]]) -> None:
    """Bodies that are kept apart, each with the reason."""
    if new:
        reasons = Texts([reason for _, reason in new])
        values = {**VERSION_ROWS.parameters([version for version, _ in new]), "reason": reasons}
        cursor.execute(_SQL["add_suspects"].text, values)


def note_visits(cursor: Cursor, notes: Sequence[VisitNote]) -> None:
    """Write what visits mean for schedule and state; each resource once."""
    if notes:
        cursor.execute(_SQL["note_visits"].text, _NOTES.parameters(notes))


def note_trouble(cursor: Cursor, resource: str, trouble: str, now: int) -> None:
    """A visit that brought nothing to be judged, such as one to a host that cannot be reached."""
    values = {"resource": resource, "trouble": storable(trouble), "now": now}
    cursor.execute(_SQL["note_trouble"].text, values)


def note_wanted(session: Session, resources: Sequence[str]) -> None:
    """Note that a visit is wanted; one that has begun already does not count."""
    session.execute(_SQL["note_wanted"], {"resource": list(resources), "now": session.now()})


class WatchedFilters(TypedDict, total=False):
    """Conditions on watched resources: `trouble`, `noted`: those that need attention; `hvd` of high value."""

    host: str | None
    media_type: str | None
    portal: str | None
    state: str | None
    trouble: bool
    noted: list[str]
    hvd: bool


_ALL_WATCHED: Final[WatchedFilters] = {
    "host": None, "media_type": None, "portal": None, "state": None, "trouble": False, "noted": [],
    "hvd": False,
}  # fmt: skip


def list_watched(
    session: Session,
    after: str = "",
    limit: int = PAGE,
    **filters: Unpack[WatchedFilters],
) -> list[WatchedResource]:
    """The resources that follow one, in the order of their ids."""
    values = {"after": after, "limit": limit, **_ALL_WATCHED, **filters}
    return [WatchedResource(*row) for row in session.fetch_all(_SQL["list_watched"], values)]


def promise_visits(cursor: Cursor, due: dict[str, int]) -> None:
    """Note when a continuous crawl visits unwatched resources again; `NEVER` for those it does not."""
    if due:
        values = {"resource": Texts(due), "next_visit": Longs(due.values())}
        cursor.execute(_SQL["promise_visits"].text, values)


def stop_resources(session: Session, resources: Sequence[str]) -> None:
    """Stop watching resources; their versions stay."""
    session.execute(_SQL["stop_resources"], {"resource": list(resources)})


def read_resources(session: Session, resources: Sequence[str]) -> list[Resource]:
    """Resources by their ids; those that are known."""
    rows = session.fetch_all(_SQL["read_resources"], {"resource": list(resources)})
    return [resource_of(row[:-1], row[-1]) for row in rows]


def page_of_resources(
    session: Session,
    after: str = "",
    limit: int = PAGE,
    *,
    host: str | None = None,
    media_type: str | None = None,
    portal: str | None = None,
) -> list[Resource]:
    """The resources that follow one, in the order of their ids."""
    values = {"after": after, "limit": limit, "host": host, "media_type": media_type, "portal": portal}
    return read_resources(session, [row[0] for row in session.fetch_all(_SQL["page_resources"], values)])


def read_versions(
    session: Session, resources: Sequence[str], statement: str = "read_versions"
) -> dict[str, list[Version]]:
    """The versions of resources, oldest first."""
    rows = session.fetch_all(_SQL[statement], {"resource": list(resources)})
    found: dict[str, list[Version]] = {resource: [] for resource in resources}
    for row in rows:
        version = version_of(row)
        found[version.resource].append(version)
    return found


def versions_within(cursor: Cursor, resource: str) -> list[Version]:
    """The versions of a resource, oldest first, in a transaction that is under way."""
    rows = cursor.execute(_SQL["read_versions"].text, {"resource": [resource]}).fetchall()
    return [version_of(row) for row in rows]


def read_end_versions(session: Session, resources: Sequence[str]) -> dict[str, list[Version]]:
    """The first and the last version of resources; one, or none, where there are no more."""
    return read_versions(session, resources, "read_end_versions")


def read_named_versions(session: Session, versions: Sequence[str]) -> list[tuple[Version, int | None]]:
    """Versions by their ids, each with the number of the one before it; those that are known."""
    named = [version.rpartition("_") for version in versions]
    values = {"resource": [each[0] for each in named], "number": [int(each[2]) for each in named]}
    rows = session.fetch_all(_SQL["read_named_versions"], values)
    return [(version_of(row[:-1]), row[-1]) for row in rows]


def page_of_suspects(
    session: Session, resource: str | None, limit: int = 1_000_000, before: tuple[int, str] = (NEVER, "")
) -> list[Suspect]:
    """Suspicious responses of one resource or of all, the newest first, before a given time and resource."""
    values = {"resource": resource, "limit": limit, "at": before[0], "before": before[1]}
    return [Suspect(*row) for row in session.fetch_all(_SQL["page_suspects"], values)]


def _columns(new: Iterable[tuple[Resource, str]]) -> dict[str, list[Any]]:
    pairs = list(new)
    return {
        "resource": [resource.id for resource, _ in pairs],
        "url": [resource.url for resource, _ in pairs],
        "host": [host for _, host in pairs],
        "title": [storable(resource.title) for resource, _ in pairs],
        "expected": [resource.expected for resource, _ in pairs],
        "every": [resource.every for resource, _ in pairs],
        "priority": [resource.priority for resource, _ in pairs],
    }


def _source_columns(pairs: dict[tuple[str, str], Source]) -> dict[str, list[Any]]:
    return {
        "resource": [resource for resource, _ in pairs],
        "source": [storable(source) for _, source in pairs],
        "portal": [storable(each.portal) for each in pairs.values()],
        "title": [storable(each.title) for each in pairs.values()],
        "format": [storable(each.format) for each in pairs.values()],
    }


def resource_of(row: Sequence[Any], sources: Iterable[Sequence[Any]]) -> Resource:
    """The columns of a resource, and those of each of its sources."""
    error = LastError(*row[10:]) if row[10] is not None else None
    named = tuple(Source(**dict(zip(Source.__struct_fields__, each, strict=False))) for each in sources)
    return Resource(**dict(zip(_RESOURCE, row, strict=False)), last_error=error, sources=named)


def version_of(row: Sequence[Any]) -> Version:
    """Return the columns of a version."""
    return Version(**dict(zip(_VERSION_FIELDS, row, strict=True)))

"""Snapshots as rows, and the one place that knows whether what they name is still there."""

from collections.abc import Iterable, Sequence
from uuid import UUID

import msgspec

from tamias.archive.moments import rfc3339
from tamias.archive.moved_captures import WantedCaptures, fetch_captures
from tamias.archive.reader.library import NotArchived
from tamias.archive.tombstones import tombstones_of
from tamias.database.columns import Digests, Ints, Texts, Uuids
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.features.snapshots.entries import (
    GraphEntry,
    ManifestEntry,
    SnapshotAbout,
    SnapshotGap,
    VersionEntry,
)
from tamias.model.capture import Extent
from tamias.model.errors import UrlError, UsageError
from tamias.model.resource import resource_id
from tamias.model.url import url_key

_SQL = statements("tamias.features.snapshots", "snapshots.sql")
_REMOVED = SnapshotGap("removed from the archive")


class CorpusSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot with what is exported beside its content."""

    about: SnapshotAbout
    made_at: int
    datacite: str
    licences: str


def add_snapshot(cursor: Cursor, snapshot: CorpusSnapshot, at: int) -> None:
    """Adds a snapshot, in the transaction of its blobs. Raises `UsageError` if there is one of its name."""
    about = snapshot.about
    row = {
        "name": about.name,
        "at": at,
        "made_at": snapshot.made_at,
        "about": msgspec.json.encode(about).decode(),
        "datacite": snapshot.datacite,
        "licences": snapshot.licences,
        "manifest": bytes.fromhex(about.manifest),
        "provenance": bytes.fromhex(about.provenance),
    }
    if not cursor.execute(_SQL["add_snapshot"].text, row).fetchall():
        raise UsageError(f"there is a snapshot '{about.name}' already; snapshots never change: name another")


def pin_captures(cursor: Cursor, name: str, captures: Iterable[str]) -> None:
    """Rules that free old content leave these alone."""
    cursor.execute(_SQL["pin_captures"].text, {"name": name, "capture": Uuids(captures)})


def list_snapshots(session: Session) -> list[CorpusSnapshot]:
    """Return all snapshots, the oldest state first."""
    return [_snapshot(*row) for row in session.fetch_all(_SQL["list_snapshots"], {"name": None})]


def find_snapshot(session: Session, name: str) -> CorpusSnapshot:
    """A snapshot by its name. Raises `NotArchived`."""
    rows = session.fetch_all(_SQL["list_snapshots"], {"name": name})
    if not rows:
        raise NotArchived(f"there is no snapshot '{name}'; 'tamias snapshot list' lists them")
    return _snapshot(*rows[0])


def needed_bodies(session: Session) -> list[tuple[str, str]]:
    """Return the digests of all manifests and provenances, each with the name of its snapshot."""
    return [(name, sha256) for name, sha256 in session.fetch_all(_SQL["bodies"])]


def remove_snapshot(session: Session, name: str) -> None:
    """Forgets a snapshot; what only it held is freed later. Raises `NotArchived`."""
    if not session.fetch_all(_SQL["remove_snapshot"], {"name": name}):
        raise NotArchived(f"there is no snapshot '{name}'; 'tamias snapshot list' lists them")


def find_gaps(session: Session, entries: Sequence[ManifestEntry]) -> list[SnapshotGap | None]:
    """Return for each entry why it is gone; None where it is there.

    A version is there as long as its row is: it is never without its body. A graph is there as long as its
    capture says where it stands.
    """
    versions = [entry for entry in entries if isinstance(entry, VersionEntry)]
    names = [entry.id.rpartition("_") for entry in versions]
    values = {
        "resource": Texts(name for name, _, _ in names),
        "number": Ints(int(number) for _, _, number in names),
        "sha256": Digests(entry.sha256 for entry in versions),
    }
    found = {name for (name,) in session.fetch_all(_SQL["present_versions"], values)} if versions else set()
    found |= extents(session, [entry.capture for entry in entries if isinstance(entry, GraphEntry)]).keys()
    gaps = _gaps(session, [entry for entry in entries if _name(entry) not in found])
    return [None if _name(entry) in found else gaps[_name(entry)] for entry in entries]


def _gaps(session: Session, entries: Sequence[ManifestEntry]) -> dict[str, SnapshotGap]:
    """Return why these are gone: what a tombstone says, where there is one."""
    resources = {_name(entry): _resource(entry) for entry in entries}
    tombstones = tombstones_of(session, list(resources.values())) if resources else []
    gaps: dict[str, SnapshotGap] = {}
    for entry in entries:
        number = int(entry.id.rpartition("_")[2]) if isinstance(entry, VersionEntry) else None
        found = next(
            (
                each
                for each in tombstones
                if each.resource == resources[_name(entry)] and each.number in (None, number or each.number)
            ),
            None,
        )
        gap = _REMOVED if found is None else SnapshotGap(f"forgotten: {found.reason}", rfc3339(found.at))
        gaps[_name(entry)] = gap
    return gaps


def _resource(entry: ManifestEntry) -> str:
    if isinstance(entry, VersionEntry):
        return entry.id.rpartition("_")[0]
    try:
        return resource_id(url_key(entry.document))
    except UrlError:  # the name of a document need not be an address
        return resource_id(entry.document)


def _name(entry: ManifestEntry) -> str:
    return entry.id if isinstance(entry, VersionEntry) else entry.capture


def extents(session: Session, captures: Sequence[str]) -> dict[str, Extent]:
    """Return where the quads of captures stand now; of those that have any."""
    wanted = WantedCaptures(ids=[UUID(each) for each in captures])
    rows = fetch_captures(session, _SQL["extents"], {"capture": Uuids(captures)}, wanted) if captures else []
    return {capture: Extent(*place) for capture, *place in rows}


def declared_licences(session: Session, urls: Sequence[str]) -> list[tuple[str, str, str | None]]:
    """Return what portals declare of files that they list: URL of the file, portal, licence."""
    rows = session.fetch_all(_SQL["licences"], {"url": list(urls)})
    return [(url, portal, licence) for url, portal, licence in rows]


def _snapshot(about: str, made_at: int, datacite: str, licences: str) -> CorpusSnapshot:
    return CorpusSnapshot(
        about=msgspec.json.decode(about, type=SnapshotAbout),
        made_at=made_at,
        datacite=datacite,
        licences=licences,
    )

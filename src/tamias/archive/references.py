"""The check that versions, blobs and resources agree, and the versions that a broken blob takes with it."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

import msgspec

from tamias.archive.moved_captures import fetch_captures, read_captures
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.model.capture import Extent
from tamias.plugins import needed_bodies

_SQL = statements("tamias.archive", "references.sql")
MOST_HOLDERS = 20


class Lost(msgspec.Struct, frozen=True):
    """A version whose body is not there, or not of its size."""

    version: str
    url: str
    sha256: str
    missing: bool


class LostDocument(msgspec.Struct, frozen=True):
    """A document whose quads cannot be read, and the URL that is to be visited for it."""

    document: str
    bucket: int
    qid: int
    crawl: int
    uid: int


class Holder(msgspec.Struct, frozen=True):
    """A version, as a person finds it."""

    version: str
    url: str


def lost_versions(session: Session) -> list[Lost]:
    """Versions and suspects that cannot be given back."""
    return [Lost(*row) for row in session.fetch_all(_SQL["lost"])]


def disagreeing(session: Session) -> list[tuple[str, str]]:
    """Resources that do not tell of their last version: ids and addresses."""
    return [(resource, url) for resource, url in session.fetch_all(_SQL["disagreeing"])]


def agree(session: Session, resources: Sequence[str]) -> None:
    """Makes resources tell of their last version."""
    session.execute(_SQL["agree"], {"resource": list(resources)})


def holders(session: Session, sha256s: Sequence[str]) -> list[Holder]:
    """Versions that have one of these bodies, so many at most."""
    values = {"sha256": [bytes.fromhex(each) for each in sha256s], "most": MOST_HOLDERS}
    return [Holder(*row) for row in session.fetch_all(_SQL["holders"], values)]


def referenced(session: Session) -> list[str]:
    """Return the digest of every body that a version, a suspect or a feature needs."""
    rows = session.fetch_all(_SQL["referenced"])
    return [*(sha256 for (sha256,) in rows), *(sha256 for _, _, sha256 in needed_bodies(session))]


class ColdResource(msgspec.Struct, frozen=True):
    """A resource that has not changed for a while."""

    captured_at: int
    """When its last version came, in milliseconds."""
    resource: str
    host: str
    bodies: tuple[str, ...] = ()
    """Digests, newest first, each once."""


def cold_resources(session: Session, before: int, after: tuple[int, str], limit: int) -> list[ColdResource]:
    """Return resources whose last version came before a time, those that changed longest ago first."""
    values = {"before": before, "captured_at": after[0], "resource": after[1], "limit": limit}
    found = [ColdResource(*row) for row in session.fetch_all(_SQL["cold"], values)]
    bodies: dict[str, dict[str, None]] = {each.resource: {} for each in found}
    for resource, sha256 in session.fetch_all(_SQL["bodies"], {"resource": list(bodies)}):
        bodies[resource][sha256] = None
    return [msgspec.structs.replace(each, bodies=tuple(bodies[each.resource])) for each in found]


class SegmentExtents(msgspec.Struct, frozen=True):
    """A file of quads, and where the documents in it stand."""

    segment: int
    name: str
    committed: int
    extents: list[Extent]
    """In the file."""
    documents: list[Extent]
    """The same by the numbers that captures have: these differ where segments were merged."""


def segments(session: Session) -> Iterator[SegmentExtents]:
    """Yield every file of quads."""
    rows = read_captures(session, _SQL["segments"], {})
    for (segment, name, committed), group in groupby(rows, key=lambda row: row[:3]):
        placed = [row[3:] for row in group if row[3] is not None]
        extents = [Extent(segment, *row[:3]) for row in placed]
        documents = [Extent(row[3], row[4], row[5], row[2]) for row in placed]
        yield SegmentExtents(segment, name, committed, extents, documents)


def committed_lengths(session: Session) -> dict[int, int]:
    """Return how long each segment is at least."""
    return dict(session.fetch_all(_SQL["committed"]))


def lost_documents(session: Session, extents: Sequence[Extent]) -> list[LostDocument]:
    """The documents whose present quads stood there."""
    return [LostDocument(*row) for row in fetch_captures(session, _SQL["lost_documents"], _places(extents))]


def lost_captures(session: Session, extents: Sequence[Extent]) -> list[tuple[str, datetime]]:
    """The documents and times of captures whose quads stood there."""
    return [
        (document, at) for document, at in fetch_captures(session, _SQL["lost_captures"], _places(extents))
    ]


def _places(extents: Sequence[Extent]) -> dict[str, Any]:
    return {
        "segment": [each.segment for each in extents],
        "frame": [each.frame for each in extents],
        "start": [each.start for each in extents],
    }

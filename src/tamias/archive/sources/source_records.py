"""Records of catalogues as documents: every version of each, to be asked for, compared and read again."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import msgspec
import zstandard

from tamias.database.columns import storable
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.model.finding import SourceRecord
from tamias.model.resource import Resource, Version, resource_id

_STORED = (
    "NOT EXISTS (SELECT FROM forgotten WHERE forgotten.resource = kept.resource"
    " AND forgotten.finished_at IS NULL AND coalesce(forgotten.number = kept.number, true))"
)
_SQL = statements("tamias.archive.sources", "source_records.sql", is_stored=_STORED)
_PAGE = 200
_LARGEST = 256 << 20
"""Bytes of one record; a harvest reads no larger answer."""


class RecordStats(msgspec.Struct, frozen=True):
    """Records that are kept: documents, not datasets."""

    records: int
    versions: int
    catalogues: int
    bytes: int
    stored_bytes: int


def keep_records(cursor: Cursor, portal: str, harvest: int, records: Sequence[SourceRecord]) -> None:
    """Keeps what is new of these; the portal's row must be there. The same news twice is harmless."""
    unique = {each.iri: each for each in records}.values()
    packer = zstandard.ZstdCompressor(level=3)
    columns = {
        "resource": [resource_id(each.iri) for each in unique],
        "sha256": [sha256(each.body).digest() for each in unique],
        "byte_size": [len(each.body) for each in unique],
        "body": [packer.compress(each.body) for each in unique],
        "content": [each.content for each in unique],
        **{
            name: [storable(getattr(each, name)) for each in unique]
            for name in ("iri", "record", "catalogue", "mapping", "media_type")
        },
    }
    cursor.execute(_SQL["put_source_records"].text, {"url": storable(portal), "harvest": harvest, **columns})


def find_record(session: Session, resource: str) -> Resource | None:
    """A record that was kept, by the id of its IRI."""
    row = session.fetch_one(_SQL["find_record"], {"resource": resource})
    if row is None:
        return None
    iri, title, gone_at, captured_at = row
    state = "active" if gone_at is None else "gone"
    return Resource(id=resource, url=iri, title=title, state=state, added_at=captured_at)  # type: ignore[arg-type]


def record_versions(session: Session, resource: str) -> list[Version]:
    """The versions of a record, oldest first."""
    rows = session.fetch_all(_SQL["record_versions"], {"resource": resource})
    return [
        Version(
            resource=resource, number=number, captured_at=captured_at, sha256=digest, byte_size=size,
            media_type=media_type, declared_type=media_type, capture="",
        )
        for number, captured_at, digest, size, media_type in rows
    ]  # fmt: skip


class RecordBodies:
    """Reads the versions of one record."""

    def __init__(self, session: Session, resource: str) -> None:
        self._session = session
        self._resource = resource

    def read(self, digest: str) -> bytes:
        """The bytes of a version by their SHA-256. Raises `KeyError` where there is none of it."""
        values = {"resource": self._resource, "sha256": bytes.fromhex(digest)}
        row = self._session.fetch_one(_SQL["record_body"], values)
        if row is None:
            raise KeyError(digest)
        return _unpacked(row[0])

    def pieces(self, digest: str) -> Iterator[bytes]:
        """The same in one piece."""
        yield self.read(digest)


def catalogue_of(session: Session, portal: str) -> str | None:
    """Return what the IRIs of a portal's records begin with; None where none are stored."""
    row = session.fetch_one(_SQL["catalogue_of"], {"url": portal})
    return row[0] if row else None


def records_at(
    session: Session, portal: str, iris: Sequence[str], at: int, most_bytes: int
) -> list[tuple[SourceRecord, int]]:
    """The records with these IRIs as a catalogue gave them at a time, each with when it was first seen so.

    Those of more bytes are left out.
    """
    values = {"url": portal, "resource": [resource_id(iri) for iri in iris], "at": at, "most": most_bytes}
    rows = session.fetch_all(_SQL["records_at"], values)
    return [(_source_record(row), captured_at) for *row, captured_at in rows if row[-1] is not None]


def latest_records(session: Session, portal: str) -> Iterator[SourceRecord]:
    """Yield the records of a catalogue, each as it was last seen."""
    records, after = _page_after(session, portal, "", present=False)
    while records:
        yield from records
        records, after = _page_after(session, portal, after, present=False)


def present_records(session: Session, portal: str, after: str) -> tuple[list[SourceRecord], str]:
    """Return a page of the records that are present in a catalogue, and where the next page begins."""
    return _page_after(session, portal, after, present=True)


def _page_after(
    session: Session, portal: str, after: str, *, present: bool
) -> tuple[list[SourceRecord], str]:
    values = {"url": portal, "after": after, "present": present, "limit": _PAGE}
    rows = session.fetch_all(_SQL["latest_records"], values)
    return [_source_record(row) for row in rows], rows[-1][0] if rows else after


def page_of_records(session: Session, portal: str, start: int, limit: int, since: int) -> list[SourceRecord]:
    """Return a page of the records of a catalogue: all, or those that changed since a time."""
    values = {"url": portal, "start": start, "limit": limit, "since": since}
    return [_source_record(row) for row in session.fetch_all(_SQL["page_records"], values)]


def count_of_records(session: Session, portal: str, since: int) -> int:
    """Count the records of a catalogue that changed since a time."""
    row = session.fetch_one(_SQL["count_page_records"], {"url": portal, "since": since})
    return int(row[0]) if row else 0


def _source_record(row: Sequence[Any]) -> SourceRecord:
    _, iri, record, mapping, catalogue, media_type, body = row
    return SourceRecord(
        iri=iri,
        record=record,
        mapping=mapping,
        catalogue=catalogue,
        media_type=media_type,
        body=_unpacked(body),
    )


def record_stats(session: Session) -> RecordStats:
    """Count the stored records."""
    row = session.fetch_one(_SQL["count_records"])
    assert row is not None
    return RecordStats(*row)


def damaged_records(session: Session) -> Iterator[tuple[str, str]]:
    """The versions that are not what they were, each as its name and what is wrong."""
    after, number = "", 0
    while True:
        rows = session.fetch_all(_SQL["damaged_records"], {"after": after, "number": number, "limit": _PAGE})
        for _, version, iri, digest, body in rows:
            try:
                sound = sha256(_unpacked(body)).digest() == digest
            except zstandard.ZstdError:
                sound = False
            if not sound:
                yield iri, f"version {version} is not what its SHA-256 says"
        if not rows:
            return
        after, number = rows[-1][:2]


def _unpacked(body: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(body, max_output_size=_LARGEST)

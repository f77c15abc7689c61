"""Harvests as rows: how far each came, so that a killed one continues; JSON-LD contexts, fetched once."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

import msgspec

from tamias.archive.sources.revisits import UrlPlace
from tamias.archive.stored_files import StoredFile
from tamias.database.columns import storable
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.model.finding import HarvestEnd
from tamias.model.lease import Lease, Task

_SQL = statements("tamias.archive.sources", "harvests.sql")


class HarvestProgress(msgspec.Struct, kw_only=True):
    """Progress of a harvest."""

    started_at: int
    state: bytes | None = None
    written: int = msgspec.field(default=0, name="kept")
    """Bytes of the file of its quads that count."""
    spool: str = ""
    """The name of that file in a store."""
    parts: tuple[int, ...] = ()
    """Where each object of it starts there."""
    steps: int = 0
    quads: int = 0
    links: int = 0
    cut: int = 0
    """What kept links out: bits of `tamias.model.cut`."""
    bytes: int = 0
    problems: list[str] = msgspec.field(default_factory=list)
    faults: int = 0
    """How many problems there were, also those that are not kept."""
    renamed: dict[str, str] = msgspec.field(default_factory=dict)
    status: int = 0
    """Of the last answer."""
    address: str = ""
    """Of whoever gave it."""
    pauses: int = 0
    """Times that it was given back because the server asked for a pause, since the last step."""
    failures: int = 0
    """Times that it stopped for another reason and was tried again later."""
    end: HarvestEnd | None = None
    """Set when nothing is left but to commit it."""


class HarvestKey(UrlPlace, frozen=True):
    """The address that is harvested, by its place in the frontier."""

    @property
    def file_name(self) -> str:
        """The name of the file of its quads."""
        return f"{self.crawl:x}-{self.qid & (2**64 - 1):016x}-{self.uid & (2**64 - 1):016x}.nq.zst"


def harvest_key(lease: Lease, task: Task) -> HarvestKey:
    """The place of a task's harvest."""
    return HarvestKey(lease.bucket, lease.qid, task.crawl, task.uid)


class HarvestMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The state that earlier attempts at a harvest left."""

    progress: HarvestProgress | None = None
    """How far the one under way came."""
    bookmark: bytes | None = None
    """What the last complete one left."""
    document_at: int | None = None
    """When the one began that made the document; None where that is not known."""
    document_records: int | None = None
    """Of how many records."""


def read_harvest(session: Session, place: HarvestKey) -> HarvestMemory:
    """Return the state that earlier attempts left."""
    values = msgspec.structs.asdict(place)
    row = session.fetch_one(_SQL["read_harvest"], values)
    if row is None:
        return HarvestMemory()
    progress, bookmark, document_at, document_records = row
    return HarvestMemory(
        progress=msgspec.msgpack.decode(progress, type=HarvestProgress) if progress else None,
        bookmark=bookmark,
        document_at=document_at,
        document_records=document_records,
    )


def save_harvest(session: Session, place: HarvestKey, progress: HarvestProgress) -> None:
    """Makes a step durable."""
    values: dict[str, Any] = {
        **msgspec.structs.asdict(place),
        "started_at": progress.started_at,
        "progress": msgspec.msgpack.encode(progress),
    }
    session.execute(_SQL["save_harvest"], values)


def harvest_files(session: Session) -> list[StoredFile]:
    """The files in a store of harvests that have not ended."""
    rows = session.fetch_all(_SQL["under_way"])
    found = [msgspec.msgpack.decode(row[0], type=HarvestProgress) for row in rows]
    return [
        StoredFile(
            file=UUID(each.spool[:36]), kind="harvests", name=each.spool, in_store=True, parts=each.parts
        )
        for each in found
        if each.spool
    ]


def end_harvest(
    cursor: Cursor,
    place: HarvestKey,
    bookmark: bytes | None,
    *,
    url: str,
    document_at: int | None,
    unchanged: bool,
) -> None:
    """The harvest is committed, in the transaction that says so.

    `document_at` is its start, if its document is made of the records that are present.
    """
    values = {"bookmark": bookmark, "url": storable(url), "document_at": document_at, "unchanged": unchanged}
    cursor.execute(_SQL["end_harvest"].text, {**msgspec.structs.asdict(place), **values})


def read_contexts(session: Session, addresses: Sequence[str], since: int) -> dict[str, bytes | None]:
    """Return the contexts that were tried since a time; None for one without content."""
    values = {"keys": [_key(address) for address in addresses], "since": since}
    rows = session.fetch_all(_SQL["read_contexts"], values)
    return dict(rows)


def keep_context(cursor: Cursor, address: str, body: bytes | None, now: int) -> None:
    """Keeps one, in the transaction of the visit that brought it."""
    values = {"key": _key(address), "now": now, "body": body, "url": address}
    cursor.execute(_SQL["keep_context"].text, values)


def _key(address: str) -> bytes:
    return sha256(address.encode()).digest()

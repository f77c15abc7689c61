"""Walks as rows: how far each came, so that a killed one goes on where it was."""

from typing import Any

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.model.lease import Lease, Task
from tamias.model.walk import WalkEnd

_SQL = statements("tamias.archive", "walks.sql")


class Progress(msgspec.Struct, kw_only=True):
    """What a walk has brought so far."""

    started_at: int
    state: bytes | None = None
    kept: int = 0
    """Bytes of the file of its quads that count."""
    steps: int = 0
    quads: int = 0
    links: int = 0
    cut: int = 0
    """What kept links out: bits of `tamias.model.cut`."""
    bytes: int = 0
    problems: list[str] = msgspec.field(default_factory=list)
    renamed: dict[str, str] = msgspec.field(default_factory=dict)
    status: int = 0
    """Of the last answer."""
    address: str = ""
    """Of whoever gave it."""
    end: WalkEnd | None = None
    """Set when nothing is left but to commit it."""


class WalkPlace(msgspec.Struct, frozen=True):
    """Whose walk it is."""

    bucket: int
    qid: int
    crawl: int
    uid: int

    @property
    def file_name(self) -> str:
        """The name of the file of its quads."""
        return f"{self.crawl:x}-{self.qid & (2**64 - 1):016x}-{self.uid & (2**64 - 1):016x}.nq.zst"


def walk_place(lease: Lease, task: Task) -> WalkPlace:
    """The place of a task's walk."""
    return WalkPlace(lease.bucket, lease.qid, task.crawl, task.uid)


def read_walk(session: Session, place: WalkPlace) -> tuple[Progress | None, bytes | None]:
    """How far the walk under way came, if there is one; and the bookmark."""
    asked = msgspec.structs.asdict(place)
    row = session.transact(lambda cursor: cursor.execute(_SQL["read_walk"].text, asked).fetchone())
    if row is None:
        return None, None
    _, progress, bookmark = row
    return (msgspec.msgpack.decode(progress, type=Progress) if progress else None), bookmark


def keep_walk(session: Session, place: WalkPlace, progress: Progress) -> None:
    """Makes a step durable."""
    told: dict[str, Any] = {
        **msgspec.structs.asdict(place),
        "started_at": progress.started_at,
        "progress": msgspec.msgpack.encode(progress),
    }
    session.transact(lambda cursor: cursor.execute(_SQL["keep_walk"].text, told))


def end_walk(cursor: Cursor, place: WalkPlace, bookmark: bytes | None) -> None:
    """The walk is committed, in the transaction that says so."""
    cursor.execute(_SQL["end_walk"].text, {**msgspec.structs.asdict(place), "bookmark": bookmark})

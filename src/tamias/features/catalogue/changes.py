"""Changes of resources and portals since a store was last brought up to date."""

import time
from typing import Any

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements

_SQL = statements("tamias.features.catalogue", "changes.sql")
_SINKS = statements("tamias.sinks", "outbox.sql")
_PATIENCE_SECONDS = 60.0
_NOTE_SECONDS = 60.0


class Followed(msgspec.Struct, frozen=True):
    """The point up to which a store has followed."""

    seen: str
    service: str
    """What the IRIs of its resources begin with; empty while it is being filled."""


class CatalogueChanges(msgspec.Struct, frozen=True):
    """Changes, and the point up to which they are complete."""

    resources: list[str]
    versions: list[str]
    portals: list[str]
    sitemaps: list[str]
    """Whose declared datasets have changed."""
    seen: str


class Changes:
    """The changes for one store, known as a sink."""

    def __init__(self, session: Session, sink: int) -> None:
        self._session = session
        self._sink = sink
        self._reported: set[tuple[str, str, str]] = set()
        self._noted_at = float("-inf")

    def followed(self) -> Followed | None:
        """Return how far the store has followed, or None when it must be filled again."""
        rows = self._rows("find")
        return Followed(*rows[0]) if rows and rows[0][1] else None

    def enter(self, service: str = "") -> str:
        """Begin to note changes for the store; return the transaction to begin with.

        Whoever wrote without leaving a note has ended when this returns, so what is read now is complete.
        """
        ((seen,),) = self._rows("enter", service=service)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while int(self._oldest_running()) <= int(seen) and time.monotonic() < deadline:
            time.sleep(0.05)
        return str(seen)

    def filled(self, followed: Followed) -> None:
        """The store has all that there was."""

        def work(cursor: Cursor) -> None:
            cursor.execute(_SQL["enter"].text, {"sink": self._sink, "service": followed.service})
            cursor.execute(_SQL["follow"].text, {"sink": self._sink, "seen": followed.seen})

        self._session.transact(work)

    def news(self, since: str, patience: float = 0.0) -> CatalogueChanges:
        """Return what was changed since, without what was returned before.

        What is about to change again, as the profile of a new version is made, is told with that, or after
        so many seconds.
        """
        seen = self._oldest_running()
        found = self._rows("news", seen=since, patience=patience)
        rows = {(xid, kind, name) for xid, kind, name, waits in found if not waits}
        fresh = rows - self._reported
        self._reported = rows
        seen = min([seen, *(xid for xid, _, _, waits in found if waits)], key=int)
        return CatalogueChanges(
            sorted({name for _, kind, name in fresh if kind == "resource"}),
            sorted({name for _, kind, name in fresh if kind == "version"}),
            sorted({name for _, kind, name in fresh if kind == "portal"}),
            sorted({name for _, kind, name in fresh if kind == "declared"}),
            seen,
        )

    def follow(self, seen: str) -> None:
        """The store has all news up to there. Where there were none, this is noted once a minute."""
        if self._reported or time.monotonic() - self._noted_at > _NOTE_SECONDS:
            self._run("follow", seen=seen)
            self._run("forget_news")
            self._noted_at = time.monotonic()

    def forget_reported(self) -> None:
        """Forget the changes returned last: they have not reached the store."""
        self._reported = set()

    def _oldest_running(self) -> str:
        ((seen,),) = self._rows("oldest_running")
        return str(seen)

    def _rows(self, name: str, **params: Any) -> list[tuple[Any, ...]]:
        words = {"sink": self._sink, **params}
        return self._session.transact(lambda cursor: cursor.execute(_SQL[name].text, words).fetchall())

    def _run(self, name: str, **params: Any) -> None:
        words = {"sink": self._sink, **params}
        self._session.transact(lambda cursor: cursor.execute(_SQL[name].text, words))


def numbered(session: Session, name: str) -> int:
    """The number of a store among the sinks; the same name twice is one store."""
    params = {"name": name}
    ((sink,),) = session.transact(lambda cursor: cursor.execute(_SINKS["add_sink"].text, params).fetchall())
    return int(sink)


def forget_deliveries(session: Session, name: str, buckets: int) -> None:
    """Forget which documents were brought to a store, after it was lost."""
    sink = numbered(session, name)

    def work(cursor: Cursor) -> None:
        for bucket in range(buckets):
            cursor.execute(_SQL["forget_outbox"].text, {"bucket": bucket, "sink": sink})
        cursor.execute(_SQL["forget_placed"].text, {"sink": sink})

    session.transact(work)


def forget_store(session: Session, name: str) -> None:
    """A store that is no more."""
    session.transact(lambda cursor: cursor.execute(_SQL["forget_store"].text, {"name": name}))


def forget_stale_stores(session: Session, sink: int, buckets: int) -> None:
    """Delete the notes for stores of services that are gone. One that comes back is filled again."""
    params = {"sink": sink}
    for (name,) in session.fetch_all(_SQL["stale_stores"], params):
        forget_deliveries(session, name, buckets)
        forget_store(session, name)

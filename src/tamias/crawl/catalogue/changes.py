"""What has changed since a store was last told: resources and portals, as those who changed them noted."""

import time
from typing import Any

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements

_SQL = statements("tamias.crawl.catalogue", "changes.sql")
_SINKS = statements("tamias.sinks", "outbox.sql")
_PATIENCE_SECONDS = 60.0
_NOTE_SECONDS = 60.0


class Followed(msgspec.Struct, frozen=True):
    """How far a store has followed."""

    seen: str
    service: str
    """What the IRIs of its resources begin with; empty while it is being filled."""


class CatalogueChanges(msgspec.Struct, frozen=True):
    """What has changed, and up to where that is all."""

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
        self._told: set[tuple[str, str, str]] = set()
        self._noted_at = float("-inf")

    def followed(self) -> Followed | None:
        """None when it must be filled from the beginning."""
        rows = self._rows("find")
        return Followed(*rows[0]) if rows and rows[0][1] else None

    def enter(self, service: str = "") -> str:
        """From now on changes are noted for the store; told is the transaction to begin with.

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
        """What was changed since, without what was told already.

        What is about to change again, as the profile of a new version is made, is told with that, or after
        so many seconds.
        """
        seen = self._oldest_running()
        found = self._rows("news", seen=since, patience=patience)
        rows = {(xid, kind, name) for xid, kind, name, waits in found if not waits}
        fresh = rows - self._told
        self._told = rows
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
        if self._told or time.monotonic() - self._noted_at > _NOTE_SECONDS:
            self._run("follow", seen=seen)
            self._run("forget_news")
            self._noted_at = time.monotonic()

    def forget_told(self) -> None:
        """What was told last has not reached the store."""
        self._told = set()

    def _oldest_running(self) -> str:
        ((seen,),) = self._rows("oldest_running")
        return str(seen)

    def _rows(self, name: str, **asked: Any) -> list[tuple[Any, ...]]:
        words = {"sink": self._sink, **asked}
        return self._session.transact(lambda cursor: cursor.execute(_SQL[name].text, words).fetchall())

    def _run(self, name: str, **asked: Any) -> None:
        words = {"sink": self._sink, **asked}
        self._session.transact(lambda cursor: cursor.execute(_SQL[name].text, words))


def count_buckets(session: Session) -> int:
    """How many parts the frontier has."""
    ((buckets,),) = session.transact(lambda cursor: cursor.execute(_SQL["buckets"].text).fetchall())
    return int(buckets)


def numbered(session: Session, name: str) -> int:
    """The number of a store among the sinks; the same name twice is one store."""
    asked = {"name": name}
    ((sink,),) = session.transact(lambda cursor: cursor.execute(_SINKS["add_sink"].text, asked).fetchall())
    return int(sink)


def forget_deliveries(session: Session, name: str, buckets: int) -> None:
    """No document has been brought to a store: what was, is not there any more."""
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
    """What was noted for stores of services that are no more. One that comes back is filled again."""
    asked = {"sink": sink}
    for (name,) in session.fetch_all(_SQL["stale_stores"], asked):
        forget_deliveries(session, name, buckets)
        forget_store(session, name)

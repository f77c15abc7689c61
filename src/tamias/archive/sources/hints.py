"""What sitemaps and catalogues say of resources under watch, and how far a host is to be believed: rows."""

from collections.abc import Sequence

import msgspec

from tamias.database.columns import storable
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements

_SQL = statements("tamias.archive.sources", "hints.sql")


class Said(msgspec.Struct, frozen=True):
    """What somebody says of one address."""

    url: str
    changed_at: int | None = None
    frequency: str | None = None


class ClaimedChange(msgspec.Struct, frozen=True):
    """A resource that is said to have changed at a time."""

    url: str
    host: str
    visited_at: int | None
    changed_at: int | None


def note_hints(session: Session, said: Sequence[Said]) -> list[ClaimedChange]:
    """Keeps what is news; returns the resources that it is about."""
    told = {
        "url": [storable(each.url) for each in said],
        "changed_at": [each.changed_at for each in said],
        "frequency": [storable(each.frequency) for each in said],
    }
    rows = session.transact(lambda cursor: cursor.execute(_SQL["note_hints"].text, told).fetchall())
    return [ClaimedChange(*row) for row in rows]


def read_trust(session: Session, hosts: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Of how many tests the dates of hosts proved right in how many: (right, tests)."""
    asked = {"host": list(hosts)}
    rows = session.transact(lambda cursor: cursor.execute(_SQL["read_trust"].text, asked).fetchall())
    return {host: (correct, checked) for host, correct, checked in rows}


def write_trust(cursor: Cursor, host: str, correct: int, checked: int) -> None:
    """After one more test."""
    cursor.execute(_SQL["write_trust"].text, {"host": host, "correct": correct, "checked": checked})

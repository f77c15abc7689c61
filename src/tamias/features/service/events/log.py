"""The log: news are numbered once, and read by their numbers."""

from typing import Any, Final, Literal

import msgspec

from tamias.archive.moments import rfc3339
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements

Kind = Literal["version", "state"]
KINDS: Final[tuple[Kind, ...]] = ("version", "state")
_SQL = statements("tamias.features.service.events", "events.sql")
_LOCK: Final = 0x7A31A6
_AT_ONCE: Final = 10_000


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event of a resource: a new version, or another state."""

    id: int
    kind: Kind
    at: str
    dataset: str
    """The id of the resource."""
    url: str
    host: str
    title: str | None = None
    number: int | None = None
    sha256: str | None = None
    byte_size: int | None = None
    media_type: str | None = None
    noise: str | None = None
    """Why only its bytes differ from those of the version before; None where its content does."""
    state: str | None = None


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The events that a client wants."""

    kinds: tuple[Kind, ...] = KINDS
    resource: str | None = None
    host: str | None = None
    portal: str | None = None


ALL: Final = EventFilter()


def latest_event(session: Session) -> int:
    """The number of the last event, after all news have got theirs."""
    while session.transact(_number_news) == _AT_ONCE:
        pass
    return session.transact(latest)


def read_events(
    session: Session, after: int, until: int, limit: int, wanted: EventFilter = ALL
) -> list[Event]:
    """Events after one number up to another."""
    return session.transact(lambda cursor: events_in(cursor, after, until, limit, wanted))


def events_in(cursor: Cursor, after: int, until: int, limit: int, wanted: EventFilter) -> list[Event]:
    """The same, within a transaction."""
    values = {"after": after, "until": until, "limit": limit, **msgspec.structs.asdict(wanted)}
    values["kinds"] = list(wanted.kinds)
    return [_event(row) for row in cursor.execute(_SQL["read_events"].text, values).fetchall()]


def latest(cursor: Cursor) -> int:
    """The number of the last event that has one."""
    row = cursor.execute(_SQL["latest_event"].text).fetchone()
    assert row is not None
    return int(row[0])


def _number_news(cursor: Cursor) -> int:
    row = cursor.execute(_SQL["is_news"].text).fetchone()
    if row is None or not row[0]:
        return 0
    cursor.execute(_SQL["lock_log"].text, {"lock": _LOCK})
    return cursor.execute(_SQL["number_news"].text, {"limit": _AT_ONCE}).rowcount


def _event(row: tuple[Any, ...]) -> Event:
    number, kind, at, resource, url, host, title, count, digest, size, media_type, noise, state = row
    return Event(
        id=number, kind=kind, at=rfc3339(at), dataset=resource, url=url, host=host, title=title, number=count,
        sha256=digest, byte_size=size, media_type=media_type, noise=noise, state=state,
    )  # fmt: skip

"""Profiles of bodies as rows: made once for each body, whichever resources have it."""

import msgspec

from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.model.profile import Profile

_SQL = statements("tamias.archive.catalogue", "stored_profiles.sql")


class Unprofiled(msgspec.Struct, frozen=True):
    """A body that nobody has looked into yet."""

    sha256: str
    media_type: str | None
    url: str


def unprofiled(session: Session, limit: int) -> list[Unprofiled]:
    """The newest bodies without a profile."""
    asked = {"limit": limit}
    rows = session.transact(lambda cursor: cursor.execute(_SQL["unprofiled"].text, asked).fetchall())
    return [Unprofiled(*row) for row in rows]


def keep_profile(session: Session, sha256: str, profile: Profile, now: int) -> None:
    """Keeps what a body holds; its tables once more by themselves, for whoever asks only for those."""
    told = {"content": _json(profile)}
    if profile.tables:
        told["table"] = _json(profile.tables)
    row = {
        "sha256": bytes.fromhex(sha256),
        "now": now,
        "kind": list(told),
        "profile": list(told.values()),
    }
    session.transact(lambda cursor: cursor.execute(_SQL["keep_profile"].text, row))


def read_profile(session: Session, sha256: str) -> Profile | None:
    """What a body holds, if somebody has looked into it."""
    asked = {"sha256": bytes.fromhex(sha256)}
    row = session.transact(lambda cursor: cursor.execute(_SQL["read_profile"].text, asked).fetchone())
    return msgspec.convert(row[0], Profile) if row else None


def _json(value: object) -> str:
    """As PostgreSQL can hold it: it has no NUL in text."""
    return msgspec.json.encode(value).decode().replace("\\u0000", "\\ufffd")

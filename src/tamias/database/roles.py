"""Least rights: the roles that workers and services act as, made and endowed by the schema's owner.

What each may do stands in `rights.sql`.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
from psycopg import errors as pg

from tamias.database.migrate import ADVISORY_LOCK, newest_of_features, rights
from tamias.database.sql import statements

if TYPE_CHECKING:
    from tamias.database.connect import Cursor

_SQL = statements("tamias.database", "roles.sql")
_ATTEMPTS = 3


class Role(StrEnum):
    """The database role of a process that is not the owner of the schema."""

    WORKER = "tamias_worker"
    FRONTIER = "tamias_frontier"
    SERVICE = "tamias_service"


class Standing(msgspec.Struct, frozen=True):
    """The state of the roles for the connected user."""

    current: bool
    """Whether the rights that were given last are those of this schema and release."""
    is_owner: bool
    may_make: bool
    citus: bool
    joined: tuple[str, ...]
    """The roles that we may act as."""
    used: tuple[str, ...]
    """Those of them that have rights."""

    @property
    def lacking(self) -> list[Role]:
        """The roles that we cannot act as with their rights."""
        return [role for role in Role if role not in (self.used if self.current else ())]

    @property
    def may_give(self) -> bool:
        """Return whether we can do something about that."""
        return self.is_owner and (self.may_make or set(Role) <= set(self.joined))


def ready_roles(cursor: "Cursor") -> Standing:
    """Make the roles and give them their rights, where that is not done and is ours to do."""
    standing = _standing(cursor)
    if not standing.lacking or not standing.may_give:
        return standing
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK])
    try:
        with cursor.connection.transaction():
            _give_rights(cursor)
    except (pg.InsufficientPrivilege, pg.ReadOnlySqlTransaction):
        return standing
    return _standing(cursor)


def ready_role(cursor: "Cursor", name: str) -> None:
    """Make a role where it is not yet, and lets us act as it. Raises `InsufficientPrivilege`."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with cursor.connection.transaction():
                _ready_role(cursor, name)
            return
        except (pg.DuplicateObject, pg.UniqueViolation):
            # Roles are the whole server's: somebody makes the same one for another database.
            if attempt == _ATTEMPTS:
                raise


def for_administrators(cursor: "Cursor", names: Sequence[str], *, login: bool = False) -> str:
    """Return what somebody with more rights than ours runs, once, so that we can act as the roles."""
    user = cursor.connection.info.user
    kind = "LOGIN" if login else "NOLOGIN"
    return "; ".join(f"CREATE ROLE {name} {kind}; GRANT {name} TO {user}" for name in names)


def trouble(cursor: "Cursor") -> str | None:
    """Return why processes cannot act as their roles, and what to do about it; None if they can."""
    standing = _standing(cursor)
    if not standing.lacking:
        return None
    user = cursor.connection.info.user
    lacking = ", ".join(standing.lacking)
    if not standing.is_owner:
        return f"{user} does not own the schema tamias, and may not act as {lacking}"
    absent = [role for role in Role if role not in standing.joined]
    why = " (Citus logs in to its nodes as the role, so it must be one that can)" if standing.citus else ""
    return (
        f"workers and services act as {user}, with all its rights, for it cannot act as {lacking}{why};"
        " let an administrator of the server run: "
        f"{for_administrators(cursor, absent, login=standing.citus)}; then start Tamias again"
    )


def powers(cursor: "Cursor") -> list[str]:
    """Return what the connected user could do outside its database; this should be nothing."""
    return [name for (name,) in cursor.execute(_SQL["powers"].text)]


def _standing(cursor: "Cursor") -> Standing:
    given = cursor.execute(_SQL["rights_given"].text).fetchone()
    row = cursor.execute(_SQL["standing"].text, {"roles": list(Role)}).fetchone()
    assert given is not None
    assert row is not None
    is_owner, may_make, citus, joined, used = row
    return Standing(given[0] == rights()[0], is_owner, may_make, citus, tuple(joined), tuple(used))


def _give_rights(cursor: "Cursor") -> None:
    """Give the rights of this release; of one with more features nothing is taken, it may be at work."""
    for role in Role:
        ready_role(cursor, role)
    name, text = rights()
    row = cursor.execute(_SQL["features_seen"].text).fetchone()
    assert row is not None
    ours = newest_of_features()
    if all(step <= ours.get(feature, 0) for feature, step in row[0].items()):
        text = statements("tamias.database", "rights.sql")["take_rights"].text + text
    # Not by the cursor: it asks for binary answers, and such a request holds one statement only.
    cursor.connection.execute(text)
    cursor.execute(_SQL["note_rights"].text, {"rights": name})


def _ready_role(cursor: "Cursor", name: str) -> None:
    row = cursor.execute(_SQL["may_act_as"].text, {"role": name}).fetchone()
    if row is None:
        cursor.execute(_SQL["make_role"].text.replace(b":role", name.encode()))
    if row is None or not row[0]:
        cursor.execute(_SQL["join_role"].text.replace(b":role", name.encode()))

"""Locks in the database, by which processes on different machines know of each other.

A lock belongs to the session that took it, and ends with its connection, however that one ends.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from tamias.database.connect import Session

LockName = Literal["packs", "repack"]
_TRY_ALONE = b"SELECT pg_try_advisory_lock(hashtextextended('tamias ' || %(name)b::text, 0))"
_SHARED = b"SELECT pg_advisory_lock_shared(hashtextextended('tamias ' || %(name)b::text, 0))"
_LEAVE = b"SELECT pg_advisory_unlock(hashtextextended('tamias ' || %(name)b::text, 0))"
_LEAVE_SHARED = b"SELECT pg_advisory_unlock_shared(hashtextextended('tamias ' || %(name)b::text, 0))"


@contextmanager
def alone_on_database(session: Session, name: LockName) -> Iterator[bool]:
    """Try to take the lock exclusively, yield if it was taken, and release it afterwards."""
    held = session.fetch_one(_TRY_ALONE, {"name": name}) == (True,)
    try:
        yield held
    finally:
        if held:
            session.fetch_one(_LEAVE, {"name": name})


@contextmanager
def shared_on_database(session: Session, name: LockName) -> Iterator[None]:
    """Held together with others; waits while somebody holds it alone."""
    session.fetch_one(_SHARED, {"name": name})
    try:
        yield
    finally:
        session.fetch_one(_LEAVE_SHARED, {"name": name})

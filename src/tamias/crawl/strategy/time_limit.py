"""The time that code of others may take, kept from outside the server process that runs it.

PostgreSQL's own statement_timeout raises an error, and PL/pgSQL can catch that. Whoever does is ended with
the connection, a moment later.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from tamias.database.connect import Cursor, Session
from tamias.model.errors import DatabaseError

GRACE_SECONDS = 1.0
"""The usual limit, which keeps the connection, comes first."""
_AGAIN_SECONDS = 0.5


class TookTooLong(Exception):
    """The connection was ended."""


@contextmanager
def time_limit(session: Session, cursor: Cursor, seconds: float) -> Iterator[None]:
    """Ends the cursor's connection if the block takes longer; then raises `TookTooLong`."""
    done = threading.Event()
    # Not what the connection says of itself: a pooler makes that up.
    row = cursor.execute("SELECT pg_catalog.pg_backend_pid()").fetchone()
    pid = row[0] if row else 0
    ended = False

    def watch() -> None:
        nonlocal ended
        if not done.wait(seconds + GRACE_SECONDS):
            ended = _end(session, pid, done)

    watcher = threading.Thread(target=watch, name="strategy time limit", daemon=True)
    watcher.start()
    try:
        yield
    except psycopg.Error:
        done.set()
        watcher.join()
        if not ended:
            raise
    finally:
        done.set()
        watcher.join()
    if ended:
        raise TookTooLong


def _end(session: Session, pid: int, done: threading.Event) -> bool:
    """Ends the backend, however often the server must be asked; false when it came to its end before."""
    while not done.is_set():
        with suppress(psycopg.Error, DatabaseError):
            session.end_backend(pid)
            return True
        time.sleep(_AGAIN_SECONDS)
    return False

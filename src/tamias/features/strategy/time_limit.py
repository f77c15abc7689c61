"""A time limit for code of users, enforced from outside the server process that runs it.

PL/pgSQL can catch the error of PostgreSQL's own statement_timeout. A function that does so is ended a moment
later, with its connection.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from tamias.database.connect import Cursor, Session
from tamias.model.errors import DatabaseError

GRACE_SECONDS = 1.0
"""The time that statement_timeout has first: it keeps the connection."""
_AGAIN_SECONDS = 0.5


class TimeLimitExceeded(Exception):
    """The connection was ended."""


@contextmanager
def time_limit(session: Session, cursor: Cursor, seconds: float) -> Iterator[None]:
    """End the cursor's connection and raise `TimeLimitExceeded` if the block takes longer."""
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
        raise TimeLimitExceeded


def _end(session: Session, pid: int, done: threading.Event) -> bool:
    """End the backend, with retries; return false when it was done before."""
    while not done.is_set():
        with suppress(psycopg.Error, DatabaseError):
            session.end_backend(pid)
            return True
        time.sleep(_AGAIN_SECONDS)
    return False

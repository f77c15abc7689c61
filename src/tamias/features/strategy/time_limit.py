"""A time limit for code of users, enforced from outside the server process that runs it.

PL/pgSQL can catch the error of PostgreSQL's own statement_timeout, and a function of the server's own that
works on a long text looks neither for that nor for the order to end. So whoever waits leaves the connection.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tamias.database.connect import Cursor, Session

GRACE_SECONDS = 1.0
"""The time that statement_timeout has first: it keeps the connection."""


class TimeLimitExceeded(Exception):
    """The connection was left."""

    def __init__(self, *, goes_on: bool) -> None:
        super().__init__()
        self.goes_on = goes_on
        """Whether the server could not end what runs there."""


@contextmanager
def time_limit(session: Session, cursor: Cursor, seconds: float) -> Iterator[None]:
    """Leave the cursor's connection and raise `TimeLimitExceeded` if the block takes longer."""
    done = threading.Event()
    # Not what the connection says of itself: a pooler makes that up.
    row = cursor.execute("SELECT pg_catalog.pg_backend_pid()").fetchone()
    pid = row[0] if row else 0
    exceeded: list[TimeLimitExceeded] = []

    def watch() -> None:
        if not done.wait(seconds + GRACE_SECONDS):
            exceeded.append(TimeLimitExceeded(goes_on=not session.end_backend(pid)))
            session.leave(cursor.connection)

    watcher = threading.Thread(target=watch, name="strategy time limit", daemon=True)
    watcher.start()
    try:
        yield
    except psycopg.Error:
        done.set()
        watcher.join()
        if not exceeded:
            raise
    finally:
        done.set()
        watcher.join()
    if exceeded:
        raise exceeded[0]

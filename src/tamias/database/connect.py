"""Connections: opened, lost and opened again. Work is given as a function and runs as one transaction."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg

from tamias.database.embedded import Embedded
from tamias.database.migrate import migrate
from tamias.model.errors import DatabaseError, DatabaseUnavailable, DiskFull

Cursor = psycopg.Cursor[tuple[Any, ...]]
T = TypeVar("T")

_OPTIONS = "-c search_path=tamias,public -c jit=off -c client_min_messages=warning"
_CLOCK_SECONDS = 60.0
_LOST = (psycopg.OperationalError, psycopg.InterfaceError, pg.DeadlockDetected, pg.SerializationFailure)


class Database:
    """One PostgreSQL database, embedded under a data directory or named by URL."""

    def __init__(
        self,
        data: Path,
        url: str | None = None,
        *,
        create: bool = True,
        buckets: int = 1,
        patience: float = 60.0,
    ) -> None:
        self.embedded = None if url else Embedded(data, create=create)
        self._url = url
        self._patience = patience
        try:
            with self._connection() as connection:
                migrate(connection, create=create, buckets=buckets)
        except BaseException:
            self.close()
            raise

    def session(self) -> "Session":
        """A connection of its own, for one thread."""
        return Session(self._connection, self._patience)

    def close(self) -> None:
        """Closed when the sessions are; the embedded server ends with its last user."""
        if self.embedded is not None:
            self.embedded.close()

    def _connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        address = self.embedded.address() if self.embedded else self._url or ""
        try:
            return psycopg.connect(
                address, autocommit=True, options=_OPTIONS, application_name="tamias", connect_timeout=10
            )
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(f"cannot connect to the database: {_sentence(error)}") from error
        except psycopg.Error as error:
            raise DatabaseError(f"--db is not an address of a database: {_sentence(error)}") from error


class Session:
    """One connection that mends itself, and the database's clock. Not for two threads at once."""

    def __init__(self, connect: Callable[[], psycopg.Connection[tuple[Any, ...]]], patience: float) -> None:
        self._connect = connect
        self._patience = patience
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._offset = 0.0
        self._read_at = float("-inf")

    def now(self) -> int:
        """The database's time in milliseconds: read once a minute, carried on by the monotonic clock."""
        if time.monotonic() - self._read_at > _CLOCK_SECONDS:
            self.transact(self._read_clock)
        return int(self._offset + time.monotonic() * 1000)

    def transact(self, work: Callable[[Cursor], T]) -> T:
        """Runs the work in one transaction, again from its start if the server is lost or a deadlock is met.

        Raises `DatabaseUnavailable` when the server stays away, `DiskFull` when it has no room.
        """
        deadline = time.monotonic() + self._patience
        pause = 0.05
        while True:
            try:
                return self._once(work)
            except pg.DiskFull as error:
                raise DiskFull(f"the database has no room left: {_sentence(error)}") from error
            except (*_LOST, DatabaseUnavailable) as error:
                self.close()
                if time.monotonic() > deadline:
                    raise DatabaseUnavailable(f"the database stays away: {_sentence(error)}") from error
            time.sleep(pause)
            pause = min(1.0, pause * 2)

    def close(self) -> None:
        """Closes the connection; the next use opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _once(self, work: Callable[[Cursor], T]) -> T:
        if self._connection is None:
            self._connection = self._connect()
        with self._connection.transaction(), self._connection.cursor(binary=True) as cursor:
            return work(cursor)

    def _read_clock(self, cursor: Cursor) -> None:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8 * 1000")
        row = cursor.fetchone()
        assert row is not None
        self._read_at = time.monotonic()
        self._offset = row[0] - self._read_at * 1000


def _sentence(error: Exception) -> str:
    """The first line that says something, without the client library's preamble."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].removeprefix("FATAL:").strip() if lines else type(error).__name__

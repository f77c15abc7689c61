"""Connections: opened, lost and opened again. Work is given as a function and runs as one transaction."""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict

import tamias.database.columns  # noqa: F401 (a connection writes only the types that were known when it was made)
from tamias.database.citus import coordinator_elsewhere, is_spread, place_new_tables
from tamias.database.disk import make_data_folder, tells_of_no_room
from tamias.database.embedded_server import Embedded
from tamias.database.migrate import migrate, migrations, refuse_other_encodings, refuse_unfinished, rights
from tamias.database.nodes import (
    ClusterNodes,
    Outage,
    WatchedConnection,
    answers,
    place_words,
    read_url,
    refuse_shared,
    refuses_options,
    set_up,
)
from tamias.database.roles import Role, ready_roles
from tamias.database.sql import SqlStatement
from tamias.model.errors import DatabaseError, DatabaseUnavailable, DiskFull, TamiasError

Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]
Row = tuple[Any, ...]
Statement = SqlStatement | bytes
Parameters = dict[str, Any] | None
T = TypeVar("T")

# JIT is off because compiling our short statements takes longer than running them.
_SEARCH_PATH = "tamias,public"
_OPTIONS = f"-c search_path={_SEARCH_PATH} -c jit=off -c client_min_messages=warning"
_USUAL: dict[str, Any] = {"connect_timeout": 10, "application_name": "tamias"}
_TIME_LIMIT = "SELECT pg_catalog.set_config('statement_timeout', %s, true)"
_CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8 * 1000"
_ALIVE = b"SELECT pg_try_advisory_lock_shared(hashtextextended('tamias worker ' || %s::int8, 0))"
_READY = b"SELECT schema_version, rights FROM meta WHERE buckets > 0"
_CLOCK_SECONDS = 60.0
_EMBEDDED_PATIENCE = 60.0
_END_MS = 1000
_CLOCK_TRIES = 3
_QUICK_MS = 2.0
# The second is how the server ends the transaction of a process that was frozen in it.
_LOST = (psycopg.OperationalError, pg.IdleInTransactionSessionTimeout)


class Database:
    """A PostgreSQL database, embedded under a data directory or named by URL."""

    def __init__(
        self,
        data: Path,
        url: str | None = None,
        *,
        create: bool = True,
        buckets: int = 1,
        patience: float | None = None,
        upto: int | None = None,
        role: Role | None = None,
        unfinished: bool = False,
    ) -> None:
        """The schema is brought up to date, or only `upto` a version, for rows that were written then.

        Sessions wait for a server that is away as long as `patience` says. Without, they wait for a server
        named by URL as long as it takes, once it has answered, and for the embedded one, which is started
        again, for a minute.

        An `unfinished` copy of other data is refused, unless it is to be finished.

        Sessions act as the `role`; where it cannot be had, as the user: `tamias doctor` tells of that.
        """
        self._data = data
        self._named = read_url(url)
        self._prepares = self._named.pop("prepare", "on") == "on"
        self._asks_nodes = self._named.pop("nodes", "on") == "on"
        self._pooled = False
        self._coordinator: dict[str, Any] = {}
        if url and data.is_dir():
            make_data_folder(data)
        self.embedded = None if url else Embedded(data, create=create)
        self._patience = patience if patience is not None else math.inf if url else _EMBEDDED_PATIENCE
        self.outage = Outage()
        """Whether the server is away; `give_up` ends all waiting for it."""
        self._role: Role | None = None
        self._checked: list[Connection] = []
        """The connection by which the schema was checked, until a session takes it."""

        def make(cursor: Cursor) -> list[Role]:
            if url and not unfinished:
                refuse_unfinished(cursor.connection)
            if migrate(cursor.connection, create=create, buckets=buckets, upto=upto):
                place_new_tables(cursor)
            return ready_roles(cursor).lacking if upto is None else list(Role)

        try:
            if upto is None and self._is_ready_for(role):
                return
            with closing(
                Session(self._connection, 0.0 if url and patience is None else self._patience)
            ) as session:
                self._check(session, role, make)
        except BaseException:
            self.close()
            raise

    def _check(self, session: "Session", role: Role | None, make: Callable[[Cursor], list[Role]]) -> None:
        """Bring the schema up to date, and find out what the server offers."""
        if self.embedded is None:
            session.transact(refuse_other_encodings)
            self._notice_pooler(session)
            self._coordinator = session.transact(coordinator_elsewhere)
        lacking = self._by_the_coordinator(session, make)
        self._asks_nodes = self._asks_nodes and session.transact(is_spread)
        self._role = None if role in lacking else role
        if self.embedded is not None and self._role is None:
            self._checked.append(session.give_away())

    def session(self) -> "Session":
        """A connection of its own, for one thread; on a cluster, one to each node whose buckets it asks."""
        session = Session(
            self._connection,
            self._patience,
            self.outage,
            prepares=self._prepares,
            connect_apart=partial(self._connection, self._coordinator),
            data=self._data,
        )
        if self._checked:
            session.take(self._checked.pop())
        if self._asks_nodes:
            session.nodes = ClusterNodes(session, self._connection)
        return session

    def _is_ready_for(self, role: Role | None) -> bool:
        """Return whether the role of an embedded server finds the schema and rights of this release."""
        if self.embedded is None or role is None:
            return False
        self._role = role
        with suppress(DatabaseError), closing(Session(self._connection, 0.0)) as session:
            if _is_current(session):
                self._checked.append(session.give_away())
                return True
        self._role = None
        return False

    def _by_the_coordinator(self, session: "Session", make: Callable[[Cursor], T]) -> T:
        """Change the schema and rights on the coordinator, the only node that may."""
        if not self._coordinator or _is_current(session):
            return session.transact(make)
        with closing(Session(partial(self._connection, self._coordinator), 0.0)) as there:
            return there.transact(make)

    def close(self) -> None:
        """Closed when the sessions are; the embedded server ends with its last user."""
        for connection in self._checked:
            connection.close()
        if self.embedded is not None:
            self.embedded.close()

    def _notice_pooler(self, session: "Session") -> None:
        """Detect a pooler that ignores our options, and refuse one that shares sessions."""
        found = session.fetch_one(b"SELECT current_setting('search_path')")
        if found != (_SEARCH_PATH,) and not self._pooled:
            self._pooled = True
            session.close()
        if self._pooled:
            refuse_shared(self._bare_connection, place_words(self._named))

    def _connection(self, instead: Mapping[str, Any] = MappingProxyType({})) -> Connection:
        place = conninfo_to_dict(self.embedded.address()) if self.embedded else {**self._named, **instead}
        if not self.embedded and self.outage.is_on and not answers(place):
            # One that is frozen takes connections, and would be waited for.
            raise DatabaseUnavailable(f"{place_words(place)} does not answer")
        options = f"{_OPTIONS} {place.get('options') or ''}"
        if self._role is not None:
            # As an option it costs no statement, and RESET ROLE comes back to it.
            options += f" -c role={self._role}"
        try:
            if self._pooled:
                return self._pooled_connection(options, instead)
            kind = psycopg.Connection if self.embedded else WatchedConnection
            return kind.connect(autocommit=True, **{**_USUAL, **place, "options": options})
        except psycopg.OperationalError as error:
            if refuses_options(error) and not self._pooled:
                self._pooled = True
                return self._connection(instead)
            full = tells_of_no_room(str(error))
            what = "no disk space left for" if full else "cannot connect to"
            words = f"{what} {place_words(place)}: {_sentence(error)}"
            raise (DiskFull if full else DatabaseUnavailable)(words) from error
        except psycopg.Error as error:
            raise DatabaseError(f"cannot use {place_words(place)}: {_sentence(error)}") from error

    def _pooled_connection(self, options: str, instead: Mapping[str, Any]) -> Connection:
        connection = self._bare_connection(instead)
        try:
            set_up(connection, options)
        except BaseException:
            connection.close()
            raise
        return connection

    def _bare_connection(self, instead: Mapping[str, Any] = MappingProxyType({})) -> Connection:
        """Connect without our own settings."""
        place = {name: value for name, value in self._named.items() if name != "options"}
        return WatchedConnection.connect(autocommit=True, **{**_USUAL, **place, **instead})


class Session:
    """A connection that reconnects, and the database's clock. Not for two threads at once."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        patience: float,
        outage: Outage | None = None,
        *,
        prepares: bool = True,
        connect_apart: Callable[[], Connection] | None = None,
        data: Path = Path(),
    ) -> None:
        """`prepares` whether frequent statements are prepared; `connect_apart` is for code of others."""
        self.data = data
        """The folder of the archive, for what rows name in files."""
        self._connect = connect
        self._connect_apart = connect_apart or connect
        self._patience = patience
        self._outage = outage or Outage()
        self._prepares = prepares
        self._connection: Connection | None = None
        self._apart: Session | None = None
        self.nodes: ClusterNodes | None = None
        """Those of a cluster, which are asked for what is in a bucket."""
        self._worker: int | None = None
        self.opened = 0
        """How often it has connected."""
        self._offset = 0.0
        self._unsure = 0.0
        self._read_at = float("-inf")
        self._latest = 0

    def now(self) -> int:
        """The database's time in milliseconds: read once a minute, carried on by the monotonic clock.

        It never goes back: a database's clock that was set back is waited for.
        """
        if time.monotonic() - self._read_at > _CLOCK_SECONDS:
            self.transact(self._read_clock)
        self._latest = max(self._latest, int(self._offset + time.monotonic() * 1000))
        return self._latest

    def now_at_latest(self) -> int:
        """The latest that the database's time can be: what is to wait from now on waits from then.

        `now` is behind by the way of the answer that brought the time, which may have been long.
        """
        return self.now() + ceil(self._unsure)

    def time(self) -> int:
        """The same, never asking the database: for other threads than the session's own."""
        return max(self._latest, int(self._offset + time.monotonic() * 1000))

    def rows(
        self,
        statement: bytes,
        parameters: dict[str, Any] | None = None,
        at_once: int = 5000,
        seconds: float = 0.0,
        first: Callable[[Cursor], None] | None = None,
    ) -> Iterator[tuple[Any, ...]]:
        """A long answer, row by row, without holding it all. Not repeated when the server is lost.

        What has to be done `first`, in the same transaction, is.

        Raises `TimeoutError` when the server works longer than `seconds` for the next rows, if any are given.
        """
        connection = self._open()
        try:
            with connection.transaction(), connection.cursor("rows", binary=True) as cursor:
                if seconds:
                    connection.execute(_TIME_LIMIT, [str(max(1, int(seconds * 1000)))])
                if first is not None:
                    with connection.cursor() as own:
                        first(own)
                cursor.itersize = at_once
                yield from cursor.execute(statement, parameters)
        except psycopg.Error as error:
            self.close()
            if seconds and isinstance(error, pg.QueryCanceled):
                raise TimeoutError(f"the database took longer than {seconds:.1f} s") from error
            raise DatabaseUnavailable(f"the database was lost while reading: {_sentence(error)}") from error

    def fetch_all(self, statement: Statement, parameters: Parameters = None) -> list[Row]:
        """The rows of one statement, in a transaction of its own; as `transact` does it."""
        return self._alone(lambda cursor: cursor.execute(_text(statement), parameters).fetchall())

    def fetch_one(
        self, statement: Statement, parameters: Parameters = None, bucket: int | None = None
    ) -> Row | None:
        """The first of them, if there is one; of a `bucket` as `transact` does it."""
        return self._alone(lambda cursor: cursor.execute(_text(statement), parameters).fetchone(), bucket)

    def execute(self, statement: Statement, parameters: Parameters = None, bucket: int | None = None) -> int:
        """Run one statement and return how many rows it changed; `bucket` is as in `transact`."""
        return self._alone(lambda cursor: cursor.execute(_text(statement), parameters).rowcount, bucket)

    def fetch_many(self, *queries: tuple[Statement, Parameters]) -> list[list[Row]]:
        """The rows of several statements that only read, in one round trip."""
        return self._persist(partial(self._pipelined, queries))

    def transact(self, work: Callable[[Cursor], T], bucket: int | None = None) -> T:
        """Run the work in one transaction, again from its start if the server is lost or a deadlock is met.

        Work in one `bucket`, with nothing but tables that are divided by buckets or that every node has, is
        done on the bucket's own node of a cluster: `NodeAway` when that is away.

        The loss may have come just after the commit, so the work must bear being done twice. Raises
        `DatabaseUnavailable` when the server stays away, `DiskFull` when it has no room, and
        `DatabaseError` when it refuses the work.
        """
        if bucket is not None and self.nodes is not None:
            return self.nodes.transact(bucket, work)
        return self._persist(partial(self._once, work))

    def away_words(self) -> str | None:
        """Return that the server, or which nodes of a cluster, are away, if they are."""
        if self.nodes is None or not self.nodes.away:
            return self._outage.words
        named = ", ".join(":".join(node) for node in sorted(self.nodes.away))
        return f"node {named} of the database is away; the others go on"

    def beside(self, connect: Callable[[], Connection], patience: float) -> "Session":
        """Return another session with the same settings, by other connections."""
        return Session(connect, patience, prepares=self._prepares)

    def apart(self) -> "Session":
        """A second connection, for code of others: what it leaves there, ours never meets.

        On a Citus cluster it is one to the coordinator, where that code is, whichever node we are at.
        Nothing is prepared there, for a prepared statement could be replaced by one of the same name.
        """
        if self._apart is None:
            self._apart = Session(self._connect_apart, self._patience, self._outage, prepares=False)
        return self._apart

    def end_backend(self, pid: int) -> bool:
        """End a connection apart of the same login from outside; return whether it has ended.

        What runs there cannot catch it, but some functions do not look for it until they are done.
        """
        with suppress(psycopg.Error, DatabaseError), closing(self._connect_apart()) as connection:
            connection.execute("SET ROLE NONE")
            ended = connection.execute("SELECT pg_catalog.pg_terminate_backend(%s, %s)", [pid, _END_MS])
            return ended.fetchone() == (True,)
        return False

    def close(self) -> None:
        """Close the connections; the next use opens others."""
        if self._apart is not None:
            self._apart.close()
        if self.nodes is not None:
            self.nodes.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def show_alive(self, worker: int) -> None:
        """Hold a lock with the number of a worker, from now on and whenever it connects again."""
        self._worker = worker
        self._persist(lambda: self._open().execute(_ALIVE, [worker]))

    def give_away(self) -> Connection:
        """The connection, for another session; the next use opens another."""
        connection = self._open()
        self._connection = None
        return connection

    def take(self, connection: Connection) -> None:
        """Use a connection that another session gave away."""
        self._connection = connection
        self.opened += 1
        if self._worker is not None:
            connection.execute(_ALIVE, [self._worker])
        if not self._prepares:
            connection.prepare_threshold = None

    def _open(self) -> Connection:
        if self._connection is None:
            self.take(self._connect())
        assert self._connection is not None
        return self._connection

    def _persist(self, attempt: Callable[[], T]) -> T:
        begun, tries = time.monotonic(), 0
        lost: TamiasError
        while True:
            if self._outage.is_on:
                self._outage.refuse(self._patience)
            try:
                done = attempt()
            except pg.DiskFull as error:
                raise DiskFull(f"no disk space left for the database: {_sentence(error)}") from error
            except (DatabaseUnavailable, DiskFull) as error:
                lost = error
                if isinstance(error, DiskFull) and not self.opened:
                    raise  # there is no room to begin; what is under way waits for some
            except psycopg.Error as error:
                # Whatever the error says, the connection may be lost.
                if not isinstance(error, _LOST) and not (self._connection and self._connection.broken):
                    raise DatabaseError(f"the database refused: {_sentence(error)}") from error
                self.close()
                lost = DatabaseUnavailable(f"the database stays away: {_sentence(error)}")
                lost.__cause__ = error
            else:
                if self._outage.is_on:
                    self._outage.end()
                return done
            self._outage.wait(lost, begun, self._patience, tries)
            tries += 1

    def _once(self, work: Callable[[Cursor], T]) -> T:
        connection = self._open()
        with connection.transaction(), connection.cursor(binary=True) as cursor:
            return work(cursor)

    def _alone(self, work: Callable[[Cursor], T], bucket: int | None = None) -> T:
        """Run one statement as a transaction by itself: one round trip, without BEGIN and COMMIT."""
        if bucket is not None and self.nodes is not None:
            return self.nodes.transact(bucket, work)

        def once() -> T:
            with self._open().cursor(binary=True) as cursor:
                return work(cursor)

        return self._persist(once)

    def _pipelined(self, queries: Sequence[tuple[Statement, Parameters]]) -> list[list[Row]]:
        connection = self._open()
        with ExitStack() as open_until_read:
            with connection.pipeline():
                cursors = [
                    open_until_read.enter_context(connection.cursor(binary=True)).execute(
                        _text(statement), parameters
                    )
                    for statement, parameters in queries
                ]
            return [cursor.fetchall() for cursor in cursors]

    def _read_clock(self, cursor: Cursor) -> None:
        """Read the database's clock a few times; the quickest answer is the most exact."""
        self._unsure = float("inf")
        for _ in range(_CLOCK_TRIES):
            begun_at = time.monotonic()
            cursor.execute(_CLOCK)
            row = cursor.fetchone()
            assert row is not None
            self._read_at = time.monotonic()
            unsure = (self._read_at - begun_at) * 1000
            if unsure < self._unsure:
                self._unsure, self._offset = unsure, row[0] - self._read_at * 1000
            if unsure < _QUICK_MS:
                break


def read_buckets(cursor: Cursor) -> int:
    """Return the number of buckets of the frontier."""
    ((buckets,),) = cursor.execute("SELECT buckets FROM meta").fetchall()
    return int(buckets)


def _is_current(session: Session) -> bool:
    """Return whether schema and rights are there, and are those of this release."""
    with suppress(DatabaseError):
        return session.fetch_one(_READY) == (migrations()[-1].number, rights()[0])
    return False


def _text(statement: Statement) -> bytes:
    return statement if isinstance(statement, bytes) else statement.text


def _sentence(error: psycopg.Error) -> str:
    """Return what the server said, or the client library's words without its preamble."""
    lines = [error.diag.message_primary or "", *str(error).splitlines(), type(error).__name__]
    said = [line.strip() for line in lines if line.strip()]
    failures = [line.rpartition("failed: ")[2] for line in said if "failed: " in line]
    return re.sub(r"^[A-Z]+: *", "", (failures or said)[0])

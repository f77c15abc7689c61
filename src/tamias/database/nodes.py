"""The servers of a database: its URL, what happens while it is away, and the nodes of a Citus cluster.

The sessions of a database share one `Outage`. One of them at a time tries whether the server is back; the
others wait, and whoever has a limit learns at once when that is over. A server that is dead refuses
connections; one that is frozen, or behind a network that is cut, accepts bytes and never says anything. So a
connection that hears nothing for a while looks whether the server answers others.

Citus plans a statement twice and commits in two phases. A worker that knows where a bucket is needs neither:
it connects to the node, holds the lock by which Citus moves no shard under a writer (`hold_shard`), and runs
the same statements with the names of the shard's tables. A node that is away is left alone until it answers.

A pooler such as PgBouncer takes no options of a session when it begins. It must give each of our connections
one of the server's for as long as it lasts: the schema and the role of a process are settings of the
session, and what a strategy leaves there must not be met by others.
"""

import logging
import math
import os
import re
import secrets
import select
import shlex
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import errors as pg
from psycopg import pq
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tamias.database.citus import ShardPlace, check_node, read_shards
from tamias.model.errors import DatabaseError, DatabaseUnavailable, NodeAway, TamiasError

if TYPE_CHECKING:
    from tamias.database.connect import Cursor, Session

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]
_TRIES = 5
_MARK = "tamias.session"
_SET = "SELECT pg_catalog.set_config(%s, %s, false)"
SHARED = (
    "the pooler at {place} gives a connection of the server to another client after each transaction; Tamias "
    "needs it for a whole session: set pool_mode = session for this database (PgBouncer: in [databases] or "
    "[pgbouncer]), or name the server itself with --db"
)


def refuses_options(error: psycopg.Error) -> bool:
    """Return whether somebody between us and the server does not take a session's options."""
    return "unsupported startup parameter" in str(error)


def set_up(connection: Connection, options: str) -> None:
    """Make the settings by statements that could not be options."""
    for name, value in _settings(options):
        connection.execute(_SET, [name, value])


def refuse_shared(connect: Callable[[], Connection], place: str) -> None:
    """Raise `DatabaseError` if what is set on one connection is met on another, or lost."""
    with closing(connect()) as first, closing(connect()) as second:
        try:
            shared = any(_is_shared(first, second) for _ in range(_TRIES))
        except (pg.FeatureNotSupported, psycopg.OperationalError, pg.ProtocolViolation) as error:
            raise DatabaseError(f"{SHARED.format(place=place)} ({error})") from error
    if shared:
        raise DatabaseError(SHARED.format(place=place))


def _is_shared(first: Connection, second: Connection) -> bool:
    mark = secrets.token_hex(8)
    first.execute(_SET, [_MARK, mark])
    seen = [_read(each) for each in (second, first)]
    second.execute(_SET, [_MARK, ""])
    return seen not in (["", mark], [None, mark])


def _read(connection: Connection) -> str | None:
    row = connection.execute("SELECT pg_catalog.current_setting(%s, true)", [_MARK]).fetchone()
    return row[0] if row else None


def _settings(options: str) -> Iterator[tuple[str, str]]:
    """Read `-c name=value`, `-cname=value` and `--name=value`.

    >>> list(_settings("-c search_path=tamias,public --jit=off"))
    [('search_path', 'tamias,public'), ('jit', 'off')]
    """
    words = iter(shlex.split(options))
    for word in words:
        text = next(words, "") if word == "-c" else word.removeprefix("--").removeprefix("-c")
        name, equals, value = text.partition("=")
        if not equals:
            raise DatabaseError(f"--db has the option {word}, which cannot pass a pooler; leave it out")
        yield name.replace("-", "_"), value


# Words of the URL that are ours, not the client library's.
_OURS = frozenset({"prepare", "nodes"})
# One @ at most and no / before it: else a part of the password would be read as a host's name, and shown.
_URL = re.compile(r"postgres(ql)?://([^@/]*@)?[^@]*")


def read_url(url: str | None) -> dict[str, Any]:
    """Return the parameters of a connection. Raise `DatabaseError`, which never contains the password."""
    if not url:
        return {"nodes": "off"}
    try:
        if _URL.fullmatch(url):
            parts = urlsplit(url)
            options = parse_qsl(parts.query, keep_blank_values=True)
            ours = {name: value for name, value in options if name in _OURS and value in {"on", "off"}}
            if ours:
                others = urlencode([each for each in options if each[0] not in ours], quote_via=quote)
                url = urlunsplit(parts._replace(query=others))
            return {**conninfo_to_dict(url), **ours}
    except (psycopg.ProgrammingError, ValueError):
        pass  # its words may hold the password
    raise DatabaseError(
        "--db is not the URL of a PostgreSQL database; write postgresql://user:password@host:port/name, "
        "with @ and / in a password as %40 and %2F"
    )


def place_words(place: dict[str, Any]) -> str:
    """Name a database to users."""
    host, port = place.get("host") or "localhost", place.get("port") or 5432
    return f"the database {place.get('dbname') or ''} at {host}:{port}"


SILENCE_SECONDS = 1.0
"""A connection that hears nothing for so long looks whether the server is there."""
PROBE_SECONDS = 5.0
"""A server that says no byte within it does not answer; one that is only busy does."""
TRY_SECONDS = 0.5
"""Sessions that wait no longer let one of them try, so long after the last try."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Outage:
    """The knowledge that a server is away, since when and why. For all threads."""

    def __init__(self) -> None:
        self.is_on = False
        """Whether the server is away, as far as sessions know."""
        self._since = 0.0
        self._why = ""
        self._next_try = 0.0
        self._is_logged = False
        self._latest = math.inf
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    @property
    def words(self) -> str | None:
        """Return why the server is away, and for how long, if it is."""
        return f"{self._why} (away for {time.monotonic() - self._since:.0f} s)" if self.is_on else None

    def give_up(self, seconds: float) -> None:
        """Let nobody wait longer than this from now on, as a process does that is to end."""
        self._latest = time.monotonic() + seconds
        self._stopping.set()

    def refuse(self, patience: float) -> None:
        """Raise `DatabaseUnavailable` if the server has been away for longer, unless it is time for a try."""
        with self._lock:
            now = time.monotonic()
            if now <= min(self._since + patience, self._latest):
                return
            if now < self._next_try:
                raise DatabaseUnavailable(self.words)
            self._next_try = now + 4 * PROBE_SECONDS  # or when this one has failed

    def wait(self, error: TamiasError, begun: float, patience: float, tries: int) -> None:
        """Wait before the next try of who began then; raise the error when the patience is over."""
        with self._lock:
            now = time.monotonic()
            if not self.is_on:
                self.is_on, self._since, self._is_logged = True, now, False
            self._why, self._next_try = str(error), now + TRY_SECONDS
            if now >= min(begun + patience, self._since + patience, self._latest):
                raise error
            if not self._is_logged and now - self._since > _LONGEST_PAUSE:
                self._is_logged = True
                _log.warning("%s; waiting until it is back", error)
        if self._stopping.wait(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(tries, 10))):
            time.sleep(_FIRST_PAUSE)

    def end(self) -> None:
        """Note that the server has answered."""
        with self._lock:
            if self._is_logged and self.is_on:
                _log.warning("the database is back after %.0f s", time.monotonic() - self._since)
            self.is_on = False


class WatchedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that notices when the other side has stopped without a word."""

    is_there: Callable[[], bool] | None = None

    def wait(self, gen: PQGen[T], *words: Any, **options: Any) -> T:
        """Wait as long as the server answers others."""
        return super().wait(self._watch(gen, self.is_there or self._answers), *words, **options)

    def _watch(self, waiting: PQGen[T], is_there: Callable[[], bool]) -> PQGen[T]:
        steps = cast("Generator[Any, Any, T]", waiting)
        since = time.monotonic()
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if ready:
                    since = time.monotonic()
                elif time.monotonic() - since > SILENCE_SECONDS:
                    if not is_there():
                        self.pgconn.finish()  # or a rollback would be sent, and waited for
                        raise psycopg.OperationalError("the server does not answer")
                    since = time.monotonic()
                wanted = steps.send(ready)
        except StopIteration as end:
            return cast("T", end.value)

    def _answers(self) -> bool:
        info = self.info
        return answers({"host": info.host, "hostaddr": info.hostaddr, "port": info.port})


def answers(place: Mapping[str, Any], seconds: float = PROBE_SECONDS) -> bool:
    """Return whether a server there says a byte within so many seconds."""
    deadline = time.monotonic() + seconds
    probe = pq.PGconn.connect_start(make_conninfo(**place).encode())
    try:
        while (state := probe.connect_poll()) in {pq.PollingStatus.READING, pq.PollingStatus.WRITING}:
            reading = state == pq.PollingStatus.READING
            there = [probe.socket]
            left = max(0.0, deadline - time.monotonic())
            said, sendable, _ = select.select(there if reading else [], [] if reading else there, [], left)
            if reading or not sendable:
                return bool(said)
        return False
    finally:
        probe.finish()


def leave(connection: psycopg.Connection[Any]) -> None:
    """Have whoever waits for a connection wait no longer: it is lost for them."""
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


NodeAddress = tuple[str, str]
"""Host and port."""

_log = logging.getLogger(__name__)
# A node says within it that it is there, or it counts as away.
_PROBE_SECONDS = 0.5
_MAP_SECONDS = 5.0
_PATIENCE = 0.3
_MOVES = 5
_PREPARED = 1000
_HOLD = "SELECT tamias.hold_shard(%s)"


class ShardMoved(Exception):
    """The shard is on another node by now."""


class ShardTables:
    """Statements with the tables of one shard."""

    def __init__(self, place: ShardPlace) -> None:
        self._names = {name.encode(): f"{name}_{number}".encode() for name, number in place.tables.items()}
        names = b"|".join(self._names)
        self._reference = re.compile(
            rb"\b(FROM|JOIN|UPDATE|INTO|USING)(\s+)(" + names + rb")\b(?!\s*\.)(\s+AS\s+\w+)?"
        )
        self._known: dict[bytes, bytes] = {}

    def rename(self, text: bytes) -> bytes:
        """The same statement; the tables keep their names as aliases.

        >>> place = ShardPlace(bucket=0, shard=7, host="", port="", tables={"url": 9, "host": 7})
        >>> ShardTables(place).rename(b"UPDATE url SET due = 1 FROM host AS h WHERE h.qid = url.qid")
        b'UPDATE url_9 AS url SET due = 1 FROM host_7 AS h WHERE h.qid = url.qid'
        """
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._reference.sub(self._named, text)
        return found

    def _named(self, found: re.Match[bytes]) -> bytes:
        verb, space, name, alias = found.groups()
        return verb + space + self._names[name] + (alias or b" AS " + name)


class ShardCursor(psycopg.Cursor[tuple[Any, ...]]):
    """A cursor whose statements mean the tables of a shard."""

    tables: ShardTables | None = None

    def execute(self, query: Any, params: Any = None, **options: Any) -> "ShardCursor":
        """Execute a query on the tables of the shard."""
        if self.tables is not None:
            query = self.tables.rename(query.encode() if isinstance(query, str) else query)
        super().execute(query, params, **options)
        return self


class ClusterNodes:
    """Runs the work of buckets on their nodes, for the thread of one session."""

    def __init__(self, whole: "Session", connect: Callable[[Mapping[str, Any]], "Connection"]) -> None:
        """`whole` is the session at the address that was named; it knows where shards are."""
        self._whole = whole
        self._connect = connect
        self._places: dict[int, tuple[ShardPlace, ShardTables]] = {}
        self._read_at = float("-inf")
        self._sessions: dict[NodeAddress, Session] = {}
        self._away: set[NodeAddress] = set()
        self._unreachable: set[NodeAddress] = set()
        """ClusterNodes that only other nodes can reach: their buckets are asked by way of these."""
        self._closed = threading.Event()

    def transact(self, bucket: int, work: Callable[["Cursor"], T]) -> T:
        """Run a transaction in the bucket's own tables. Raises `NodeAway` at once if its node is away."""
        for _ in range(_MOVES):
            place, tables = self._place(bucket)
            node = (place.host, place.port)
            if node in self._unreachable:
                return self._whole.transact(work)
            if node in self._away:
                raise NodeAway(f"the node {':'.join(node)} of the database is away")
            try:
                return self._session(node).transact(lambda cursor: _held(cursor, place, tables, work))  # noqa: B023
            except ShardMoved:
                self._places.clear()
            except DatabaseUnavailable as error:
                self._lose(node, error)
        raise DatabaseUnavailable(f"the shard of bucket {bucket} moves on and on")

    @property
    def away(self) -> frozenset[NodeAddress]:
        """The nodes that are away at this moment."""
        return frozenset(self._away)

    def close(self) -> None:
        """Close the connections; the next use opens others."""
        self._closed.set()
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def _place(self, bucket: int) -> tuple[ShardPlace, ShardTables]:
        # Where a node is away, its shards may be given to another one.
        if self._away and time.monotonic() - self._read_at > _MAP_SECONDS:
            self._places.clear()
        if bucket not in self._places:
            self._read_at = time.monotonic()
            shards: dict[int, ShardTables] = {}
            for place in self._whole.transact(read_shards):
                tables = shards.setdefault(place.shard, ShardTables(place))
                self._places[place.bucket] = (place, tables)
        try:
            return self._places[bucket]
        except KeyError:
            raise DatabaseError(
                f"no shard of the cluster has bucket {bucket}; 'tamias cluster init' distributes the tables"
            ) from None

    def _session(self, node: NodeAddress) -> "Session":
        if node not in self._sessions:
            self._closed.clear()
            self._sessions[node] = self._whole.beside(lambda: self._connection(node), _PATIENCE)
        return self._sessions[node]

    def _connection(self, node: NodeAddress) -> "Connection":
        if not _is_there(node):
            raise DatabaseUnavailable(f"the node {':'.join(node)} of the database does not answer")
        connection = self._connect({"host": node[0], "port": node[1]})
        # The same statements for each shard, each seldom: planned once, not five times before and after.
        connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.prepared_max, connection.prepare_threshold = _PREPARED, 0
        connection.cursor_factory = ShardCursor
        if isinstance(connection, WatchedConnection):
            connection.is_there = lambda: _is_there(node)
        return connection

    def _lose(self, node: NodeAddress, error: DatabaseUnavailable) -> None:
        """Note that a node is away, or that it is there for others only."""
        session = self._sessions.pop(node)
        session.close()
        if not session.opened and self._whole.transact(lambda cursor: check_node(cursor, *node)):
            _log.warning("%s; its buckets are asked by way of other nodes, which costs more", error)
            self._unreachable.add(node)
            return
        _log.warning("%s; the buckets on other nodes go on", error)
        self._away.add(node)
        threading.Thread(target=self._wait_for, args=[node], daemon=True).start()

    def _wait_for(self, node: NodeAddress) -> None:
        """Wait until the node answers, then let sessions connect to it again."""
        while not self._closed.wait(_PROBE_SECONDS):
            if _is_there(node):
                break
        self._away.discard(node)


def _is_there(node: NodeAddress) -> bool:
    return answers({"host": node[0], "port": node[1]}, _PROBE_SECONDS)


def _held(cursor: "Cursor", place: ShardPlace, tables: ShardTables, work: Callable[["Cursor"], T]) -> T:
    if cursor.execute(_HOLD, [place.shard]).fetchone() != (True,):
        raise ShardMoved
    if isinstance(cursor, ShardCursor):
        cursor.tables = tables
    return work(cursor)

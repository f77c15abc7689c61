"""The nodes of a Citus cluster: each bucket is asked where it is, in its own tables, without Citus's planner.

Citus plans a statement twice and commits in two phases. A worker that knows where a bucket is needs neither:
it connects to the node, holds the lock by which Citus moves no shard under a writer (`hold_shard`), and runs
the same statements with the names of the shard's tables. A node that is away is left alone until it answers.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from tamias.database.citus import ShardPlace, check_node, read_shards
from tamias.database.outage import WatchedConnection, answers
from tamias.model.errors import DatabaseError, DatabaseUnavailable, NodeAway

if TYPE_CHECKING:
    from tamias.database.connect import Connection, Cursor, Session

T = TypeVar("T")
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

"""Captures of old months in Parquet files of the store, instead of rows of the database.

A month is written to a file, read back, compared with its rows by the database, and only then are the rows
removed, in the transaction that names the file: whoever is killed meanwhile leaves the one or the other.
Captures with signals about their use stay rows, since every delivery asks for them.

A reader gets the rows that it needs of the files into a temporary table, and runs its statement on both.
"""

import hashlib
import logging
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, LiteralString, Self
from uuid import UUID

import msgspec
from psycopg import errors as pg
from psycopg import sql

from tamias.archive.file_store import file_store, pieces
from tamias.archive.stored_files import StoredFile, files_of
from tamias.database.connect import Cursor, Session, read_buckets
from tamias.database.disk import write_hashed
from tamias.database.sql import SqlStatement, statements
from tamias.model.capture import new_capture_id
from tamias.model.errors import TamiasError, UsageError
from tamias.model.faults import reached

if TYPE_CHECKING:
    import duckdb

_SQL = statements("tamias.archive", "moved_captures.sql")
_SUMS = statements("tamias.archive", "capture_sums.sql")
MEMORY = "512MB"
_ROWS_AT_ONCE = 5000
_MOVED = -1
"""What was written to a part, in the row of the sums of a file."""
_CSV: LiteralString = " (FORMAT csv, NULL '\\N', FORCE_QUOTE *)"
_READ_CSV = (
    "header = false, auto_detect = false, delim = ',', quote = '\"', escape = '\"', nullstr = '\\N',"
    " allow_quoted_nulls = false, new_line = '\\n', parallel = false, max_line_size = 268435456"
)
_FIRST, _LAST = UUID(int=0), UUID(int=(1 << 128) - 1)
_CAPTURE = re.compile(rb"\b(FROM|JOIN) capture\b(?! AS)")
_CAPTURE_AS = re.compile(rb"\b(FROM|JOIN) capture AS\b")
_TYPES = {
    "smallint": "SMALLINT", "integer": "INTEGER", "bigint": "BIGINT", "real": "FLOAT", "boolean": "BOOLEAN",
    "double precision": "DOUBLE", "uuid": "UUID",
}  # fmt: skip
"""What else there is stands in the file as text."""
_MOVABLE: LiteralString = "FROM {part} AS moved WHERE moved.signals IS NULL"
_DIGEST: LiteralString = (
    "SELECT count(*), coalesce(sum(hashtextextended(moved::text, 1)::numeric), 0) || ' '"
    " || coalesce(sum(hashtextextended(moved::text, 2)::numeric), 0),"
    " min(moved.capture::text), max(moved.capture::text)"
)
_SUM: LiteralString = (
    "SELECT moved.outcome, count(*), coalesce(sum(moved.quads), 0)::int8, coalesce(sum(moved.bytes), 0)::int8"
)
_log = logging.getLogger(__name__)


class MovedCaptures(msgspec.Struct, frozen=True):
    """A file of captures."""

    file: UUID
    part: str
    first: UUID
    last: UUID
    captures: int
    digest: str


class WantedCaptures(msgspec.Struct, frozen=True, kw_only=True):
    """The captures that a statement can be about; empty, all."""

    first: UUID = _FIRST
    last: UUID = _LAST
    ids: Sequence[UUID] | None = None
    queues: Sequence[int] | None = None
    """By the numbers of the queues that they were in."""
    urls: Sequence[str] | None = None
    """As asked for, or where they led."""


EVERYTHING = WantedCaptures()


def read_captures(
    session: Session, statement: SqlStatement, parameters: dict[str, Any],
    wanted: WantedCaptures = EVERYTHING, *, seconds: float = 0.0,
) -> Iterator[tuple[Any, ...]]:  # fmt: skip
    """The rows of a statement that reads `capture`, which also finds what stands in files."""
    moved = _find_moved(session, wanted)
    if not moved:
        yield from session.rows(statement.text, parameters, seconds=seconds)
        return
    with _MonthFiles(session) as files:
        yield from session.rows(
            _widen(statement), parameters, seconds=seconds,
            first=lambda cursor: files.bring(cursor, moved, wanted),
        )  # fmt: skip


def fetch_captures(
    session: Session, statement: SqlStatement, parameters: dict[str, Any], wanted: WantedCaptures = EVERYTHING
) -> list[tuple[Any, ...]]:
    """The same for few rows: all at once, and again if the server is lost meanwhile."""
    moved = _find_moved(session, wanted)
    if not moved:
        return session.fetch_all(statement, parameters)
    with _MonthFiles(session) as files:

        def read(cursor: Cursor) -> list[tuple[Any, ...]]:
            files.bring(cursor, moved, wanted)
            return cursor.execute(_widen(statement), parameters).fetchall()

        return session.transact(read)


def move_captures(session: Session, before: UUID) -> Iterator[MovedCaptures]:
    """Moves captures of months that ended before an id; yields what is in each file. One caller at a time."""
    if session.fetch_one(_SQL["is_cluster"]) == (True,):
        raise UsageError("captures of a Citus cluster are not moved to files: its nodes could not read them")
    with _MonthFiles(session) as files:
        files.remove_unnamed()
        for (part,) in session.fetch_all(_SQL["old_parts"], {"before": before}):
            moved = files.move(part)
            if moved is not None:
                yield moved


def return_captures(session: Session, wanted: WantedCaptures = EVERYTHING) -> int:
    """Makes captures of files rows again, all of each file that has one that is wanted; returns how many."""
    moved = _find_moved(session, wanted)
    if not moved:
        return 0
    with _MonthFiles(session) as files:
        wanted_files = [each for each in moved if files.count(each, wanted)]
        for each in wanted_files:
            files.bring_back(each)
    return sum(each.captures for each in wanted_files)


def damaged_captures(session: Session) -> Iterator[tuple[str, str]]:
    """Files of captures that are not as they were written: names, and what is wrong."""
    digests = session.fetch_all(_SQL["digests"])
    if not digests:
        return
    with _MonthFiles(session) as files:
        for file, name, sha256 in digests:
            problem = files.problem(file, sha256)
            if problem is not None:
                yield name, problem


def moved_sums(
    cursor: Cursor, known: Mapping[tuple[str, int], list[tuple[int, ...]]]
) -> Iterator[tuple[int, ...]]:
    """The sums of captures in files, of those that are known by part and what was written to it."""
    for (name,) in cursor.execute(_SQL["names"].text).fetchall():
        yield from known.get((name, _MOVED), ())


def _widen(statement: SqlStatement) -> bytes:
    """The statement about the rows of the table and those of files."""
    text = _CAPTURE_AS.sub(rb"\1 every_capture AS", statement.text)
    return _CAPTURE.sub(rb"\1 every_capture AS capture", text)


def _find_moved(session: Session, wanted: WantedCaptures) -> list[MovedCaptures]:
    first, last = wanted.first, wanted.last
    if wanted.ids is not None:
        if not wanted.ids:
            return []
        first, last = max(first, min(wanted.ids)), min(last, max(wanted.ids))
    return [MovedCaptures(*row) for row in session.fetch_all(_SQL["moved"], {"first": first, "last": last})]


@contextmanager
def _explain_damage(stored: StoredFile) -> Iterator[None]:
    import duckdb

    try:
        yield
    except (OSError, duckdb.Error) as error:
        raise TamiasError(
            f"the captures in {stored.key} cannot be read: {error}; 'tamias check' says more"
        ) from error


class _MonthFiles:
    """The files of captures, and DuckDB, which reads and writes them."""

    def __init__(self, session: Session) -> None:
        import duckdb

        self._session = session
        self._store = file_store(session, session.data)
        spool = session.data / "spool"
        spool.mkdir(parents=True, mode=0o700, exist_ok=True)
        self._work = Path(mkdtemp(prefix="captures-", dir=spool))
        self._tables = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": str(self._work)})
        self._buckets = session.transact(read_buckets)
        self._types: dict[str, str] = dict(session.fetch_all(_SQL["columns"]))
        self._named = {each.file: each for each in files_of(session, "captures")}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tables.close()
        shutil.rmtree(self._work, ignore_errors=True)

    def move(self, part: str) -> MovedCaptures | None:
        """Moves the captures of a partition; None if it has none, or somebody reads or writes them."""
        file = new_capture_id(self._session.now())
        path = self._work / f"{part}-{file}.parquet"
        if not self._write(part, path):
            return None
        with path.open("rb") as written:
            sha256 = hashlib.file_digest(written, "sha256").hexdigest()
        stored = StoredFile(
            file=file, kind="captures", name=path.name, committed=path.stat().st_size, sealed=True,
            in_store=self._store.in_store,
        )  # fmt: skip
        self._store.add(stored, path)
        reached("captures-written")
        moved = self._session.transact(lambda cursor: self._try_switch(cursor, part, stored, sha256))
        if moved is None:
            self._store.remove(stored)
            _log.warning("captures of %s are in use, and are not moved now", part)
        return moved

    def bring_back(self, moved: MovedCaptures) -> None:
        """Makes rows of what is in a file, and removes it."""
        stored = self.stored(moved)

        def bring(cursor: Cursor) -> None:
            self.copy(cursor, stored, EVERYTHING, "tamias.capture")
            for name in ("note_returned", "forget_file"):
                cursor.execute(_SQL[name].text, {"file": moved.file})
            cursor.execute(_SUMS["forget_sums"].text, {"part": stored.name})

        self._session.transact(bring)
        self._store.remove(stored)

    def bring(self, cursor: Cursor, moved: Sequence[MovedCaptures], wanted: WantedCaptures) -> None:
        """Makes `every_capture`, until the end of the transaction."""
        cursor.execute(_SQL["make_room"].text)
        for each in moved:
            self.copy(cursor, self.stored(each), wanted, "moved_rows")
        cursor.execute(_SQL["join_rooms"].text)

    def count(self, moved: MovedCaptures, wanted: WantedCaptures) -> int:
        """Return how many captures of a file are wanted."""
        return int(self._select("count(*)", self.stored(moved), wanted).fetchall()[0][0])

    def stored(self, moved: MovedCaptures) -> StoredFile:
        """The row of a file. Raises `TamiasError`."""
        try:
            return self._named[moved.file]
        except KeyError:
            raise TamiasError(f"captures of {moved.part} are being moved; try again") from None

    def copy(self, cursor: Cursor, stored: StoredFile, wanted: WantedCaptures, table: str) -> None:
        """Adds the captures of a file that are wanted to a table."""
        with _explain_damage(stored):
            self._copy(cursor, stored, wanted, table)

    def _copy(self, cursor: Cursor, stored: StoredFile, wanted: WantedCaptures, table: str) -> None:
        path = str(self._store.local(stored))
        found = self._tables.execute("DESCRIBE SELECT * FROM read_parquet(?)", [path])
        columns = [row[0] for row in found.fetchall() if row[0] in self._types]
        selected = ", ".join(f"qid & {self._buckets - 1}" if each == "bucket" else each for each in columns)
        rows = self._select(selected, stored, wanted)
        into = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(*table.split(".")), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with cursor.copy(into) as copy:
            while some := rows.fetchmany(_ROWS_AT_ONCE):
                for row in some:
                    copy.write_row(row)

    def problem(self, file: UUID, sha256: bytes) -> str | None:
        """Return what is wrong with a file."""
        stored = self._named[file]
        try:
            with self._store.open(stored) as content:
                _, found = write_hashed(pieces(content, stored.committed), len)
        except OSError as error:
            return f"it cannot be read: {error.strerror or error}; restore it from a backup"
        return None if found == sha256.hex() else "its bytes are not those that were written"

    def remove_unnamed(self) -> None:
        """Files of a process that was killed before it named them."""
        known = {each.name for each in self._named.values()}
        for name in self._store.names("captures"):
            if name not in known:
                self._store.remove(StoredFile(file=UUID(int=0), kind="captures", name=name, in_store=True))

    def _write(self, part: str, path: Path) -> int:
        """Writes what can be moved of a partition; returns how many captures that is."""
        lines = self._work / "rows.csv"
        columns = sql.SQL(", ").join(sql.Identifier("moved", name) for name in self._types)
        rows = sql.SQL("COPY (SELECT {} " + _MOVABLE + " ORDER BY moved.capture) TO STDOUT" + _CSV).format(
            columns, part=sql.Identifier("tamias", part)
        )

        def copy(cursor: Cursor) -> None:
            with lines.open("wb") as out, cursor.copy(rows) as found:
                for piece in found:
                    out.write(piece)

        self._session.transact(copy)
        read = {name: _TYPES.get(kind, "VARCHAR") for name, kind in self._types.items()}
        selected = ", ".join(
            f"unhex(substr({name}, 3)) AS {name}" if kind == "bytea" else name
            for name, kind in self._types.items()
        )
        self._tables.execute(
            f"CREATE TEMP TABLE month AS SELECT {selected} FROM read_csv(?, columns = {read!r}, {_READ_CSV})",  # noqa: S608
            [str(lines)],
        )
        self._tables.table("month").write_parquet(str(path), compression="zstd")
        written = self._tables.execute("SELECT count(*) FROM month").fetchall()[0][0]
        self._tables.execute("DROP TABLE month")
        lines.unlink()
        return int(written)

    def _try_switch(self, cursor: Cursor, part: str, stored: StoredFile, sha256: str) -> MovedCaptures | None:
        try:
            with cursor.connection.transaction():
                return self._switch(cursor, part, stored, sha256)
        except pg.LockNotAvailable:
            return None

    def _switch(self, cursor: Cursor, part: str, stored: StoredFile, sha256: str) -> MovedCaptures | None:
        """Removes rows that are in a file, and names the file; None if the file has other rows."""
        place = sql.Identifier("tamias", part)
        cursor.execute(_SQL["wait_briefly"].text)
        cursor.execute(sql.SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(place))
        cursor.execute(_SQL["make_room"].text)
        self.copy(cursor, stored, EVERYTHING, "moved_rows")
        movable = sql.SQL(_MOVABLE).format(part=place)
        there = cursor.execute(sql.SQL(_DIGEST + " FROM moved_rows AS moved")).fetchone()
        if cursor.execute(sql.SQL(_DIGEST + " ") + movable).fetchone() != there or there is None:
            return None
        captures, digest, first, last = there
        moved = MovedCaptures(stored.file, part, UUID(first), UUID(last), captures, digest)
        cursor.execute(
            _SQL["put_file"].text, {**msgspec.structs.asdict(stored), "sha256": bytes.fromhex(sha256)}
        )
        cursor.execute(_SQL["note_moved"].text, msgspec.structs.asdict(moved))
        cursor.execute(_SUMS["forget_sums"].text, {"part": part})
        for outcome, *sums in cursor.execute(
            sql.SQL(_SUM + " FROM moved_rows AS moved GROUP BY 1")
        ).fetchall():
            words = dict(zip(("attempts", "quads", "bytes"), sums, strict=True))
            cursor.execute(
                _SUMS["keep_sum"].text, {"part": stored.name, "written": _MOVED, "outcome": outcome, **words}
            )
        keep = "CREATE TEMPORARY TABLE kept ON COMMIT DROP AS SELECT * FROM {} WHERE signals IS NOT NULL"
        for statement in (keep, "TRUNCATE {}", "INSERT INTO {} SELECT * FROM kept"):
            cursor.execute(sql.SQL(statement).format(place))
        reached("captures-switched")
        return moved

    def _select(
        self, selected: str, stored: StoredFile, wanted: WantedCaptures
    ) -> "duckdb.DuckDBPyConnection":
        path = str(self._store.local(stored))
        values: list[Any] = [path, wanted.first, wanted.last]
        text = f"SELECT {selected} FROM read_parquet(?) WHERE capture BETWEEN ? AND ?"  # noqa: S608
        if wanted.ids is not None:
            text += " AND list_contains(?::UUID[], capture)"
            values.append([str(each) for each in wanted.ids])
        if wanted.queues is not None:
            text += " AND list_contains(?::BIGINT[], qid)"
            values.append(list(wanted.queues))
        if wanted.urls is not None:
            text += " AND (list_contains(?::VARCHAR[], url) OR list_contains(?::VARCHAR[], final_url))"
            values += [list(wanted.urls)] * 2
        return self._tables.execute(text, values)

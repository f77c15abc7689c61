"""A version as a table, for whoever speaks Arrow: CSV, JSON and Parquet, read by DuckDB within limits."""

import csv
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamias.content.canonical import Unreadable
from tamias.content.canonical.tables import found_table
from tamias.content.formats import Form, form_of
from tamias.model.errors import TamiasError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = 1 << 30
"""Bytes of memory for a table; beyond that it uses the disk."""
DISK = 8 << 30
"""Bytes of disk."""
PARQUET = frozenset({"application/vnd.apache.parquet", "application/parquet", "application/x-parquet"})

_SQL = {
    Form.ROWS: "read_csv(?, delim = ',', quote = '\"', escape = '\"', header = true, sample_size = -1,"
    " new_line = '\\n', compression = 'none', parallel = false, max_line_size = 134217728)",
    Form.JSON: "read_json(?, compression = 'none', maximum_object_size = 134217728)",
    Form.JSON_LINES: "read_json(?, compression = 'none', maximum_object_size = 134217728)",
    Form.BYTES: "read_parquet(?)",
}


_ONE_MORE = (
    "CREATE OR REPLACE TABLE all_rows AS SELECT * FROM all_rows"
    " UNION ALL BY NAME SELECT ?::INTEGER AS _version, * FROM one"
)


class NoTable(TamiasError):
    """A content that cannot be read as a table."""


class Table:
    """Rows and columns. pandas, polars, pyarrow and DuckDB take it as it is, any number of times."""

    def __init__(self, rows: "DuckDBPyConnection", folder: Path) -> None:
        """Gives out the table `t` of a database, which spills into a folder that goes with it."""
        self._rows = rows
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        described = rows.table("t")
        self.columns: list[str] = list(described.columns)
        self.types: list[str] = [str(each) for each in described.types]

    def __len__(self) -> int:
        found = self._rows.cursor().execute("SELECT count(*) FROM t").fetchone()
        return int(found[0]) if found else 0

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.columns[:20])}>"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        """The rows by the Arrow PyCapsule interface."""
        # A cursor of its own: a consumer may ask for a second stream while it reads the first.
        return self._rows.cursor().table("t").__arrow_c_stream__(requested_schema)


def readable_as_table(media_type: str | None) -> bool:
    """Whether there is a way to read it as one."""
    form = form_of(media_type)
    return (form in _SQL and form is not Form.BYTES) or media_type in PARQUET


def read_table(media_type: str | None, spool: Callable[[Path], Path]) -> Table:
    """Reads a table; `spool` puts the content into a file of the folder it is given, text in UTF-8.

    Raises `NoTable`.
    """
    import duckdb

    if not readable_as_table(media_type):
        raise NoTable(f"{media_type or 'an unknown type'} is not read as a table; CSV, JSON and Parquet are")
    folder = Path(tempfile.mkdtemp(prefix="tamias-table-"))
    try:
        return Table(_loaded(media_type, spool(folder)), folder)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, duckdb.Error | Unreadable):
            raise NoTable(f"this {media_type} cannot be read as a table: {_first_line(error)}") from error
        raise


class TableVersion(NamedTuple):
    """A version of a table, from when on it was valid, and how its content is put into a file."""

    number: int
    captured_at: int
    media_type: str | None
    spool: Callable[[Path], Path]


def read_history(versions: Sequence[TableVersion]) -> Table:
    """The rows of all versions, oldest first, each row once for as long as it stayed: see `Archive.history`.

    Raises `NoTable`.
    """
    import duckdb

    folder = Path(tempfile.mkdtemp(prefix="tamias-table-"))
    try:
        for version in versions:
            if not readable_as_table(version.media_type):
                raise NoTable(f"version {version.number} is {version.media_type or 'of an unknown type'}")
        files = [_file_of(version.media_type, version.spool(folder)) for version in versions]
        rows = _workbench(folder, files)
        rows.execute("CREATE TABLE all_rows AS SELECT 0::INTEGER AS _version WHERE false")
        for number, (version, file) in enumerate(zip(versions, files, strict=True)):
            form = _SQL[form_of(version.media_type)]
            rows.execute(f"CREATE OR REPLACE TABLE one AS SELECT * FROM {form}", [str(file)])  # noqa: S608
            rows.execute(_ONE_MORE, [number])
            file.unlink()
        _merge(rows, [version.captured_at for version in versions])
        return Table(rows, folder)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, duckdb.Error | Unreadable):
            raise NoTable(f"a version cannot be read as a table: {_first_line(error)}") from error
        raise


def _merge(rows: "DuckDBPyConnection", times: list[int]) -> None:
    """The table `t`: a row that stays from version to version is one. Equal rows of a version are several."""
    names = [name for name in rows.table("all_rows").columns if name != "_version"]
    columns = ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names)
    ends = [*times[1:], None]
    rows.execute("CREATE TABLE times (number INTEGER, starts BIGINT, ends BIGINT)")
    rows.executemany(
        "INSERT INTO times VALUES (?, ?, ?)", list(zip(range(len(times)), times, ends, strict=True))
    )
    rows.execute(f"""
        CREATE TABLE t AS
        WITH copies AS (
            SELECT *, row_number() OVER (PARTITION BY _version, {columns}) AS _copy FROM all_rows),
        spans AS (
            SELECT *, _version - row_number() OVER (PARTITION BY {columns}, _copy ORDER BY _version) AS _span
            FROM copies),
        merged AS (
            SELECT {columns}, min(_version) AS _first, max(_version) AS _last
            FROM spans GROUP BY {columns}, _copy, _span)
        SELECT {columns}, make_timestamp(first.starts * 1000) AS valid_from,
               make_timestamp(last.ends * 1000) AS valid_to
        FROM merged JOIN times AS first ON first.number = _first JOIN times AS last ON last.number = _last
        ORDER BY valid_from, valid_to, {columns}
    """)  # noqa: S608
    rows.execute("DROP TABLE all_rows; DROP TABLE one; DROP TABLE times")


def _loaded(media_type: str | None, path: Path) -> "DuckDBPyConnection":
    path = _file_of(media_type, path)
    rows = _workbench(path.parent, [path])
    rows.execute(f"CREATE TABLE t AS SELECT * FROM {_SQL[form_of(media_type)]}", [str(path)])  # noqa: S608
    path.unlink()
    return rows


def _file_of(media_type: str | None, path: Path) -> Path:
    if form_of(media_type) is not Form.ROWS:
        return path
    return _plain(path, "\t" if media_type == "text/tab-separated-values" else None)


def _plain(path: Path, delimiter: str | None) -> Path:
    """The same table as everybody writes it: commas, one header, rows of one width."""
    table = found_table(path, DISK, delimiter)
    copy = path.with_name(path.name + ".csv")
    with copy.open("w", encoding="utf-8", errors="replace", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(table.columns)
        lines.writerows(table.rows())
    path.unlink()
    return copy


def _workbench(folder: Path, readable: Sequence[Path]) -> "DuckDBPyConnection":
    """A database that may read some files and spill into their folder, and nothing else."""
    import duckdb

    rows = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{MEMORY}B",
            "temp_directory": str(folder / "spill"),
            "max_temp_directory_size": f"{DISK}B",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        },
    )
    rows.execute("SET allowed_paths = ?", [[str(path) for path in readable]])
    rows.execute("SET enable_external_access = false")
    rows.execute("SET lock_configuration = true")
    return rows


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:300]

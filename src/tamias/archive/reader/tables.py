"""A version as a table, for whoever speaks Arrow: CSV, JSON and Parquet, read by DuckDB within limits."""

import csv
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def _loaded(media_type: str | None, path: Path) -> "DuckDBPyConnection":
    form = form_of(media_type)
    if form is Form.ROWS:
        path = _plain(path, "\t" if media_type == "text/tab-separated-values" else None)
    rows = _workbench(path)
    rows.execute(f"CREATE TABLE t AS SELECT * FROM {_SQL[form]}", [str(path)])  # noqa: S608
    path.unlink()
    return rows


def _plain(path: Path, delimiter: str | None) -> Path:
    """The same table as everybody writes it: commas, one header, rows of one width."""
    table = found_table(path, DISK, delimiter)
    copy = path.with_name("plain.csv")
    with copy.open("w", encoding="utf-8", errors="replace", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(table.columns)
        lines.writerows(table.rows())
    path.unlink()
    return copy


def _workbench(readable: Path) -> "DuckDBPyConnection":
    """A database that may read one file and spill into its folder, and nothing else."""
    import duckdb

    rows = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{MEMORY}B",
            "temp_directory": str(readable.parent / "spill"),
            "max_temp_directory_size": f"{DISK}B",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        },
    )
    rows.execute("SET allowed_paths = [?]", [str(readable)])
    rows.execute("SET enable_external_access = false")
    rows.execute("SET lock_configuration = true")
    return rows


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:300]

"""A version as a table, for whoever speaks Arrow, read by DuckDB within limits.

CSV and workbooks have the rows, columns and types that their profile tells.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tamias.archive.reader.content import NoTable, Table, TableVersion
from tamias.content.containers.codecs import DamageError
from tamias.content.formats import PARQUET, ZIP, Form, bare_type, form_of
from tamias.features.archive.canonical.tables import FileTable, found_table
from tamias.features.archive.canonical.text import looked_at, marked_chunks, unpack
from tamias.features.archive.canonical.workbooks import opened_workbook
from tamias.features.tables.files.members import table_members
from tamias.features.tables.limits import (
    ProfileLimit,
    ProfileLimits,
    ProfileRun,
    ScratchFolder,
    first_line,
    open_confined,
    within_limits,
)
from tamias.features.tables.loaded_forms import load_rows, loaded_forms, typed_column
from tamias.model.document import LimitExceeded, Unreadable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LIMITS = ProfileLimits(seconds=1e8, memory=1 << 30, disk=8 << 30)
"""Of a table for the library; beyond the memory it uses the disk."""

_JSON = "read_json(?, compression = 'none', maximum_object_size = 134217728)"
_SQL = {Form.JSON: _JSON, Form.JSON_LINES: _JSON, Form.BYTES: "read_parquet(?)"}


def read_table(versions: Sequence[TableVersion], *, history: bool) -> Table:
    """Read the table of a version; or the rows of all, oldest first, each once for as long as it stayed.

    See `Archive.history`. Raises `NoTable`.
    """
    folder = ScratchFolder(None)
    return Table(load_table(versions, ProfileRun(LIMITS, folder), history=history), folder)


def load_table(
    versions: Sequence[TableVersion], run: ProfileRun, *, history: bool, written: Sequence[Path] = ()
) -> "DuckDBPyConnection":
    """Load the rows that `read_table` describes into the table `t` of a DuckDB, which may write some files.

    On any error the folder of the run is deleted. Raises `NoTable`.
    """
    import duckdb

    try:
        files = [_file_of(version, run) for version in versions]
        allowed = [*(file for file, _ in files), *written]
        rows = open_confined(allowed, run.folder.path, run.limits.memory, run.limits.disk)
        with within_limits(rows, run, run.limits.memory):
            loaded = [_loaded(rows, place, *each) for place, each in enumerate(files)]
            _join(rows, loaded)
            if history:
                _merge(rows, [version.captured_at for version in versions])
            else:
                rows.execute("ALTER TABLE all_rows DROP COLUMN _version; ALTER TABLE all_rows RENAME TO t")
        return rows
    except BaseException as error:
        run.folder.close()
        if isinstance(error, duckdb.Error | Unreadable | ProfileLimit):
            raise NoTable(
                f"{bare_type(versions[-1].media_type)} cannot be read as a table: {first_line(error)}"
            ) from error
        raise


class _Column(NamedTuple):
    """A column of one version: its type, what makes a value of that type, and what makes its text."""

    datatype: str
    value: str
    text: str


def _file_of(version: TableVersion, run: ProfileRun) -> tuple[Path, FileTable | str]:
    """A file that DuckDB reads, with the table that it was written from, or the SQL that reads it."""
    media_type, kind = version.media_type, bare_type(version.media_type)
    form = Form.PACKED if kind == ZIP else form_of(media_type)
    if kind != PARQUET and form in (Form.STATEMENTS, Form.MEMBERS, Form.TEXT, Form.BYTES):
        raise Unreadable(
            f"version {version.number} is {kind or 'of an unknown type'};"
            " CSV, workbooks, JSON and Parquet are read, also compressed, and CSV in zip archives"
        )
    path = version.spool(run.folder.path)
    if form is Form.PACKED:
        return _file_of(_unpacked(version, path, run.limits.disk), run)
    if form is Form.ROWS:
        table = found_table(path, run.limits.disk, content_type=media_type)
        return _plain(table, path, run), table
    if form is Form.SHEETS:
        with opened_workbook(path) as sheets:
            for sheet in sheets.values():
                if not sheet.is_empty:
                    return _plain(sheet, path, run), sheet
            raise Unreadable("no sheet has a row")
    if form in (Form.JSON, Form.JSON_LINES):
        copy = path.with_name(path.name + ".json")
        with copy.open("wb") as file:
            file.writelines(marked_chunks(path))
        path.unlink()
        return copy, _SQL[form]
    return path, _SQL[form]


def _unpacked(version: TableVersion, path: Path, most: int) -> TableVersion:
    """The content of a compressed file, or the first table of a zip archive."""
    target = path.with_name(path.name + ".content")
    try:
        if bare_type(version.media_type) != ZIP:
            unpack(path, target, most)
        elif next(table_members(path, target, most), None) is None:
            raise Unreadable("no table is in it")
    except (DamageError, LimitExceeded) as fault:
        raise Unreadable(str(fault)) from fault
    path.unlink()
    found = looked_at(target)
    if form_of(found) is Form.PACKED:
        raise Unreadable("it is compressed twice")
    return version._replace(media_type=found, spool=lambda _folder: target)


def _plain(table: FileTable, path: Path, run: ProfileRun) -> Path:
    """The rows of a table as everybody writes them."""
    copy = path.with_name(path.name + ".csv")
    with copy.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for number, row in enumerate(table.rows()):
            writer.writerow(row)
            if not number % 1000:
                run.check()
    path.unlink()
    return copy


def _loaded(
    rows: "DuckDBPyConnection", place: int, file: Path, source: FileTable | str
) -> dict[str, _Column]:
    """Read one version into the table `v` and its place; its columns by their names."""
    name = f"v{place}"
    if isinstance(source, str):
        rows.execute(f"CREATE TABLE {name} AS SELECT * FROM {source}", [str(file)])  # noqa: S608
        described = rows.table(name)
        types = zip(described.columns, map(str, described.types), strict=True)
        found = {each: _Column(kind, _quoted(each), f"{_quoted(each)}::VARCHAR") for each, kind in types}
    else:
        load_rows(rows, name, file, source.width)
        forms = loaded_forms(rows, name, source.width, source.delimiter)
        found = {
            column: _Column(*typed_column(number, form))
            for number, (column, form) in enumerate(zip(source.columns, forms, strict=True))
        }
    file.unlink()
    return found


_NUMBERS = ("BIGINT", "DOUBLE")


def _join(rows: "DuckDBPyConnection", versions: Sequence[dict[str, _Column]]) -> None:
    """Make the table `all_rows`: columns of all versions; those of different types are text, or numbers."""
    types: dict[str, str] = {}
    for columns in versions:
        for name, column in columns.items():
            types[name] = _common_type(types.get(name, column.datatype), column.datatype)
    parts = []
    for place, columns in enumerate(versions):
        cells = [f"{_cell(columns.get(name), kind)} AS {_quoted(name)}" for name, kind in types.items()]
        parts.append(f"SELECT {place}::INTEGER AS _version, {', '.join(cells)} FROM v{place}")  # noqa: S608
    rows.execute(f"CREATE TABLE all_rows AS {' UNION ALL '.join(parts)}")
    for place in range(len(versions)):
        rows.execute(f"DROP TABLE v{place}")


def _common_type(one: str, other: str) -> str:
    if one == other:
        return one
    return max(one, other, key=_NUMBERS.index) if {one, other} <= {*_NUMBERS} else "VARCHAR"


def _cell(column: _Column | None, kind: str) -> str:
    if column is None:
        return f"NULL::{kind}"
    return column.text if kind == "VARCHAR" else f"({column.value})::{kind}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _merge(rows: "DuckDBPyConnection", times: list[int]) -> None:
    """The table `t`: a row that stays from version to version is one. Equal rows of a version are several."""
    names = [name for name in rows.table("all_rows").columns if name != "_version"]
    columns = ", ".join(map(_quoted, names))
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
    rows.execute("DROP TABLE all_rows; DROP TABLE times")


def write_parquet_rows(path: Path, target: Path, most_bytes: int) -> None:
    """Write the rows of a Parquet file as CSV. Raises `Unreadable`."""
    import duckdb

    try:
        rows = open_confined([path], target.parent, LIMITS.memory, LIMITS.disk).execute(
            "SELECT COLUMNS(*)::VARCHAR FROM read_parquet(?)", [str(path)]
        )
        with target.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([each[0] for each in rows.description or ()])
            while (some := rows.fetchmany(1000)) and file.tell() <= most_bytes:
                writer.writerows(some)
    except duckdb.Error as error:
        raise Unreadable(first_line(error)) from error

"""A version as a table, for whoever speaks Arrow, read by DuckDB within limits.

CSV and workbooks have the rows, columns and types that their profile tells.
"""

import csv
import shutil
import tempfile
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
from tamias.features.tables.limits import first_line, open_confined
from tamias.features.tables.loaded_forms import load_rows, loaded_forms, typed_column
from tamias.model.document import LimitExceeded, Unreadable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = 1 << 30
"""Bytes of memory for a table; beyond that it uses the disk."""
DISK = 8 << 30
"""Bytes of disk."""

_JSON = "read_json(?, compression = 'none', maximum_object_size = 134217728)"
_SQL = {Form.JSON: _JSON, Form.JSON_LINES: _JSON, Form.BYTES: "read_parquet(?)"}


def read_table(versions: Sequence[TableVersion], *, history: bool) -> Table:
    """Read the table of a version; or the rows of all, oldest first, each once for as long as it stayed.

    See `Archive.history`. Raises `NoTable`.
    """
    import duckdb

    folder = Path(tempfile.mkdtemp(prefix="tamias-table-"))
    try:
        files = [_file_of(version, folder) for version in versions]
        rows = open_confined([file for file, _ in files], folder, MEMORY, DISK)
        loaded = [_loaded(rows, place, *each) for place, each in enumerate(files)]
        _join(rows, loaded)
        if history:
            _merge(rows, [version.captured_at for version in versions])
        else:
            rows.execute("ALTER TABLE all_rows DROP COLUMN _version; ALTER TABLE all_rows RENAME TO t")
        return Table(rows, folder)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, duckdb.Error | Unreadable):
            raise NoTable(
                f"{bare_type(versions[-1].media_type)} cannot be read as a table: {first_line(error)}"
            ) from error
        raise


class _Column(NamedTuple):
    """A column of one version: its type, what makes a value of that type, and what makes its text."""

    datatype: str
    value: str
    text: str


def _file_of(version: TableVersion, folder: Path) -> tuple[Path, FileTable | str]:
    """A file that DuckDB reads, with the table that it was written from, or the SQL that reads it."""
    media_type, kind = version.media_type, bare_type(version.media_type)
    form = Form.PACKED if kind == ZIP else form_of(media_type)
    if kind != PARQUET and form in (Form.STATEMENTS, Form.MEMBERS, Form.TEXT, Form.BYTES):
        raise Unreadable(
            f"version {version.number} is {kind or 'of an unknown type'};"
            " CSV, workbooks, JSON and Parquet are read, also compressed, and CSV in zip archives"
        )
    path = version.spool(folder)
    if form is Form.PACKED:
        return _file_of(_unpacked(version, path), folder)
    if form is Form.ROWS:
        table = found_table(path, DISK, content_type=media_type)
        return _plain(table, path), table
    if form is Form.SHEETS:
        with opened_workbook(path) as sheets:
            for sheet in sheets.values():
                if not sheet.is_empty:
                    return _plain(sheet, path), sheet
            raise Unreadable("no sheet has a row")
    if form in (Form.JSON, Form.JSON_LINES):
        copy = path.with_name(path.name + ".json")
        with copy.open("wb") as file:
            file.writelines(marked_chunks(path))
        path.unlink()
        return copy, _SQL[form]
    return path, _SQL[form]


def _unpacked(version: TableVersion, path: Path) -> TableVersion:
    """The content of a compressed file, or the first table of a zip archive."""
    target = path.with_name(path.name + ".content")
    try:
        if bare_type(version.media_type) != ZIP:
            unpack(path, target, DISK)
        elif next(table_members(path, target, DISK), None) is None:
            raise Unreadable("no table is in it")
    except (DamageError, LimitExceeded) as fault:
        raise Unreadable(str(fault)) from fault
    path.unlink()
    found = looked_at(target)
    if form_of(found) is Form.PACKED:
        raise Unreadable("it is compressed twice")
    return version._replace(media_type=found, spool=lambda _folder: target)


def _plain(table: FileTable, path: Path) -> Path:
    """The rows of a table as everybody writes them."""
    copy = path.with_name(path.name + ".csv")
    with copy.open("w", encoding="utf-8", errors="replace", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(table.rows())
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
        rows = open_confined([path], target.parent, MEMORY, DISK).execute(
            "SELECT COLUMNS(*)::VARCHAR FROM read_parquet(?)", [str(path)]
        )
        with target.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([each[0] for each in rows.description or ()])
            while (some := rows.fetchmany(1000)) and file.tell() <= most_bytes:
                writer.writerows(some)
    except duckdb.Error as error:
        raise Unreadable(first_line(error)) from error

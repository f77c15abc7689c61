"""Text into a table profile: the table is found, the rows are read, each column is looked at.

DuckDB holds them, unless they are few and beyond doubt.
"""

import csv
from pathlib import Path

from tamias.features.archive.canonical.tables import FileTable, found_table
from tamias.features.archive.canonical.values.form import Uncertain
from tamias.features.tables.columns import TableColumns
from tamias.features.tables.encoding import Utf8Text
from tamias.features.tables.limits import (
    MIB,
    MemoryLimit,
    ProfileLimit,
    ProfileLimits,
    ProfileRun,
    first_line,
    workbench,
)
from tamias.features.tables.loaded import LoadedValues
from tamias.features.tables.loaded_forms import load_rows
from tamias.features.tables.small import small_table
from tamias.model.document import Unreadable
from tamias.model.profile import TableProfile

_ROWS = "rows.csv"
_USUAL_MEMORY = 96 * MIB
"""For the database; 200 MB in five columns take no more processor time in it than in all that is allowed."""


def quick_table(text: Utf8Text, name: str, media_type: str, limits: ProfileLimits) -> TableProfile:
    """The profile of a small table; raises `Uncertain` where DuckDB has to be asked, or `Unreadable`."""
    if text.content is None or text.longest > limits.line:
        raise Uncertain("line")
    table = found_table(text.content, limits.bytes, content_type=media_type)
    return _profile(text, name, table, small_table(text, table, limits))


def table_profile(
    run: ProfileRun, text: Utf8Text, name: str, media_type: str, delimiter: str | None = None
) -> TableProfile | None:
    """The profile of a table; None where there is none. The delimiter is given where it is known."""
    limits = run.limits
    if text.longest > limits.line:
        run.problems.append(
            f"{name}: a line of {text.longest} bytes, more than {limits.line} (limit profile.line):"
            " not read as a table"
        )
        return None
    try:
        source = text.file() if text.content is None else text.content
        table = found_table(source, 2 * limits.bytes, delimiter, media_type)
        if table.header is None and next(table.rows(), None) is None:
            return None
        return _profile(text, name, table, small_table(text, table, limits))
    except Unreadable as fault:
        run.problems.append(f"{name}: cannot be read as a table: {fault}")
        return None
    except Uncertain:
        known = len(run.problems)
    try:
        found = _loaded_table(run, min(_USUAL_MEMORY, limits.memory), name, table)
    except MemoryLimit:
        del run.problems[known:]
        found = _loaded_table(run, limits.memory, name, table)
    return _profile(text, name, table, found)


def _loaded_table(run: ProfileRun, memory: int, name: str, table: FileTable) -> TableColumns | None:
    """The columns as far as they are read. Raises `MemoryLimit` if less than is allowed was not enough."""
    import duckdb

    limits, path = run.limits, run.folder.path / _ROWS
    found, width = None, min(table.width, limits.columns)
    try:
        _write_rows(run, table, path, name, width)
        with workbench(path, run, memory) as tables:
            found = TableColumns(LoadedValues(tables, limits), table, limits)
            load_rows(tables, "t", path, width, limits.rows)
            found.look()
    except Unreadable as fault:
        run.problems.append(f"{name}: cannot be read as a table: {fault}")
    except ProfileLimit as limit:
        if isinstance(limit, MemoryLimit) and memory < limits.memory:
            raise
        run.problems.append(f"{name}: {limit}")
    except duckdb.Error as error:
        run.problems.append(f"{name}: cannot be read as a table: {first_line(error)}")
    return found


def _write_rows(run: ProfileRun, table: FileTable, path: Path, name: str, width: int) -> None:
    """The rows as everybody writes them, the first columns only where there are too many."""
    if width < table.width:
        run.problems.append(
            f"{name}: {table.width} columns, of which the first {width} are profiled (limit profile.columns)"
        )
    with path.open("w", encoding="utf-8", newline="") as copy:
        writer = csv.writer(copy, lineterminator="\n")
        for number, row in enumerate(table.rows()):
            writer.writerow(row[:width])
            if not number % 1000:
                run.check()


def _profile(text: Utf8Text, name: str, table: FileTable, found: TableColumns | None) -> TableProfile:
    return TableProfile(
        name=name,
        encoding=text.encoding.name,
        delimiter=table.delimiter,
        quote=table.quote or None,
        header=table.header is not None,
        skipped=table.skipped,
        rows=found.rows if found else 0,
        width=table.width,
        unnamed=table.unnamed,
        columns=tuple(found.profiles) if found else (),
        complete=text.complete and found is not None and found.complete,
    )

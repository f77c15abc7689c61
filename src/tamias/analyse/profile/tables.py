"""Text into a table profile: the dialect is found, the rows are read, each column is looked at.

DuckDB reads them, unless they are few and beyond doubt.
"""

import csv
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamias.analyse.profile.columns import TableColumns
from tamias.analyse.profile.dialect import (
    Dialect,
    Marks,
    counted_marks,
    found_dialect,
    row_reader,
    sample_rows,
)
from tamias.analyse.profile.encoding import Utf8Text
from tamias.analyse.profile.limits import KIB, MIB, MemoryLimit, ProfileLimit, ProfileLimits, Watch
from tamias.analyse.profile.loaded import LoadedValues
from tamias.analyse.profile.scratch import ScratchFolder, workbench
from tamias.analyse.profile.small import small_table
from tamias.analyse.profile.values.form import Uncertain
from tamias.model.profile import TableProfile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

HEAD = 256 * KIB
_NARROW = "narrow.csv"
_FETCHED = MIB
"""Bytes of a table whose values may be held in memory."""
_USUAL_MEMORY = 96 * MIB
"""For the database; 200 MB in five columns take no more processor time in it than in all that is allowed."""
MOST_REJECTED = 10_000
BUFFER = 8 * MIB
"""Of DuckDB's reader, which would take four times as much."""


def quick_table(text: Utf8Text, name: str, limits: ProfileLimits) -> TableProfile:
    """The profile of a small table; raises `Uncertain` where DuckDB has to be asked."""
    if text.longest > limits.line:
        raise Uncertain("line")
    return _profile(text, name, *small_table(text, None, limits))


class Tables:
    """Profiles tables of one body. What goes wrong is added to `problems`."""

    def __init__(
        self, folder: ScratchFolder, limits: ProfileLimits, watch: Watch, problems: list[str]
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._watch = watch
        self._problems = problems

    def table(self, text: Utf8Text, name: str, marks: Marks | None = None) -> TableProfile | None:
        """The profile of a table; None where there is none. `marks` are given where they are known."""
        if text.longest > self._limits.line:
            self._problems.append(
                f"{name}: a line of {text.longest} bytes, more than {self._limits.line} (limit profile.line):"
                " not read as a table"
            )
            return None
        try:
            return _profile(text, name, *small_table(text, marks, self._limits))
        except Uncertain:
            return self._loaded_table(text, name, marks)

    def _loaded_table(self, text: Utf8Text, name: str, marks: Marks | None) -> TableProfile | None:
        """In little memory, which is enough for all but tables with very many columns."""
        told = len(self._problems)
        try:
            return self._loaded_within(min(_USUAL_MEMORY, self._limits.memory), text, name, marks)
        except MemoryLimit:
            del self._problems[told:]
            return self._loaded_within(self._limits.memory, text, name, marks)

    def _loaded_within(
        self, memory: int, text: Utf8Text, name: str, marks: Marks | None
    ) -> TableProfile | None:
        """Raises `MemoryLimit` if less memory than is allowed was not enough."""
        import duckdb

        dialect: Dialect | None = None
        found: TableColumns | None = None
        file, folder = text.file(), self._folder.path
        try:
            limits = msgspec.structs.replace(self._limits, memory=memory)
            with workbench([file, folder / _NARROW], folder, limits, self._watch) as tables:
                dialect = self._dialect(tables, file, marks)
                if dialect is not None:
                    path, narrow = self._within_columns(file, name, dialect)
                    loaded = LoadedValues(tables, self._limits)
                    found = TableColumns(loaded, narrow, self._limits)
                    load(tables, path, narrow, self._limits.rows)
                    self._tell_losses(tables, name, narrow)
                    if path.stat().st_size <= _FETCHED:
                        found = TableColumns(loaded.fetched(narrow.width), narrow, self._limits)
                    found.look()
        except ProfileLimit as limit:
            if isinstance(limit, MemoryLimit) and memory < self._limits.memory:
                raise
            self._problems.append(f"{name}: {limit}")
        except duckdb.Error as error:
            self._problems.append(f"{name}: cannot be read as a table: {_first_line(error)}")
        return None if dialect is None else _profile(text, name, dialect, found)

    def _dialect(self, tables: "DuckDBPyConnection", path: Path, marks: Marks | None) -> Dialect | None:
        head = _head(path)
        marks = marks or self._marks(tables, path, head)
        # A quote that is never closed takes all the text for one cell.
        return found_dialect(head, marks) or found_dialect(head, Marks(marks.delimiter, "", ""))

    def _marks(self, tables: "DuckDBPyConnection", path: Path, head: str) -> Marks:
        """The sniffer's word; where it sees only one column, the delimiter that makes rows of one length."""
        import duckdb

        counted = counted_marks(head)
        first = max((len(row) for row, _ in sample_rows(head, counted)[:50]), default=0)
        if first > self._limits.columns:  # the sniffer's memory grows with the columns
            return counted
        try:
            marks, width = sniffed(tables, path, head)
        except duckdb.Error:
            return counted
        return marks if width > 1 or first < 2 else msgspec.structs.replace(counted, header=None)

    def _within_columns(self, path: Path, name: str, dialect: Dialect) -> tuple[Path, Dialect]:
        if dialect.width <= self._limits.columns:
            return path, dialect
        self._problems.append(
            f"{name}: {dialect.width} columns, of which the first {self._limits.columns} are profiled"
            " (limit profile.columns)"
        )
        return self._narrowed(path, dialect)

    def _tell_losses(self, tables: "DuckDBPyConnection", name: str, dialect: Dialect) -> None:
        lost = _count(tables, "SELECT count(DISTINCT line) FROM reject_errors")
        if lost:
            self._problems.append(f"{name}: {lost} rows left out that cannot be read")
        wider = _count(tables, f"SELECT count(c{dialect.width}) FROM t")  # noqa: S608
        if wider:
            self._problems.append(
                f"{name}: {wider} rows have more than {dialect.width} cells; the rest of them is left out"
            )

    def _narrowed(self, path: Path, dialect: Dialect) -> tuple[Path, Dialect]:
        """A copy with the first columns only."""
        most, target = self._limits.columns, self._folder.path / _NARROW
        with (
            path.open(encoding="utf-8", newline="") as source,
            target.open("w", encoding="utf-8", newline="") as copy,
            suppress(csv.Error),
        ):
            for _ in range(dialect.skipped + dialect.header_lines):
                source.readline()
            writer = csv.writer(copy, lineterminator="\n")
            for row in row_reader(source, dialect.marks):
                writer.writerow(row[:most])
                self._watch.check()
        header = None if dialect.header is None else dialect.header[:most]
        return target, Dialect(marks=Marks(","), skipped=0, header=header, header_lines=0, width=most)


def sniffed(tables: "DuckDBPyConnection", path: Path, head: str) -> tuple[Marks, int]:
    """The signs that DuckDB sees, and how many columns they make."""
    row = tables.execute(
        "SELECT delimiter, quote, escape, hasheader, len(columns)"
        " FROM sniff_csv(?, null_padding = true, compression = 'none')",
        [str(path)],
    ).fetchone()
    delimiter, quote, escape, header, width = row  # type: ignore[misc]
    quote = "" if len(quote) != 1 else quote
    if not quote and '"' not in head:
        quote = '"'  # there may be some further on
    escape = escape if escape == "\\" else quote
    return Marks(delimiter if len(delimiter) == 1 else ",", quote, escape, header), width


def load(tables: "DuckDBPyConnection", path: Path, dialect: Dialect, rows: int) -> None:
    """Reads the rows into the table `t`, all as text, without those that are empty.

    It has one column more, for what stands beyond the last.
    """
    columns = [f"c{place}" for place in range(dialect.width + 1)]
    listed = ", ".join(f"'{column}': 'VARCHAR'" for column in columns)
    marks = dialect.marks
    tables.execute(
        f"CREATE TABLE t AS FROM read_csv(?, auto_detect = false, columns = {{{listed}}}, delim = ?,"
        " quote = ?, escape = ?, skip = ?, header = false, null_padding = true, strict_mode = false,"
        f" ignore_errors = true, store_rejects = true, rejects_limit = {MOST_REJECTED},"
        f" compression = 'none', new_line = '\\n', parallel = false, buffer_size = {BUFFER})"
        f" WHERE coalesce({', '.join(columns)}, '') <> '' LIMIT {rows}",
        [str(path), marks.delimiter, marks.quote, marks.escape, dialect.skipped + dialect.header_lines],
    )


def _count(tables: "DuckDBPyConnection", query: str) -> int:
    row = tables.execute(query).fetchone()
    return int(row[0]) if row else 0


def _head(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(HEAD)
    if len(data) == HEAD:
        data = data[: data.rfind(b"\n") + 1] or data
    return data.decode("utf-8", "replace")


def _profile(text: Utf8Text, name: str, dialect: Dialect, found: TableColumns | None) -> TableProfile:
    return TableProfile(
        name=name,
        encoding=text.encoding.name,
        delimiter=dialect.marks.delimiter,
        quote=dialect.marks.quote or None,
        header=dialect.header is not None,
        skipped=dialect.skipped,
        rows=found.rows if found else 0,
        width=dialect.width - (found.dropped if found else 0),
        columns=tuple(found.profiles) if found else (),
        complete=text.complete and found is not None and found.complete,
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]

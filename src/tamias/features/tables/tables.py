"""Text into a table profile: the table is found, the rows are read, each column is looked at.

DuckDB holds them, unless they are few and beyond doubt.
"""

import csv
from pathlib import Path

import msgspec

from tamias.features.archive.canonical.tables import FileTable, found_table
from tamias.features.archive.canonical.values.form import Uncertain
from tamias.features.tables.columns import TableColumns
from tamias.features.tables.encoding import Utf8Text
from tamias.features.tables.limits import MIB, MemoryLimit, ProfileLimit, ProfileLimits, Watch
from tamias.features.tables.loaded import LoadedValues
from tamias.features.tables.loaded_forms import load_rows
from tamias.features.tables.scratch import ScratchFolder, first_line, workbench
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


class Tables:
    """Profiles tables of one body. What goes wrong is added to `problems`."""

    def __init__(
        self, folder: ScratchFolder, limits: ProfileLimits, watch: Watch, problems: list[str]
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._watch = watch
        self._problems = problems

    def table(
        self, text: Utf8Text, name: str, media_type: str, delimiter: str | None = None
    ) -> TableProfile | None:
        """The profile of a table; None where there is none. The delimiter is given where it is known."""
        if text.longest > self._limits.line:
            self._problems.append(
                f"{name}: a line of {text.longest} bytes, more than {self._limits.line} (limit profile.line):"
                " not read as a table"
            )
            return None
        try:
            source = text.file() if text.content is None else text.content
            table = found_table(source, 2 * self._limits.bytes, delimiter, media_type)
            if table.header is None and next(table.rows(), None) is None:
                return None
            return _profile(text, name, table, small_table(text, table, self._limits))
        except Uncertain:
            return self._loaded_table(text, name, table)
        except Unreadable as fault:
            self._problems.append(f"{name}: cannot be read as a table: {fault}")
            return None

    def _loaded_table(self, text: Utf8Text, name: str, table: FileTable) -> TableProfile:
        """Profile a table in little memory, and again with all that is allowed if that is too little."""
        known = len(self._problems)
        try:
            return self._loaded_within(min(_USUAL_MEMORY, self._limits.memory), text, name, table)
        except MemoryLimit:
            del self._problems[known:]
            return self._loaded_within(self._limits.memory, text, name, table)

    def _loaded_within(self, memory: int, text: Utf8Text, name: str, table: FileTable) -> TableProfile:
        """Raises `MemoryLimit` if less memory than is allowed was not enough."""
        import duckdb

        found: TableColumns | None = None
        path, folder = self._folder.path / _ROWS, self._folder.path
        width = min(table.width, self._limits.columns)
        try:
            self._write_rows(table, path, name, width)
            limits = msgspec.structs.replace(self._limits, memory=memory)
            with workbench([path], folder, limits, self._watch) as tables:
                found = TableColumns(LoadedValues(tables, self._limits), table, self._limits)
                load_rows(tables, "t", path, width, self._limits.rows)
                found.look()
        except Unreadable as fault:
            self._problems.append(f"{name}: cannot be read as a table: {fault}")
        except ProfileLimit as limit:
            if isinstance(limit, MemoryLimit) and memory < self._limits.memory:
                raise
            self._problems.append(f"{name}: {limit}")
        except duckdb.Error as error:
            self._problems.append(f"{name}: cannot be read as a table: {first_line(error)}")
        return _profile(text, name, table, found)

    def _write_rows(self, table: FileTable, path: Path, name: str, width: int) -> None:
        """The rows as everybody writes them, the first columns only where there are too many."""
        if width < table.width:
            self._problems.append(
                f"{name}: {table.width} columns, of which the first {width} are profiled"
                " (limit profile.columns)"
            )
        with path.open("w", encoding="utf-8", newline="") as copy:
            writer = csv.writer(copy, lineterminator="\n")
            for number, row in enumerate(table.rows()):
                writer.writerow(row[:width])
                if not number % 1000:
                    self._watch.check()


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

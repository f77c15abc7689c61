"""Parquet by its footer: schema, rows and the statistics that the writer left; no row is read."""

import re
from pathlib import Path
from typing import Any

from tamias.features.archive.canonical.values.form import ColumnForm
from tamias.features.tables.limits import MIB, ProfileLimit, ProfileLimits, ProfileRun, workbench
from tamias.features.tables.meaning.meanings import ColumnSample, meaning_of
from tamias.model.profile import ColumnProfile, TableProfile

LONGEST_FOOTER = 64 * MIB
_DATATYPES = (
    (re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?"), "integer"),
    (re.compile(r"DECIMAL.*"), "decimal"),
    (re.compile(r"FLOAT|REAL"), "float"),
    (re.compile(r"DOUBLE"), "double"),
    (re.compile(r"BOOLEAN"), "boolean"),
    (re.compile(r"DATE"), "date"),
    (re.compile(r"TIMESTAMP.*"), "dateTime"),
    (re.compile(r"TIME.*"), "time"),
    (re.compile(r"BLOB.*"), "base64Binary"),
)
_LEAVES = """
    SELECT name, duckdb_type FROM parquet_schema(?) WHERE num_children IS NULL OR num_children = 0
"""
_STATISTICS = """
    SELECT column_id, sum(stats_null_count), min(stats_min_value), max(stats_max_value), count(*)
    FROM parquet_metadata(?) GROUP BY column_id ORDER BY column_id
"""


def parquet_table(path: Path, name: str, run: ProfileRun) -> TableProfile:
    """The table of a Parquet file; raises `ProfileLimit`, or `duckdb.Error` for a footer that is none."""
    limits = run.limits
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 8))
        if int.from_bytes(file.read(4), "little") > LONGEST_FOOTER:
            raise ProfileLimit(f"a footer of more than {LONGEST_FOOTER} bytes")
    with workbench(path, run, limits.memory) as tables:
        rows = tables.execute("SELECT num_rows FROM parquet_file_metadata(?)", [str(path)]).fetchall()
        leaves = tables.execute(_LEAVES, [str(path)]).fetchall()
        statistics = tables.execute(_STATISTICS, [str(path)]).fetchall()
    known = {row[0]: row for row in statistics}
    columns = [
        _column(place, leaf, known.get(place), limits) for place, leaf in enumerate(leaves[: limits.columns])
    ]
    return TableProfile(
        name=name, header=True, rows=int(rows[0][0]), width=len(leaves), columns=tuple(columns)
    )


def _column(
    place: int, leaf: tuple[Any, ...], known: tuple[Any, ...] | None, limits: ProfileLimits
) -> ColumnProfile:
    name, kind = str(leaf[0])[: limits.value * 5], str(leaf[1] or "")
    datatype = next((datatype for pattern, datatype in _DATATYPES if pattern.fullmatch(kind)), "string")
    # Of several groups of rows, the texts of numbers would be compared as texts.
    alone = known is not None and (known[4] == 1 or datatype in ("string", "date", "dateTime"))
    least, most = (known[2], known[3]) if known is not None and alone else (None, None)
    values = [text[:300] for text in (least, most) if text]
    return ColumnProfile(
        name=name,
        number=place + 1,
        datatype=datatype,
        nulls=None if known is None or known[1] is None else int(known[1]),
        min=least and least[: limits.value],
        max=most and most[: limits.value],
        meaning=meaning_of(ColumnSample(name=name, form=ColumnForm(datatype=datatype), values=values)),
    )

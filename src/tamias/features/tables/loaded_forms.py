"""The forms of the columns of a table that DuckDB has loaded as text, for profiles and readers alike."""

from pathlib import Path
from typing import TYPE_CHECKING

from tamias.features.archive.canonical.values.cells import form_of
from tamias.features.archive.canonical.values.form import NULLS, TEXT, TYPED_NULLS, ColumnForm
from tamias.features.archive.canonical.values.number_forms import decimal_sign

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SAMPLE = 1000
"""Values of a column that a guess is made from."""
DIFFERENT = 300
"""Different ones among them; all values are held against the guess."""
CUT = 300
"""Characters of a value that a guess is made from."""
_ALL = 500
"""Rows of a table whose values are all looked at, in their order."""
_TEXT_NULLS = ", ".join(f"'{null}'" for null in ("", *NULLS))
_ANY_NULLS = ", ".join(f"'{null}'" for null in ("", *TYPED_NULLS))
_TYPES = {
    "decimal": "DOUBLE", "double": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE", "dateTime": "TIMESTAMP",
    "time": "TIME",
}  # fmt: skip


def load_rows(
    tables: "DuckDBPyConnection", name: str, path: Path, width: int, most: int | None = None
) -> None:
    """Read rows as `csv.writer` writes them into a new table, all as text."""
    listed = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(width))
    tables.execute(
        f"CREATE TABLE {name} AS FROM read_csv(?, auto_detect = false, columns = {{{listed}}}, delim = ',',"
        " quote = '\"', escape = '\"', header = false, compression = 'none', new_line = '\\n',"
        f" parallel = false, max_line_size = 134217728){'' if most is None else f' LIMIT {most}'}",
        [str(path)],
    )


def known_values(name: str, place: int, nulls: str = _TEXT_NULLS) -> str:
    """SQL for the values of a column, trimmed, as `v`; NULL where there is none."""
    value = f"trim(c{place})"
    return f"SELECT CASE WHEN lower({value}) IN ({nulls}) THEN NULL ELSE {value} END AS v FROM {name}"  # noqa: S608


def known_typed(name: str, place: int, form: ColumnForm) -> str:
    """The same without what means nothing among values of that form."""
    return known_values(name, place, _TEXT_NULLS if form is TEXT else _ANY_NULLS)


def null_words(name: str, place: int) -> str:
    """SQL for what is written in a typed column for a missing value."""
    words = f"SELECT DISTINCT trim(c{place}) AS v FROM {name}"  # noqa: S608
    return f"SELECT v FROM ({words}) WHERE v <> '' AND lower(v) IN ({_ANY_NULLS}) ORDER BY v"  # noqa: S608


def sampled_values(tables: "DuckDBPyConnection", name: str, place: int, rows: int) -> list[str]:
    """Return a sample of a column's values; of a small table all of them, in their order."""
    chosen = "" if rows <= _ALL else f" USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE (1)"
    found = tables.execute(
        f"SELECT left(v, {CUT}) FROM ({known_values(name, place)} WHERE c{place} IS NOT NULL)"  # noqa: S608
        f" WHERE v IS NOT NULL{chosen}"
    ).fetchall()
    return [row[0] for row in found]


def loaded_forms(tables: "DuckDBPyConnection", name: str, width: int, delimiter: str) -> list[ColumnForm]:
    """The form of each column of which all values are of it; of others, that of text."""
    row = tables.execute(f"SELECT count(*) FROM {name}").fetchone()  # noqa: S608
    samples = [sampled_values(tables, name, place, row[0] if row else 0) for place in range(width)]
    sign = decimal_sign(samples)
    forms = [form_of(list(dict.fromkeys(each))[:DIFFERENT], sign, delimiter) for each in samples]
    return [
        form if form is TEXT or _holds(tables, name, place, form) else TEXT
        for place, form in enumerate(forms)
    ]


def _holds(tables: "DuckDBPyConnection", name: str, place: int, form: ColumnForm) -> bool:
    value = form.sql.format(v="v")
    value = f"TRY_CAST({value} AS BIGINT)" if form.datatype == "integer" else value
    row = tables.execute(
        f"SELECT count(v) = count({value}) FROM ({known_typed(name, place, form)})"  # noqa: S608
    ).fetchone()
    return bool(row and row[0])


def typed_column(place: int, form: ColumnForm) -> tuple[str, str, str]:
    """DuckDB's type of a column, SQL for its values of that type, and SQL for their text."""
    text = f"nullif(c{place}, '')"
    trimmed = f"trim(c{place})"
    value = f"CASE WHEN lower({trimmed}) NOT IN ({_ANY_NULLS}) THEN {form.sql.format(v=trimmed)} END"
    if form.datatype == "integer":
        return "BIGINT", f"TRY_CAST({value} AS BIGINT)", text
    kind = _TYPES.get(form.datatype)
    return (kind, value, text) if kind else ("VARCHAR", text, text)

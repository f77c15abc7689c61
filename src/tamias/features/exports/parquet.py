"""Quads and attempts as Parquet tables, for DuckDB, pandas and polars. Memory does not grow with them.

DuckDB gathers the rows in a file beside the output, and writes the table when all are there.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from tamias.model.capture import CaptureRecord
from tamias.model.errors import DiskFull, TamiasError
from tamias.sinks.graphs import NoQuad, whole_lines

if TYPE_CHECKING:
    import duckdb

MEMORY = "512MB"
"""What DuckDB may take; beyond that it uses the disk."""

ROWS_AT_ONCE = 50_000

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
RDF_LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
RDF_DIR_LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString"

QUADS = {
    "subject": "VARCHAR",
    "subject_kind": "VARCHAR",
    "predicate": "VARCHAR",
    "object": "VARCHAR",
    "object_kind": "VARCHAR",
    "datatype": "VARCHAR",
    "language": "VARCHAR",
    "direction": "VARCHAR",
    "graph": "VARCHAR",
}
"""The columns of `quads.parquet`. A kind is `iri`, `blank`, `literal` or `triple`."""

CAPTURES = {
    "id": "VARCHAR",
    "crawl": "VARCHAR",
    "url": "VARCHAR",
    "final_url": "VARCHAR",
    "started_at": "TIMESTAMPTZ",
    "ended_at": "TIMESTAMPTZ",
    "outcome": "VARCHAR",
    "reason": "VARCHAR",
    "depth": "INTEGER",
    "status": "INTEGER",
    "address": "VARCHAR",
    "told_type": "VARCHAR",
    "found_type": "VARCHAR",
    "bytes": "BIGINT",
    "sha256": "VARCHAR",
    "quads": "BIGINT",
    "links": "BIGINT",
    "problems": "VARCHAR[]",
    "hops": "STRUCT(url VARCHAR, status INTEGER, address VARCHAR, location VARCHAR)[]",
    "worker": "VARCHAR",
    "agent": "VARCHAR",
}
"""The columns of `captures.parquet`."""

_LINE = re.compile(
    r"(?:<([^<>]*)>|_:(\S+)) <([^<>]*)> "
    r'(?:<([^<>]*)>|_:(\S+)|"([^"\\]*(?:\\.[^"\\]*)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^<>]*)>)?|(<<\(.*\)>>)) '
    r"<([^<>]*)> \.\n"
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_SAID = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}

Row = tuple[Any, ...]


def export_parquet(
    chunks: Iterable[bytes], captures: Iterable[CaptureRecord], folder: Path
) -> tuple[int, int]:
    """Writes `quads.parquet` and `captures.parquet`; returns how many rows each has.

    The chunks are N-Quads, cut anywhere. The files appear when both are complete.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _workshop(folder) as (work, tables):
        quads = _table(tables, work, "quads", QUADS, quad_rows(chunks))
        attempts = _table(tables, work, "captures", CAPTURES, map(capture_row, captures))
        for name in ("quads", "captures"):
            (work / f"{name}.parquet").replace(folder / f"{name}.parquet")
    return quads, attempts


def export_table(folder: Path, name: str, columns: dict[str, str], rows: Iterable[Row]) -> int:
    """Writes one table as `NAME.parquet`; returns how many rows it has. Times in rows are milliseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    with _workshop(folder) as (work, tables):
        count = _table(tables, work, name, columns, rows)
        (work / f"{name}.parquet").replace(folder / f"{name}.parquet")
    return count


def quad_rows(chunks: Iterable[bytes]) -> Iterator[Row]:
    """The columns of each quad."""
    for lines in whole_lines(chunks):
        text = lines.decode()
        place = 0
        for found in _LINE.finditer(text):
            if found.start() != place:
                break
            place = found.end()
            yield _quad_row(found)
        if place != len(text):
            raise NoQuad(f"not a quad of N-Quads: {text[place : place + 200]!r}")


def capture_row(record: CaptureRecord) -> Row:
    """The columns of an attempt."""
    return (
        record.id, record.crawl_name, record.url, record.final_url, record.started_at, record.ended_at,
        record.outcome.word, record.reason, record.depth, record.status,
        record.hops[-1].address if record.hops else None, record.declared_type, record.found_type,
        record.bytes, record.sha256, record.quads, record.links, list(record.problems),
        [
            {"url": hop.url, "status": hop.status, "address": hop.address, "location": hop.location}
            for hop in record.hops
        ],
        record.worker, record.agent,
    )  # fmt: skip


def _quad_row(found: re.Match[str]) -> Row:
    iri, blank, predicate, object_iri, object_blank, literal, tag, datatype, triple, graph = found.groups()
    subject = (blank, "blank") if iri is None else (iri, "iri")
    if object_iri is not None:
        return *subject, predicate, object_iri, "iri", None, None, None, graph
    if literal is not None:
        return *subject, predicate, _plain(literal), "literal", *_typed(tag, datatype), graph
    if object_blank is not None:
        return *subject, predicate, object_blank, "blank", None, None, None, graph
    return *subject, predicate, triple, "triple", None, None, None, graph


def _typed(tag: str | None, datatype: str | None) -> tuple[str, str | None, str | None]:
    """Datatype, language and direction of a literal."""
    if tag is None:
        return datatype or XSD_STRING, None, None
    language, _, direction = tag.partition("--")
    return RDF_DIR_LANG_STRING if direction else RDF_LANG_STRING, language, direction or None


def _plain(literal: str) -> str:
    return _ESCAPE.sub(_unescaped, literal) if "\\" in literal else literal


def _unescaped(found: re.Match[str]) -> str:
    short, long, letter = found.groups()
    return _SAID.get(letter, letter) if letter else chr(int(short or long, 16))


@contextmanager
def _workshop(folder: Path) -> "Iterator[tuple[Path, duckdb.DuckDBPyConnection]]":
    """A folder that goes away again, and a DuckDB in it."""
    import duckdb

    work = Path(mkdtemp(prefix=".parquet-", dir=folder))
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY,
        "threads": 2,
        "temp_directory": str(work / "spill"),
        "pandas_analyze_sample": ROWS_AT_ONCE,  # else a late number is judged by the first thousand
    }
    try:
        with closing(duckdb.connect(work / "rows.duckdb", config=settings)) as tables:
            yield work, tables
    except duckdb.Error as error:
        full = "No space left" in str(error)
        raise (DiskFull if full else TamiasError)(f"cannot write Parquet to {folder}: {error}") from error
    except OSError as error:
        raise TamiasError(f"cannot write Parquet to {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _table(
    tables: "duckdb.DuckDBPyConnection", work: Path, name: str, columns: dict[str, str], rows: Iterable[Row]
) -> int:
    declared = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
    tables.execute(f"CREATE TABLE {name} ({declared})")
    taken = ", ".join(
        f'to_timestamp("{column}" / 1000.0)' if kind == "TIMESTAMPTZ" else f'"{column}"'
        for column, kind in columns.items()
    )
    count, rest = 0, iter(rows)
    while batch := list(islice(rest, ROWS_AT_ONCE)):
        tables.register("batch", _arrays(batch, list(columns)))
        tables.execute(f"INSERT INTO {name} SELECT {taken} FROM batch")  # noqa: S608 - our own names
        tables.unregister("batch")
        count += len(batch)
    target = str(work / f"{name}.parquet").replace("'", "''")
    tables.execute(f"COPY {name} TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
    tables.execute(f"DROP TABLE {name}")
    return count


def _arrays(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, Any]:
    """The rows by columns, as DuckDB takes them."""
    import numpy as np

    arrays: dict[str, Any] = {}
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        arrays[column] = array = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):  # at once, numpy would take lists apart
            array[place] = value
    return arrays

"""The rows of all versions as one table, compared with what plain lists make of the versions' bytes."""

import csv
import io
from collections import Counter
from datetime import UTC

import duckdb
import pytest

import tamias as library
from tamias.archive.reader.content import NoTable

TABLES = [
    b"id,name\n1,one\n2,two\n2,two\n",
    b"id,name\n1,one\n2,two\n3,three\n",
    b"id,name\n2,two\n3,changed\n",
    b"id,name,more\n2,two,x\n1,one,\n",
]
URL = "http://data.example/rows.csv"


def expected_history(times):
    """By plain lists: each row of each version, merged where it stays."""
    open_rows, closed = Counter(), []
    since = {}
    for number, table in enumerate(TABLES):
        rows = Counter(
            (row["id"], row["name"], row.get("more") or None)
            for row in csv.DictReader(io.StringIO(table.decode()))
        )
        for row in set(open_rows) | set(rows):
            starts = since.setdefault(row, [])
            while len(starts) > rows[row]:
                closed.append((*row, times[starts.pop()], times[number]))
            while len(starts) < rows[row]:
                starts.append(number)
        open_rows = rows
    closed += [(*row, times[start], None) for row, starts in since.items() for start in starts]
    return Counter(closed)


def test_the_rows_of_all_versions_are_one_table(filled):
    filled.put(URL, *TABLES)
    with library.Archive(filled.data) as archive:
        times = [each.captured_at for each in archive.versions(URL)]
        rows_held = archive.history(URL)
        assert rows_held.columns == ["id", "name", "more", "valid_from", "valid_to"]
        rows = duckdb.sql("SELECT id::VARCHAR, name, more, valid_from, valid_to FROM rows_held").fetchall()
    found = Counter((*row[:3], *(at and at.replace(tzinfo=UTC) for at in row[3:])) for row in rows)
    assert found == expected_history(times)


def test_a_history_with_a_version_that_is_no_table_is_told(filled):
    filled.put("http://data.example/page", b"<html>", media_type="text/html")
    with library.Archive(filled.data) as archive, pytest.raises(NoTable, match="version 1 is text/html"):
        archive.history("http://data.example/page")

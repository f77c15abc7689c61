"""Watched tables as Parquet, read back by DuckDB and compared with the bytes of the versions."""

import csv
import io
import json
import os
from datetime import UTC, datetime, timedelta

import duckdb
import pytest

from tests import commands

from .blobs import s3_server

START = datetime(2026, 1, 1, tzinfo=UTC)
A = [b"id,name\n1,one\n2,two\n", b"id,name\n1,one\n3,three\n", b"id,name\n1,one\n3,drei\n"]
B = [b"x;y\n1,5;2026-01-02\n"]


@pytest.fixture
def tables(filled):
    """Two tables and something else."""
    names = [
        filled.put("http://data.example/a.csv", *A, title="A"),
        filled.put("http://data.example/b.csv", *B),
    ]
    filled.put("http://data.example/page.html", b"<p>x", media_type="text/html")
    return names


def export(tamias, place, *words):
    done = tamias("export", "--format", "parquet", "--tables", "--json", "-o", str(place), *words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["written"], found["unchanged"], found["removed"], found["failed"]


def rows(file, columns="*"):
    return duckdb.sql(f"SELECT {columns} FROM read_parquet('{file}')").fetchall()


def rows_of(body):
    return [(int(row["id"]), row["name"]) for row in csv.DictReader(io.StringIO(body.decode()))]


def files(folder):
    return sorted(each.name for each in folder.iterdir())


def test_the_newest_version_of_each_table_is_a_file_with_its_rows(tamias, tables, tmp_path):
    assert export(tamias, tmp_path / "out") == (2, 0, 0, [])
    assert files(tmp_path / "out") == sorted([*(f"{name}.parquet" for name in tables), "tables.json"])
    assert rows(tmp_path / "out" / f"{tables[0]}.parquet") == rows_of(A[2])
    assert rows(tmp_path / "out" / f"{tables[0]}.parquet") == rows_of(
        tamias("get", "http://data.example/a.csv").stdout.encode()
    )
    assert [(x, str(y)) for x, y in rows(tmp_path / "out" / f"{tables[1]}.parquet")] == [(1.5, "2026-01-02")]
    index = {each["file"]: each for each in json.loads((tmp_path / "out" / "tables.json").read_text())}
    first = index[f"{tables[0]}.parquet"]
    assert (first["url"], first["title"], first["versions"], first["rows"]) == (
        "http://data.example/a.csv",
        "A",
        [3],
        2,
    )


def test_a_history_has_the_times_of_each_row_with_their_zone(tamias, tables, tmp_path):
    assert export(tamias, tmp_path, "--history")[0] == 2
    file = tmp_path / f"{tables[0]}.history.parquet"
    types = dict(rows_of_schema(file))
    assert {types["valid_from"], types["valid_to"]} == {"TIMESTAMP WITH TIME ZONE"}
    found = rows(file, "id, name, epoch_ms(valid_from), epoch_ms(valid_to)")
    day = [int((START + timedelta(days=n)).timestamp() * 1000) for n in range(3)]
    assert sorted(found) == [
        (1, "one", day[0], None), (2, "two", day[0], day[1]), (3, "drei", day[2], None),
        (3, "three", day[1], day[2]),
    ]  # fmt: skip
    for number, body in enumerate(A):
        then = [
            row[:2] for row in found if row[2] <= day[number] and (row[3] is None or row[3] > day[number])
        ]
        assert sorted(then) == sorted(rows_of(body))


def rows_of_schema(file):
    return [row[:2] for row in duckdb.sql(f"DESCRIBE SELECT * FROM '{file}'").fetchall()]


def test_a_second_export_writes_what_changed_and_removes_what_was_forgotten(tamias, filled, tables, tmp_path):
    export(tamias, tmp_path)
    before = (tmp_path / f"{tables[0]}.parquet").stat().st_mtime_ns
    assert export(tamias, tmp_path) == (0, 2, 0, [])
    assert (tmp_path / f"{tables[0]}.parquet").stat().st_mtime_ns == before
    assert tamias("forget", "http://data.example/a.csv", "--version", "3", "--reason", "x").returncode == 0
    assert export(tamias, tmp_path) == (1, 1, 0, [])
    assert rows(tmp_path / f"{tables[0]}.parquet") == rows_of(A[1])
    assert tamias("forget", "http://data.example/a.csv", "--reason", "x").returncode == 0
    (tmp_path / "mine.parquet").write_bytes(b"mine")
    assert export(tamias, tmp_path) == (0, 1, 1, [])
    assert files(tmp_path) == sorted([f"{tables[1]}.parquet", "mine.parquet", "tables.json"])
    assert "a.csv" not in (tmp_path / "tables.json").read_text()


@pytest.mark.parametrize(
    "fault", ["table-copied:1", "table-copied:2", "table-exported:1", "table-exported:2"]
)
def test_an_export_that_was_killed_is_completed_by_the_next(tamias, filled, tables, tmp_path, fault):
    export(tamias, tmp_path)
    filled.put("http://data.example/a.csv", b"id,name\n7,seven\n")
    (tmp_path / f"{tables[1]}.parquet").unlink()
    killed = commands.run(
        ["export", "--format", "parquet", "--tables", "-o", str(tmp_path), "--data", str(filled.data)],
        env={**os.environ, "TAMIAS_FAULT": fault}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert killed.returncode != 0
    assert tamias("forget", "http://data.example/b.csv", "--reason", "x").returncode == 0
    written, unchanged, _, _ = export(tamias, tmp_path)
    assert written + unchanged == 1
    assert files(tmp_path) == sorted([f"{tables[0]}.parquet", "tables.json"])
    assert rows(tmp_path / f"{tables[0]}.parquet") == [(7, "seven")]


def test_what_is_closed_to_the_public_is_left_out_and_taken_away(tamias, tables, tmp_path):
    export(tamias, tmp_path / "out")
    (tmp_path / "tamias.toml").write_text('[archive]\nclosed = ["http://data.example/b.csv=block"]\n')
    assert export(tamias, tmp_path / "out") == (0, 1, 1, [])
    assert files(tmp_path / "out") == sorted([f"{tables[0]}.parquet", "tables.json"])
    assert export(tamias, tmp_path / "out", "--include-reserved") == (1, 1, 0, [])


def test_one_table_can_be_named_and_nothing_else_is_touched(tamias, tables, tmp_path):
    export(tamias, tmp_path)
    assert export(tamias, tmp_path, "--url", "http://data.example/b.csv") == (0, 1, 0, [])
    assert len(files(tmp_path)) == 3


def test_what_cannot_be_read_as_a_table_is_named_with_the_reason(tamias, filled, tmp_path):
    filled.put("http://data.example/broken.json", b'{"a": ', media_type="application/json")
    *counts, failed = export(tamias, tmp_path)
    assert (counts, len(failed)) == ([0, 0, 0], 1)
    assert failed[0].startswith("http://data.example/broken.json: application/json cannot be read as a table")


def test_tables_go_to_a_store_and_come_back(filled, tables, tmp_path):
    with s3_server.serving() as store:
        env = {**os.environ, **s3_server.environment(f"http://127.0.0.1:{store.server_port}")}
        words = ["export", "--format", "parquet", "--tables", "--json", "-o", "s3://bucket/tables"]

        def run():
            done = commands.run(
                [*words, "--data", str(filled.data)], env=env, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)

        assert (run()["written"], run()["unchanged"]) == (2, 2)
        (tmp_path / "back.parquet").write_bytes(store.objects[f"tables/{tables[0]}.parquet"])
    assert rows(tmp_path / "back.parquet") == rows_of(A[2])


@pytest.mark.parametrize(
    ("words", "named"),
    [(["-o", "s3://bucket"], "AWS_ACCESS_KEY_ID"), ([], "-o"), (["-o", "{file}/x"], "{file}"),
     (["-o", "x", "--text"], "--tables"), (["-o", "x", "--since", "2026"], "--tables")],
)  # fmt: skip
def test_what_cannot_be_written_is_said_in_words(tamias, tables, tmp_path, words, named):
    file = tmp_path / "file"
    file.write_text("in the way")
    done = tamias("export", "--format", "parquet", "--tables", *(each.format(file=file) for each in words))
    assert (done.returncode != 0, named.format(file=file) in done.stderr, "Traceback" in done.stderr) == (
        True,
        True,
        False,
    )

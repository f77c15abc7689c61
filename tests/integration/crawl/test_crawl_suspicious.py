"""Responses that are not the data, though status and type say so: stored, listed, accepted if they stay."""

import gzip
import io
import json
import zipfile
from functools import partial

import duckdb
import pytest

from tests.workbook_files import xlsx

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def answer(handler, body, media_type):
    handler.send_response(200)
    handler.send_header("Content-Type", media_type)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def visited(tamias, site):
    """Serves bodies at their paths and visits all of them."""
    tamias.env["TAMIAS_SCHEDULE__RULE"] = "fixed:1"

    def visit(pages, media_type):
        for path, body in pages.items():
            site.pages[path] = partial(answer, body=body, media_type=media_type[path.rpartition(".")[2]])
        urls = [site.url(path) for path in pages]
        done = tamias.run("crawl", "--recrawl", *urls, "--allow-private", "--delay", "0", "--workers", "1")
        assert done.returncode in (0, 1), done.stderr

    return visit


def test_soft_errors_are_kept_apart_and_accepted_when_they_stay(tamias, site, visited):
    types = {
        "csv": "text/csv", "json": "application/json", "ttl": "text/turtle",
        "ndjson": "application/x-ndjson",
    }  # fmt: skip
    rows = "".join(["id,value\n", *(f"{n},{n}\n" for n in range(100))]).encode()
    good = {
        "/d.ttl": "".join(
            f"<http://e.example/{n}> <http://e.example/p> {n} .\n" for n in range(100)
        ).encode(),
        "/e.ndjson": b"\n".join(b'{"id": %d}' % n for n in range(100)),
        "/f.json": json.dumps({"rows": [{"no": n} for n in range(100)]}).encode(),
        "/a.csv": rows,
        "/b.json": json.dumps([{"id": n} for n in range(100)]).encode(),
        "/c.csv": rows + b"x,1\n",
    }
    bad = {
        "/d.ttl": b"Error: no connection to the triple store\n",
        "/e.ndjson": b'{"id": 1}\n{"id": 2}\n',
        "/f.json": b"null",
        "/a.csv": b"Error: database connection failed\n",
        "/b.json": b'{"error": "down"}',
        "/c.csv": b"id,value\n1,1\n",
    }
    assert tamias.run("add", *map(site.url, good)).returncode == 0
    visited(good, types)
    visited(bad, types)

    def listed(path, *words):
        return json.loads(tamias.run("versions", site.url(path), "--json", *words).stdout)

    reasons = {path: [each["suspicious"] for each in listed(path, "--suspicious")] for path in bad}
    assert reasons == {
        "/d.ttl": ["an error message: Error: no connection to the triple store"],
        "/e.ndjson": ["2 lines, where the version before has 100"],
        "/f.json": ["1 items, where the version before has 100"],
        "/a.csv": ["an error message: Error: database connection failed"],
        "/b.json": ['an error message: {"error": "down"}'],
        "/c.csv": ["1 rows, where the version before has 101"],
    }
    assert {path: len(listed(path)) for path in bad} == dict.fromkeys(bad, 1)
    trouble = tamias.run("list", "--trouble").stdout
    assert trouble.count("suspicious: ") == 6
    tamias.env["TAMIAS_ARCHIVE__SUSPICIOUS_DAYS"] = "0"
    visited({path: body + b"\n" for path, body in bad.items()}, types)
    assert {path: [each["suspicious"] for each in listed(path)] for path in bad} == {
        path: [None, *told] for path, told in reasons.items()
    }
    assert tamias.run("list", "--trouble").stdout.count("suspicious: ") == 0


def parquet(folder):
    path = folder / "n.parquet"
    duckdb.sql(f"COPY (SELECT range AS id FROM range(3)) TO '{path}'")
    return path.read_bytes()


def zipped(table):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        file.writestr("t.csv", table)
    return target.getvalue()


def test_equal_tables_at_many_addresses_are_versions_and_equal_messages_are_not(
    tamias, site, visited, tmp_path
):
    table = b"id,value\n1,2\n2,3\n"
    features = b'{"type": "FeatureCollection", "features": [{"type": "Feature"}, {"type": "Feature"}]}'
    data = {
        "csv": ("text/csv", table),
        "tsv": ("text/tab-separated-values", table.replace(b",", b"\t")),
        "xlsx": (XLSX, xlsx({"Sheet": [["id", "name"], ["1", "one"], ["2", "two"]]})),
        "parquet": ("application/vnd.apache.parquet", parquet(tmp_path)),
        "gz": ("application/gzip", gzip.compress(table, mtime=0)),
        "zip": ("application/zip", zipped(table)),
        "json": ("application/json", b'[{"id": 1}, {"id": 2}]'),
        "geojson": ("application/geo+json", features),
        "ndjson": ("application/x-ndjson", b'{"id": 1}\n{"id": 2}\n'),
        "ttl": ("text/turtle", b"<http://e.example/a> <http://e.example/p> 1 .\n"),
    }
    messages = {
        "txt": ("text/plain", b"This server is being repaired\n"),
        "line.csv": ("text/csv", b"This server,is being repaired\n"),
        "error.json": ("application/json", b'{"error": "down", "code": 5}'),
        "status.json": ("application/json", b'{"message": "try again later"}'),
    }
    bodies = {**data, **messages}
    types = {ending.rpartition(".")[2]: media_type for ending, (media_type, _) in bodies.items()}
    pages = {f"/{number}.{ending}": body for ending, (_, body) in bodies.items() for number in range(6)}
    assert tamias.run("add", *map(site.url, pages)).returncode == 0
    visited(pages, types)
    versions = dict.fromkeys(bodies, 0)
    for each in json.loads(tamias.run("list", "--json").stdout):
        versions[each["url"].rpartition("/")[2].partition(".")[2]] += each["versions"]
    assert versions == {**dict.fromkeys(data, 6), **dict.fromkeys(messages, 4)}

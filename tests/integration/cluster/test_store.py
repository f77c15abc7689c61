"""Captures in a real S3 store, MinIO: there for other readers, and for machines that have nothing else."""

import json
import subprocess
from datetime import UTC, datetime
from io import BytesIO

import duckdb
import pytest
from servers import minio, postgres
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tamias.database.months import first_id

from .conftest import FULL

STORE = "s3://tamias/archive"
OLD_PAGES = 40
UPLOAD = ("-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "-T")
VISITS = (
    "PREFIX prov: <http://www.w3.org/ns/prov#> SELECT ?s ?p ?o { GRAPH <urn:tamias:metadata> "
    "{ ?s a prov:Activity ; ?p ?o } }"
)


@pytest.fixture
def store(tmp_path, run_or_skip):
    """A MinIO with an empty bucket."""
    if not FULL:
        pytest.skip("MinIO is built and run by `make nightly`")
    run_or_skip("MinIO", minio.build)
    with minio.start(tmp_path / "minio") as server:
        yield server


@pytest.fixture
def database(tmp_path, run_or_skip):
    """A PostgreSQL that several machines reach."""
    programs = run_or_skip("PostgreSQL 18", lambda: postgres.programs(18))
    with postgres.start(tmp_path / "postgres", programs) as server:
        server.make_owner()
        server.make_database("tamias")
        yield server


@pytest.fixture
def machine(tamias_at, store, database):
    """`machine(name)` has a folder of its own, and reaches the database and the store."""

    def make(name):
        made = tamias_at(name)
        made.env |= {"TAMIAS_DB": database.url("tamias"), "TAMIAS_SEEDS__PROBE": "false", **store.environment}
        return made

    return make


def answer(tamias, *words):
    done = tamias.run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def old_pages(path):
    """A WARC file of January 2024, as another program writes it."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for number in range(OLD_PAGES):
            headers = StatusAndHeaders("200 OK", [("Content-Type", "text/turtle")], protocol="HTTP/1.1")
            body = f'<> <urn:x:says> "page {number}" .'.encode()
            writer.write_record(
                writer.create_warc_record(
                    f"http://old.example/{number}", "response", payload=BytesIO(body), http_headers=headers,
                    warc_headers_dict={"WARC-Date": f"2024-01-{1 + number % 28:02}T10:00:00Z"},
                )
            )  # fmt: skip
    return path


def divide(database):
    """Makes January 2024 a month of its own, as a service that ran then has done."""
    february = first_id(datetime(2024, 2, 1, tzinfo=UTC))
    [(end,)] = database.execute(
        "SELECT substring(pg_get_expr(relpartbound, oid) FROM 'TO \\(''([0-9a-f-]+)''\\)') FROM pg_class"
        " WHERE relname = 'capture_first'", "tamias"
    )  # fmt: skip
    for statement in (
        "CREATE TEMPORARY TABLE others AS SELECT * FROM capture WHERE capture >= '{february}'",
        "DELETE FROM capture WHERE capture >= '{february}'",
        "ALTER TABLE capture DETACH PARTITION capture_first",
        "ALTER TABLE capture ATTACH PARTITION capture_first FOR VALUES FROM (MINVALUE) TO ('{february}')",
        "CREATE TABLE capture_2024_02 PARTITION OF capture FOR VALUES FROM ('{february}') TO ('{end}')",
        "ALTER TABLE capture_2024_02 OWNER TO tamias",
        "INSERT INTO capture SELECT * FROM others",
    ):
        yield statement.format(february=february, end=end)


def told(tamias):
    """What the doors that read captures say, where the order means nothing as a sorted list."""
    return {
        "history": sorted(answer(tamias, "export", "--history").splitlines()),
        "metadata": sorted(answer(tamias, "export", "--graph", "metadata").splitlines()),
        "visits": sorted(answer(tamias, "query", "--format", "csv", VISITS).splitlines()),
        "stats": json.loads(answer(tamias, "stats", "--json"))["corpus"],
    }


def ask_store(store, key, *words):
    """The object, by curl, which signs requests itself."""
    address = f"{store.environment['AWS_ENDPOINT_URL']}/tamias/{key}"
    sign = ["--aws-sigv4", "aws:amz:us-east-1:s3", "--user", f"{minio.USER}:{minio.PASSWORD}"]
    done = subprocess.run(["curl", "-sf", *sign, *words, address], check=True, capture_output=True)
    return done.stdout


@pytest.mark.filterwarnings(
    "ignore:.*SpooledTemporaryFile:pytest.PytestUnraisableExceptionWarning"
)  # warcio's own
def test_old_months_of_captures_go_to_minio_and_every_machine_reads_them(
    machine, store, database, site, tmp_path, table
):
    one, other = machine("one"), machine("other")
    site.pages |= {"/a.ttl": b"<> <urn:x:p> <b.ttl> .", "/b.ttl": b'<> <urn:x:says> "b" .'}
    assert one.crawl("--store", STORE, site.url("/a.ttl")).returncode == 0
    answer(one, "import", str(old_pages(tmp_path / "old.warc.gz")))
    database.execute("SET search_path = tamias; " + "; ".join(divide(database)), "tamias")
    before = told(one)
    assert sum("old.example" in line for line in before["history"]) == OLD_PAGES

    assert f"{OLD_PAGES} moved to files" in answer(one, "repack", "--captures-months", "6")
    assert database.execute("SELECT count(*) FROM tamias.capture_first", "tamias") == [(0,)]
    [(name,)] = database.execute("SELECT name FROM tamias.stored_file WHERE kind = 'captures'", "tamias")
    # Others read the object without us.
    key = f"archive/captures/{name}"
    path = tmp_path / "object.parquet"
    path.write_bytes(ask_store(store, key))
    urls = {url for (url,) in duckdb.sql(f"SELECT url FROM '{path}'").fetchall()}
    assert urls == {f"http://old.example/{number}" for number in range(OLD_PAGES)}
    # A machine that has never seen the captures tells the same.
    assert told(other) == before
    assert "captures" not in answer(other, "repack", "--captures-months", "6")
    answer(other, "check")

    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    ask_store(store, key, *UPLOAD, str(damaged(tmp_path, content)))
    found = machine("third").run("check")
    assert found.returncode == 1
    assert name in found.stdout
    ask_store(store, key, *UPLOAD, str(path))
    answer(other, "forget", "http://old.example/3")
    assert database.execute("SELECT count(*) FROM tamias.stored_file WHERE kind = 'captures'", "tamias") == [
        (0,)
    ]
    with pytest.raises(subprocess.CalledProcessError):
        ask_store(store, key)
    history = answer(machine("fourth"), "export", "--history")
    assert "old.example/2> <urn:x:says>" in history
    assert "old.example/3> <urn:x:says>" not in history
    table.append(
        f"{'captures in MinIO':<28}{OLD_PAGES} of January 2024 in {name}, read by DuckDB and 3 machines"
    )


def damaged(folder, content):
    (folder / "damaged").write_bytes(content)
    return folder / "damaged"

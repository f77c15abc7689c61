"""Captures of old months stand in Parquet files, and every door still finds them."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from uuid import UUID

import duckdb
import httpx
import pytest

from tamias.archive.moved_captures import move_captures
from tamias.database.connect import Database
from tamias.database.months import first_id
from tests.messages import unsaid

from ..conftest import Site, Tamias
from ..serve.conftest import Running

FAR = UUID(int=(1 << 128) - 1)
THEN = "SELECT * { ?s ?p ?o }"
ALL = "SELECT * FROM tamias.capture ORDER BY bucket, capture"
OLD = """
INSERT INTO capture (bucket, capture, qid, crawl, uid, started_at, ended_at, outcome, depth, url, reason,
                     worker, agent, sha256, hops, final_url, told_type, status)
SELECT 0, ('018cc251-f400-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, n, 1, -n, 1704067200000 + n,
       1704067201000 + n, 1 + n % 6, 0, 'http://old.example/' || n,
       CASE n % 4 WHEN 0 THEN '' WHEN 1 THEN E'two\\r\\nlines, "quoted"' WHEN 2 THEN '\\N'
                  ELSE E'\\\\x41\\t\\u00e9' END,
       'w', 'a', CASE WHEN n % 2 = 0 THEN sha256(n::text::bytea) END,
       CASE WHEN n % 3 = 0 THEN jsonb_build_array(jsonb_build_object('url', 'x"\\', 'status', 200)) END,
       CASE WHEN n % 5 = 0 THEN '' END, NULL, NULL
FROM generate_series(1, 5000) AS n"""
MOVE = """
import sys
from contextlib import closing
from pathlib import Path
from uuid import UUID
from tamias.archive.moved_captures import move_captures
from tamias.database.connect import Database
with closing(Database(Path(sys.argv[1]))) as database, closing(database.session()) as session:
    print(sum(each.captures for each in move_captures(session, UUID(int=(1 << 128) - 1))))
"""


@pytest.fixture(scope="module")
def crawled(made_once, tmp_path_factory):
    """A site that was visited twice: pages, a redirect, an error, a new version."""
    tamias, site = Tamias(tmp_path_factory.mktemp("crawled") / "data"), Site("127.0.0.1")
    shutil.copytree(made_once, tamias.data)
    tamias.hold_server()
    for number in range(1, 9):
        links = " ".join(f"<> <#next> </{other}> ." for other in (2 * number, 2 * number + 1, "gone"))
        site.pages[f"/{number}"] = f'<> <#is> "{number}" . {links}'.encode()
    words = ("--sink", "archive", "--sink", "warc", site.url("/1"))
    assert tamias.crawl(*words).returncode == 0
    site.pages["/3"] = b'<> <#is> "other" .'
    assert tamias.crawl("--recrawl", *words).returncode == 0
    yield tamias, site
    tamias.end()
    site.close()


@pytest.fixture
def tamias(crawled, tamias_at):
    crawled[0].end()
    made = tamias_at("data")
    shutil.copytree(crawled[0].data, made.data, ignore=shutil.ignore_patterns("socket", "*.sock*"))
    made.hold_server()
    return made


def move(tamias):
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        moved = list(move_captures(session, FAR))
        [(left,)] = session.fetch_all(b"SELECT count(*) FROM capture WHERE signals IS NULL")
    assert left == 0
    return moved


def answer(tamias, *words):
    done = tamias.run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def doors(tamias, site):
    """What each of them tells, where the order means nothing as a sorted list."""
    visits = (
        "PREFIX prov: <http://www.w3.org/ns/prov#> SELECT ?s ?p ?o { GRAPH <urn:tamias:metadata> "
        "{ ?s a prov:Activity ; ?p ?o } }"
    )
    told = {
        "history": answer(tamias, "export", "--history").splitlines(),
        "metadata": answer(tamias, "export", "--graph", "metadata").splitlines(),
        "now": answer(tamias, "export").splitlines(),
        "visits": answer(tamias, "query", "--format", "csv", visits).splitlines(),
        "then": answer(tamias, "query", "--at", "2100-01-01T00:00:00Z", "--format", "csv", THEN).splitlines(),
        "stats": json.loads(answer(tamias, "stats", "--json"))["corpus"],
        "check": json.loads(answer(tamias, "check", "--json")),
        "again": tamias.crawl(site.url("/1")).returncode,
    }
    told["check"].pop("seconds", None)
    return {name: sorted(each) if isinstance(each, list) else each for name, each in told.items()}


def pages(tamias, site):
    service = Running(tamias.data, "--no-crawl")
    asked = {"url": site.url("/3")}
    places = [
        ("/document", asked), ("/documents", {}), ("/documents", {"host": "127.0.0.1"}), ("/cdx", asked),
        (f"/timemap/json/{site.url('/3')}", {}),
    ]  # fmt: skip
    try:
        with httpx.Client(base_url=service.address, headers={"Accept": "application/json"}) as client:
            found = [client.get(path, params=words).raise_for_status().text for path, words in places]
    finally:
        service.stop()
    return [each.replace(service.address, "") for each in found]


def test_every_door_tells_the_same_when_the_captures_stand_in_files(tamias, crawled):
    site = crawled[1]
    before, shown = doors(tamias, site), pages(tamias, site)
    assert len(before["metadata"]) > 100
    [moved] = move(tamias)
    [path] = (tamias.data / "captures").iterdir()
    # Another reader finds the rows, too.
    assert duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall() == [(moved.captures,)]
    after, shown_now = doors(tamias, site), pages(tamias, site)
    assert after == before
    assert shown_now == shown
    for page in shown[:3]:
        assert site.url("/3") in page


def test_what_is_forgotten_goes_out_of_the_files_as_well(tamias, crawled):
    site = crawled[1]
    url = site.url("/3").encode()
    move(tamias)
    answer(tamias, "forget", site.url("/3"))
    assert not list((tamias.data / "captures").iterdir())  # they are rows again, until the next repack
    history = answer(tamias, "export", "--history")
    assert f"<{url.decode()}> <{url.decode()}#is>" not in history
    assert f"<{site.url('/2')}> <{site.url('/2')}#is>" in history


@pytest.fixture
def old(tamias_at, made_once):
    """Captures of January 2024, with texts that are easily mistaken for others."""
    made = tamias_at("old")
    shutil.copytree(made_once, made.data)
    month = first_id(datetime(2024, 2, 1, tzinfo=UTC))
    with closing(Database(made.data)) as database, closing(database.session()) as session:
        rows = session.transact(lambda cursor: _divide(cursor, month))
    made.rows = rows
    return made


def _divide(cursor, month):
    [(end,)] = cursor.execute(
        "SELECT substring(pg_get_expr(relpartbound, oid) FROM 'TO \\(''([0-9a-f-]+)''\\)') FROM pg_class"
        " WHERE relname = 'capture_first'"
    ).fetchall()
    cursor.execute("ALTER TABLE capture DETACH PARTITION capture_first")
    cursor.execute(
        f"ALTER TABLE capture ATTACH PARTITION capture_first FOR VALUES FROM (MINVALUE) TO ('{month}')"
    )
    cursor.execute(
        f"CREATE TABLE capture_2024_02 PARTITION OF capture FOR VALUES FROM ('{month}') TO ('{end}')"
    )
    cursor.execute(OLD)
    return cursor.execute(ALL).fetchall()


def everything(data):
    """All captures, of the table and of the files."""
    from tamias.archive.moved_captures import read_captures
    from tamias.database.sql import SqlStatement

    with closing(Database(data)) as database, closing(database.session()) as session:
        statement = SqlStatement("all", "", b"SELECT * FROM capture ORDER BY bucket, capture")
        stored = session.fetch_all(b"SELECT count(*) FROM capture")[0][0]
        return list(read_captures(session, statement, {})), stored


def test_the_command_moves_months_that_are_older_than_asked(old):
    assert len(old.rows) == 5000
    sums = json.loads(answer(old, "stats", "--json"))["corpus"]
    assert sum(each["attempts"] for each in sums["outcomes"]) == 5000
    assert "captures" not in answer(old, "repack", "--captures-months", "120")
    assert not unsaid(answer(old, "repack", "--captures-months", "6"), "5,000")
    found, stored = everything(old.data)
    assert stored == 0
    assert found == old.rows
    assert json.loads(answer(old, "stats", "--json"))["corpus"] == sums
    assert "captures" not in answer(old, "repack", "--captures-months", "6")
    assert everything(old.data)[0] == old.rows


@pytest.mark.parametrize("place", ["captures-written", "captures-switched"])
def test_whoever_is_killed_leaves_rows_or_a_file_and_the_next_run_goes_on(old, place):
    killed = subprocess.run(
        [sys.executable, "-c", MOVE, str(old.data)], check=False, capture_output=True,
        env={**os.environ, "TAMIAS_FAULT": place},
    )  # fmt: skip
    assert killed.returncode == -9, killed.stderr
    found, stored = everything(old.data)
    assert found == old.rows
    assert stored == 5000
    assert "5,000 moved" in answer(old, "repack", "--captures-months", "6")
    assert len(list((old.data / "captures").iterdir())) == 1
    assert everything(old.data)[0] == old.rows


def test_a_month_that_changed_while_it_was_written_stays(old, monkeypatch):
    with (
        closing(Database(old.data)) as database,
        closing(database.session()) as session,
        closing(database.session()) as other,
    ):

        def change(place):
            if place == "captures-written":
                other.execute(b"UPDATE capture SET reason = 'changed' WHERE uid = -17")

        monkeypatch.setattr("tamias.archive.moved_captures.reached", change)
        assert list(move_captures(session, FAR)) == []
    found, stored = everything(old.data)
    assert stored == 5000
    assert [row for row in found if "changed" in row]


def test_a_backup_has_the_files_and_check_finds_one_that_is_damaged(old, tamias_at, tmp_path):
    assert "5,000 moved" in answer(old, "repack", "--captures-months", "6")
    answer(old, "backup", str(tmp_path / "backup"))
    copy = tamias_at("copy")
    answer(copy, "restore", str(tmp_path / "backup"))
    assert everything(copy.data)[0] == old.rows
    answer(copy, "check")
    [path] = (copy.data / "captures").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    done = copy.run("check")
    assert done.returncode == 1
    assert path.name in done.stdout

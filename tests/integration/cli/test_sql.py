"""`tamias sql` reads the database of an archive, and writes nothing."""

import json
import shutil

import pytest

from tests import commands


@pytest.fixture
def crawled(tamias, site):
    site.pages |= {"/a.ttl": b"<> <#to> </b.ttl> .", "/b.ttl": b"<> <#is> 1 ."}
    assert tamias.crawl(site.url("/a.ttl"), "--depth", "1", "--no-robots").returncode == 0
    return tamias


def test_rows_are_printed_as_a_table_csv_and_json(crawled, site):
    query = "SELECT depth, count(*) AS urls, NULL AS none FROM url GROUP BY depth ORDER BY depth"
    printed = {form: crawled.run("sql", query, "--format", form).stdout for form in ("table", "csv", "json")}
    assert printed["csv"] == "depth,urls,none\n0,1,\n1,1,\n"
    assert [json.loads(line) for line in printed["json"].splitlines()] == [
        {"depth": 0, "urls": 1, "none": None}, {"depth": 1, "urls": 1, "none": None},
    ]  # fmt: skip
    assert printed["table"].split() == ["depth", "urls", "none", "0", "1", "1", "1"]
    assert crawled.run("sql", "SELECT 1 WHERE false").stdout == ""


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("DELETE FROM url", "read-only"),
        ("UPDATE crawl SET name = 'mine'", "read-only"),
        ("CREATE TABLE mine (a int)", "permission denied|read-only"),
        ("SELECT 1; DELETE FROM url", "multiple commands"),
        ("SELECT * FROM token", "permission denied"),
        ("DO $$ BEGIN EXECUTE 'SET ROLE NONE'; EXECUTE 'DELETE FROM url'; END $$", "read-only"),
        ("SELEC 1", "syntax error"),
    ],
)
def test_nothing_is_changed_and_no_secret_read(crawled, statement, why):
    done = crawled.run("sql", statement)
    assert (done.returncode, done.stdout) == (2, "")
    assert any(each in done.stderr for each in why.split("|")), done.stderr
    assert crawled.run("sql", "SELECT count(*) AS n FROM url", "--format", "csv").stdout == "n\n2\n"


@pytest.mark.skipif(not shutil.which("psql"), reason="psql is not installed")
def test_psql_opens_the_database_and_cannot_write(crawled):
    typed = "SELECT count(*) FROM url;\nSET default_transaction_read_only = off;\nDELETE FROM url;\n"
    done = commands.run(
        ["sql", "--data", crawled.data], input=typed, env={**crawled.env, "PSQLRC": "/dev/null"},
        capture_output=True, text=True, new=True,
    )  # fmt: skip
    assert (done.returncode, "2" in done.stdout.split()) == (0, True), done.stderr
    assert "permission denied for table url" in done.stderr


def test_without_psql_it_says_what_to_do(crawled):
    done = commands.run(
        ["sql", "--data", crawled.data], env={**crawled.env, "PATH": "/nowhere"},
        capture_output=True, text=True, new=True,
    )  # fmt: skip
    assert (done.returncode, "psql is not installed" in done.stderr) == (1, True)
    assert "tamias sql --data" in done.stderr


def test_where_there_is_no_archive_none_is_made(tmp_path):
    done = commands.run(["sql", "SELECT 1", "--data", tmp_path / "none"], capture_output=True, text=True)
    assert (done.returncode, (tmp_path / "none").exists()) == (10, False)

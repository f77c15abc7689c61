"""What a command says of itself is so: the audit log, who may call, which files it opens, what is damaged."""

import json
import tempfile
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tamias.database.connect import Database

from ..import_captures.test_import import ONE, URL, Written

# warcio leaves the files open that it writes bodies to.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

FAILING = {
    "add": ("add", "ftp://127.0.0.1:0.5/no-url"),
    "add of a forgotten one": ("add", "http://gone.example/"),
    "remove": ("remove", "http://never.watched.example/"),
    "import": ("import", "damaged.warc"),
    "forget": ("forget", "http://never.seen.example/", "--version", "7"),
    "tag": ("tag", "http://never.seen.example/", "+a"),
    "crawls": ("crawls", "pause", "no-such-crawl"),
    "token": ("token", "withdraw", "nobody"),
    "snapshot": ("snapshot", "remove", "no-such-snapshot"),
}


def audit(tamias):
    """All entries, the latest first."""
    file = tamias.data / "log" / "audit.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()][::-1] if file.exists() else []


def test_the_audit_log_never_says_ok_of_a_command_that_failed(tamias, tmp_path):
    (tamias.data.parent / "damaged.warc").write_bytes(b"WARC/1.0\r\nno record\r\n")
    assert tamias.run("forget", "http://gone.example/").returncode == 0
    assert audit(tamias)[0]["outcome"] == "ok"
    wrong = []
    for name, words in FAILING.items():
        before = len(audit(tamias))
        done = tamias.run(*words)
        assert done.returncode != 0, (name, done.stdout)
        new = audit(tamias)[: len(audit(tamias)) - before]
        wrong += [(name, each["outcome"]) for each in new if not each["outcome"].startswith("failed")]
    assert wrong == []


def test_a_frontier_that_others_can_reach_wants_a_token(tamias):
    tamias.env.pop("TAMIAS_TOKEN", None)
    done = tamias.run("frontier", "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert "TAMIAS_TOKEN" in done.stderr


def test_a_cdx_that_names_an_absolute_path_opens_nothing(tamias, tmp_path):
    index = tmp_path / "index"
    index.mkdir()
    with tempfile.NamedTemporaryFile(dir="/tmp", suffix=".warc.gz") as outside:
        beside = index / "a.warc.gz"
        file = Written(beside)
        file.add(URL, "2020-01-01T00:00:00Z", ONE)
        Path(outside.name).write_bytes(file.close().read_bytes())
        names = [outside.name, str(beside), "../index/a.warc.gz", "/a.warc.gz"]
        places = [json.dumps({"filename": name, "offset": "0"}) for name in names]
        lines = [f"example,data)/a 20200101000000 {place}\n" for place in places]
        (index / "index.cdxj").write_text("".join(lines))
        found = json.loads(tamias.run("import", str(index / "index.cdxj"), "--json").stdout)
    assert (found["files"], found["captures"], found["problems"]) == (0, 0, len(names))


def test_a_database_that_is_not_utf8_is_refused_at_once(administrator, tamias_at):
    with closing(psycopg.connect(make_conninfo(**administrator), autocommit=True)) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    tamias = tamias_at("latin")
    url = "postgresql:///?" + urlencode({**administrator, "dbname": "latin"})
    done = tamias.run("stats", "--db", url)
    assert done.returncode != 0
    assert "LATIN1" in done.stderr
    assert "UTF8" in done.stderr


def test_check_names_a_data_folder_that_is_not_that_of_the_database(tamias, tamias_at, site):
    site.pages["/a"] = b"<> <#p> 1 ."
    assert tamias.crawl("--sink", "archive", site.url("/a")).returncode == 0
    with closing(Database(tamias.data)) as database:
        url = "postgresql:///?" + urlencode(conninfo_to_dict(database.embedded.address()))
        other = tamias_at("other")
        other.data.mkdir()
        done = other.run("check", "--db", url)
        assert done.returncode == 2, done.stdout
        assert "--data" in done.stderr
        assert "BAD" not in done.stdout
        assert tamias.run("check", "--db", url).returncode == 0

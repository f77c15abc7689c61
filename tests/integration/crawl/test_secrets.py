"""Secrets stay where they belong: not in logs, process lists, metadata or exports; no file is for others."""

import gzip
import os
import shutil
import stat
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest
from loopback_ftp import DummyAuthorizer
from loopback_ftp import Site as FtpSite

from tamias.database.connect import Database
from tests.integration.conftest import Tamias

pytestmark = pytest.mark.processes

USER, PASSWORD = "mole", "hush-hush-42"
TRIPLE = b"<http://example.org/s> <http://example.org/p> <a.nt> .\n"
WRITTEN = ["nquads", "warc", "wacz", "bagit", "ro-crate", "parquet"]


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    """An FTP server that lets in only who knows the password."""
    folder = tmp_path_factory.mktemp("vault")
    (folder / "a.ttl").write_bytes(TRIPLE)
    (folder / "dumps").mkdir()
    (folder / "dumps" / "b.ttl").write_bytes(TRIPLE.replace(b"/s>", b"/t>"))
    accounts = DummyAuthorizer()
    accounts.add_user(USER, PASSWORD, str(folder))
    site = FtpSite(folder, tmp_path_factory.mktemp("spool"), authorizer=accounts)
    yield site
    site.close()


@pytest.fixture(scope="module")
def crawled(vault, made_once, tmp_path_factory):
    """A crawl with the password; what it said, the process list meanwhile."""
    tamias = Tamias(tmp_path_factory.mktemp("crawled") / "data")
    tamias.new = True
    shutil.copytree(made_once, tamias.data)
    tamias.hold_server()
    seen: set[bytes] = set()
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(tamias, seen, done))
    watch.start()
    try:
        assert tamias.run("add", vault.url("/a.ttl", user=f"{USER}:{PASSWORD}@")).returncode == 0
        words = ("-v", "-v", "--sink", "nquads", "--sink", "warc")
        tamias.said = tamias.crawl(*words, vault.url("/", user=f"{USER}:{PASSWORD}@"))
        assert tamias.crawl("--recrawl").returncode == 0
    finally:
        done.set()
        watch.join()
    tamias.command_lines = seen
    yield tamias
    tamias.end()


def _watch(tamias, seen, done):
    while not done.wait(0.05):
        for pid in tamias.workers():
            try:
                seen.add(
                    Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
                )
            except OSError:
                continue


def test_a_crawl_with_a_password_says_it_nowhere(crawled, tmp_path):
    assert "<http://example.org/t>" in crawled.run("export").stdout, crawled.said.stderr
    assert crawled.command_lines
    told = {"its words": crawled.said.stdout + crawled.said.stderr}
    told["process lists of workers"] = "".join(each.decode("latin-1") for each in crawled.command_lines)
    for graph in ("metadata", "all"):
        told[f"graph {graph}"] = crawled.run("export", "--graph", graph, "--history").stdout
    for verb in ("status", "stats", "crawls"):
        told[verb] = crawled.run(verb, "--json").stdout
    logs = [path for path in crawled.data.rglob("*") if path.is_file() and "pg" not in path.parts]
    told |= {str(path): path.read_bytes().decode("latin-1") for path in logs}
    assert [place for place, words in told.items() if PASSWORD in words] == []


def test_no_export_holds_the_password(crawled, tmp_path):
    """But the one for another URLFrontier, which is to fetch the same addresses."""
    found = []
    for form in WRITTEN:
        out = tmp_path / form
        done = crawled.run("export", "--format", form, "-o", str(out))
        assert done.returncode == 0, done.stderr
        files = [out] if out.is_file() else [path for path in out.rglob("*") if path.is_file()]
        assert files, form
        found += [path for path in files if PASSWORD.encode() in unpacked(path.read_bytes())]
    assert found == []


def unpacked(content):
    """With what is in gzip members of it."""
    return content + (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else b"")


def test_nobody_else_can_list_what_is_kept(crawled):
    crawled.end()
    of_others = stat.S_IMODE(crawled.data.stat().st_mode) & 0o077
    assert of_others == (0o011 if os.geteuid() == 0 else 0), "root's may be passed through by its database"
    modes = dict(modes_below(crawled.data))
    assert {"pg", "rdf", "warc", "log", "blobs"} <= {path.name for path in modes}
    assert [str(path) for path, mode in modes.items() if mode & 0o077] == []


def modes_below(folder):
    """Without what the stopping database removes meanwhile."""
    for path in folder.rglob("*"):
        if not path.is_symlink():
            with suppress(FileNotFoundError):
                yield path, path.stat().st_mode


def test_what_an_earlier_version_left_open_is_closed(crawled):
    (crawled.data / "rdf").chmod(0o755)
    assert crawled.run("stats").returncode == 0
    assert stat.S_IMODE((crawled.data / "rdf").stat().st_mode) == 0o700


def test_the_database_listens_on_a_socket_only(tamias):
    with closing(Database(tamias.data)) as database, closing(database.session()):
        assert listening(tamias) == set()


def listening(tamias):
    """Inodes of TCP sockets that listen and belong to the database."""
    rows = [
        row.split()
        for table in ("tcp", "tcp6")
        for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    open_ones = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}
    held = set()
    for pid in tamias.in_use():
        if b"postgres" in Path(f"/proc/{pid}/cmdline").read_bytes():
            held |= {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
    assert held, "the database was not seen"
    return held & open_ones


def test_a_resource_has_one_name_whatever_the_password(crawled, vault):
    before = crawled.run("versions", vault.url("/a.ttl", user=f"{USER}@"))
    assert before.returncode == 0, before.stderr
    again = crawled.run("add", vault.url("/a.ttl", user=f"{USER}:another@"))
    assert again.returncode == 0, again.stderr

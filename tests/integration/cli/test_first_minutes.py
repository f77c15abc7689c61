"""The first commands of five people, in a terminal: what they type, what they read, what they type next."""

import os
import pty
import re
import select
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.conftest import PATIENCE
from tests.messages import unsaid

TURTLE = b'<> <http://www.w3.org/2000/01/rdf-schema#label> "A" ; <http://x.example/next> <b.ttl> .'


class Terminal:
    """Commands as somebody types them, in a folder of their own, on a terminal of 100 columns."""

    def __init__(self, folder):
        self.folder = folder
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
        self.env = {**clean, "COLUMNS": "100", "TERM": "xterm", "TAMIAS_SEEDS__PROBE": "false"}

    def type(self, *words):
        """The exit code and the text that the terminal shows."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "tamias", *words], cwd=self.folder, env=self.env,
            stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True,
        )  # fmt: skip
        os.close(theirs)
        shown, deadline = b"", time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    piece = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                if not piece:
                    break
                shown += piece
        os.close(ours)
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r", "\n")
        return process.wait(PATIENCE), text


@pytest.fixture
def terminal(tmp_path):
    return Terminal(tmp_path)


@pytest.fixture
def web(site, reply):
    site.pages["/a.ttl"] = reply(200, TURTLE, content_type="text/turtle")
    site.pages["/data.csv"] = reply(200, b"id,price\n1,2\n", content_type="text/csv")
    return site


def test_a_refused_seed_leaves_nothing_behind(terminal):
    """Keeper and workers load their modules while the seed is checked: both end, and neither makes a file."""
    code, said = terminal.type("crawl", "https://data.example/a", "--exclude", "data", "--data", "nowhere")
    assert code == 2
    assert not unsaid(said, "data.example/a")
    assert list(terminal.folder.iterdir()) == []
    assert processes_of(terminal.folder) == []


def processes_of(folder):
    """The command lines of processes that name a folder, or are in it."""
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (process / "cmdline").read_bytes()
            if os.fsencode(folder) in line or (process / "cwd").readlink() == folder:
                lines.append(line)
    return lines


def test_the_keeper_of_the_database_loads_while_seeds_are_read(terminal):
    seeds = terminal.folder / "seeds.txt"
    os.mkfifo(seeds)
    words = ["crawl", "--seeds", "seeds.txt", "--exclude", "data", "--data", "nowhere"]
    with subprocess.Popen(
        [sys.executable, "-m", "tamias", *words], cwd=terminal.folder, env=terminal.env,
        stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        with seeds.open("wb") as file:  # as soon as it reads
            loading = processes_of(terminal.folder)
            file.write(b"https://data.example/a\n")
        assert b"the seed https://data.example/a is excluded" in process.stderr.read()
    keeper = b"\0tamias.features.embedded.keeper\0" + os.fsencode(terminal.folder / "nowhere")
    assert any(keeper in line for line in loading), loading
    assert list(terminal.folder.iterdir()) == [seeds]
    assert processes_of(terminal.folder) == []


def test_what_was_typed_is_checked_without_the_library_of_the_database():
    """It takes a third of a second to load on a slow machine, and the database starts meanwhile."""
    checks = (
        "import sys; from tamias.settings import Settings; "
        "from tamias.crawl.verbs.crawl_run import SkippedSeeds, check_seeds; "
        "from tamias.crawl.verbs.seed_check import named_seeds; "
        "check_seeds(Settings(), named_seeds(('https://data.example/a',), ()), SkippedSeeds()); "
        "print(sorted({'psycopg', 'pycurl', 'asyncio'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", checks], capture_output=True, check=True, text=True)
    assert said.stdout.strip() == "[]"


def test_a_researcher_crawls_and_asks(terminal, web):
    code, said = terminal.type("crawl", "data.example/a.ttl")
    assert (code, "does not begin with a scheme such as https://" in said) == (2, True)
    code, said = terminal.type("crawl", web.url("/a.ttl"))
    assert code == 1
    assert said.startswith("starting the database")
    assert "1 refused: loopback address" in said
    assert "use --allow-private" in said
    assert "tamias export" not in said  # nothing was found that could be
    code, said = terminal.type("crawl", web.url("/a.ttl"), "--allow-private", "--scope", "host")
    assert (code, "reopened 1 URL" in said, "2 quads" in said) == (0, True, True)
    assert "tamias export --data tamias-data" in said
    code, said = terminal.type("crawl", web.url("/a.ttl"), "--allow-private", "--max-time", "5m")
    assert (code, "running service visited" in said) == (0, True), said
    code, said = terminal.type("versions", web.url("/a.ttl"))
    assert (code, "was crawled, not watched" in said, "'tamias diff'" in said) == (1, True, True), said
    code, said = terminal.type("query", "SELECT ?s WHERE { GRAPH ?g { ?s rdfs:label ?l }")
    assert (code, not unsaid(said, "SPARQL", "1")) == (2, True)
    code, said = terminal.type("query", "SELECT ?l WHERE { GRAPH ?g { ?s rdfs:label ?l } }")
    assert (code, '"A"' in said or "A" in said.split()) == (0, True)


def test_a_portal_operator_misspells_and_watches(terminal, web):
    code, said = terminal.type("ad", web.url("/data.csv"))
    assert (code, "Did you mean 'add'?" in said) == (2, True)
    code, said = terminal.type("add", web.url("/data.csv"), "--every", "daily")
    assert (code, "write 90m, 12h, 1d or 2w" in said) == (2, True)
    code, said = terminal.type("add", web.url("/data.csv"), "--every", "1d")
    assert code == 0
    code, said = terminal.type("list")
    assert (code, web.url("/data.csv") in said, "1d" in said) == (0, True, True)


def test_an_archivist_looks_for_versions(terminal, web):
    code, said = terminal.type("versions", web.url("/data.csv"))
    assert (code, "'tamias crawl' or 'tamias add' creates it" in said) == (10, True)
    terminal.type("add", web.url("/data.csv"))
    code, said = terminal.type("get", web.url("/data.csv"))
    assert (code, not unsaid(said)) == (1, True)
    assert terminal.type("crawl", "--recrawl", "--allow-private")[0] == 0
    code, said = terminal.type("get", web.url("/data.csv"))
    assert (code, said.split()) == (0, ["id,price", "1,2"])
    code, said = terminal.type("diff", web.url("/data.csv"))
    assert (code, not unsaid(said, part=2)) == (1, True)


def test_a_data_engineer_reads_without_a_database(terminal, web):
    code, said = terminal.type("read", "missing.ttl")
    assert (code, "No such file" in said) == (1, True)
    (terminal.folder / "a.ttl").write_bytes(TURTLE)
    code, said = terminal.type("read", "a.ttl", "--base", "http://a.example/")
    assert (code, "<http://a.example/> <http://x.example/next> <http://a.example/b.ttl>" in said) == (0, True)
    assert not (terminal.folder / "tamias-data").exists()


def test_a_crawler_engineer_sees_what_would_be_done_and_why(terminal, web):
    code, said = terminal.type("crawl", web.url("/a.ttl"), "--deph", "1")
    assert (code, "--depth" in said) == (2, True)
    code, said = terminal.type("crawl", web.url("/a.ttl"), "--dry-run")
    assert (code, "--allow-private" in said) == (0, True)
    assert web.log == []
    code, said = terminal.type(
        "crawl", web.url("/a.ttl"), "--allow-private", "--scope", "host", "-v", "--log", "json"
    )
    assert (code, '"logger":"tamias.visits"' in said.replace('": "', '":"')) == (0, True)
    assert terminal.type("stats")[0] == 0
    code, said = terminal.type("status", "--once")
    assert code == 0


def test_a_stranger_makes_mistakes_and_reads_what_to_type_instead(terminal, web):
    (terminal.folder / "local.ttl").write_bytes(TURTLE)
    said = {
        ("crawl",): (2, "'tamias crawl https://example.org/data.ttl'"),
        ("crawl", "local.ttl"): (2, "'tamias read local.ttl'"),
        ("add", "local.ttl"): (2, "'tamias add --file local.ttl'"),
        ("crawl", "ckan:data.example"): (2, "write ckan:https://data.example/"),
        ("crawl", web.url("/a.ttl"), "--warc"): (2, "--sink warc"),
        ("crawl", web.url("/a.ttl"), "--depth", "two"): (2, "'two' is not a valid whole number"),
        ("crawl", web.url("/a.ttl"), "--max-time", "5x"): (2, "write 300 (seconds), 5m, 2h or 1d"),
        ("crawl", web.url("/a.ttl"), "--sink", "parquet"): (
            4,
            "'parquet'",
        ),
        ("add", web.url("/a.ttl"), "--every", "often"): (2, "'often'"),
        ("add", web.url("/a.ttl")): (0, "1 watched"),
        ("crawl", "--recrawl", "--allow-private", "-q"): (0, ""),
        ("diff", web.url("/a.ttl")): (1, "only one"),
        ("get", web.url("/a.ttl"), "--version", "9"): (1, "no version 9"),
        ("serve", "--port", web.url("/").rpartition(":")[2].strip("/")): (
            2,
            "--port",
        ),
    }
    for words, (code, sentence) in said.items():
        found, text = terminal.type(*words)
        assert (found, sentence in " ".join(text.split())) == (code, True), (words, text)


def test_a_run_that_reached_nothing_says_so_in_plain_words(terminal):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}/x.ttl"
    words = (nobody, "--allow-private", "--max-wait", "0", "--depth", "0")
    code, text = terminal.type("crawl", *words)
    said = " ".join(text.split())
    assert (code, "1 URL is left" in said, ": none" in said) == (5, True, False), text
    assert re.search(r"0 URLs visited in [0-9.]+ s, 1 attempt failed and will be repeated; 0 quads", said), (
        text
    )


def test_a_run_that_only_waits_says_for_whom(terminal):
    terminal.env["TAMIAS_CRAWL__RETRY_WAIT"] = "12"  # time to say it, also on a busy machine
    code, text = terminal.type("crawl", "http://nowhere.invalid/x.ttl", "--max-wait", "20")
    waited = r"waiting for http://nowhere\.invalid: name does not resolve: nowhere\.invalid, next try in \d"
    assert (code, re.search(waited, " ".join(text.split())) is not None) == (1, True), text

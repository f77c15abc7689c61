"""The archive on a site that changes: versions, states, 304s, every byte at every time, exact differences."""

import hashlib
import io
import json
import shutil
import time
import zipfile
from contextlib import closing, suppress
from datetime import UTC, datetime

import pytest

from tamias.archive.reader.library import ArchiveReader
from tamias.archive.versions.resources import page_of_suspects
from tests.integration.conftest import Site, Tamias

ROUNDS = 6
LARGE = 150_000_000
CAP = 100_000_000
STATES = ("/a.csv", "/a.json", "/a.ttl", "/a.zip", "/still.csv", "/gone.csv", "/error.csv")


class Page:
    """One file in its versions; a number instead of a body is a status."""

    def __init__(self, media_type, versions):
        self.media_type = media_type
        self.versions = versions
        self.now = 0
        self.answers = []

    def __call__(self, handler):
        body = self.versions[min(self.now, len(self.versions) - 1)]
        status, body = (body, b"") if isinstance(body, int) else (200, body)
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if status == 200 and handler.headers.get("If-None-Match") == tag:
            status, body = 304, b""
        self.answers.append(status)
        handler.send_response(status)
        handler.send_header("Content-Type", self.media_type)
        handler.send_header("ETag", tag)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


class Endless:
    """A file too large for the archive, written while somebody reads; `sent` is the most of one answer."""

    def __init__(self):
        self.sent = 0

    def __call__(self, handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/csv")
        handler.send_header("Connection", "close")
        handler.end_headers()
        piece = b"1234567,abcdefg\n" * 4096
        sent = 0
        with suppress(OSError):
            while sent < LARGE:
                sent += handler.wfile.write(piece[: LARGE - sent])
                self.sent = max(self.sent, sent)


def table(version):
    """Each version changes three rows of the one before, adds two and takes one away."""
    rows = dict.fromkeys(range(version, 100 + 2 * version), 0)
    for step in range(1, version + 1):
        rows |= dict.fromkeys(range(50 + 3 * step, 53 + 3 * step), step)
    return "".join(["id,value\n", *(f"{number},{value}\n" for number, value in rows.items())]).encode()


def document(version):
    return json.dumps({"version": version, "list": list(range(50)), "kept": {"a": [1, 2]}}).encode()


def statements(version):
    """Each version has one statement more than the one before, and another one in place of an old."""
    said = [f"<#s{number}> <#p> {number} ." for number in range(version, 40 + 2 * version)]
    return "\n".join(["<> <#made> <#here> .", *said]).encode()


def packed(version):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.csv", (2001 + version, 1, 1, 0, 0, 0)), "a,b\n1,2\n")
    return file.getvalue()


def pages():
    html = b"<!DOCTYPE html><html><head><title>Error</title></head><body>Please log in</body></html>"
    return {
        "/a.csv": Page("text/csv", [table(n) for n in range(ROUNDS)]),
        "/a.json": Page("application/json", [document(n) for n in range(ROUNDS)]),
        "/a.ttl": Page("text/turtle", [statements(n) for n in range(ROUNDS)]),
        "/a.zip": Page("application/zip", [packed(n) for n in range(ROUNDS)]),
        "/still.csv": Page("text/csv", [b"id,value\n1,still\n"]),
        "/gone.csv": Page("text/csv", [b"id\n1\n", b"id\n2\n", 404]),
        "/error.csv": Page("text/csv", [b"id,x\n1,2\n", b"id,x\n2,3\n", html]),
    }


class Shown:
    """What the site had, what the server saw, when, and what the archive made of it."""

    def __init__(self, archive, site, pages, endless, times):
        self.archive = archive
        self.site = site
        self.pages = pages
        self.endless = endless
        self.times = times

    def numbers(self, path):
        return [version.number for version in self.archive.versions(self.site.url(path))]

    def at(self, path, time):
        return self.archive.get(self.site.url(path), at=time).bytes()

    def steps(self, path):
        """The differences from each version to the next."""
        url = self.site.url(path)
        return [self.archive.diff(url, str(n), str(n + 1)) for n in range(1, ROUNDS)]


@pytest.fixture(scope="module")
def shown(made_once, tmp_path_factory):
    """Six visits to everything, the last one also to the large file."""
    data = tmp_path_factory.mktemp("show") / "data"
    shutil.copytree(made_once, data)
    tamias, found, endless = Tamias(data), pages(), Endless()
    tamias.hold_server()
    with closing(Site("127.0.0.1")) as site:
        site.pages |= {**found, "/large.csv": endless}
        times = visit(tamias, site, found)
        with closing(ArchiveReader(data)) as archive:
            yield Shown(archive, site, found, endless, times)
    tamias.end()


def visit(tamias, site, found):
    """Returns when each round was over."""
    tamias.env |= {"TAMIAS_SCHEDULE__RULE": "fixed:1", "TAMIAS_SCHEDULE__RETRY_WAIT": "1",
                   "TAMIAS_SCHEDULE__GONE_WAIT": "1"}  # fmt: skip
    add = tamias.run("add", *(site.url(path) for path in STATES))
    assert add.returncode == 0, add.stderr
    times = []
    for number in range(ROUNDS):
        for page in found.values():
            page.now = number
        if number == ROUNDS - 1:
            tamias.run("add", site.url("/large.csv"))
        done = tamias.run("crawl", "--recrawl", "--allow-private", "--delay", "0", "--workers", "1")
        assert done.returncode == 0, done.stderr
        times.append(datetime.now(UTC).isoformat())
        time.sleep(1.1 if number < ROUNDS - 1 else 0)
    return times


@pytest.mark.parametrize("path", ["/a.csv", "/a.json", "/a.ttl", "/a.zip"])
def test_every_version_is_kept_and_comes_back_exactly_at_its_time(shown, path):
    assert shown.numbers(path) == list(range(1, ROUNDS + 1))
    assert [shown.at(path, time) for time in shown.times] == shown.pages[path].versions


def test_what_does_not_change_costs_a_304_and_is_one_version(shown):
    assert shown.numbers("/still.csv") == [1]
    first, *later = shown.pages["/still.csv"].answers
    assert (first, set(later), len(later) >= ROUNDS - 1) == (200, {304}, True)


def test_every_visit_that_told_something_is_remembered(shown):
    visited = shown.archive.session.transact(
        lambda cursor: cursor.execute("SELECT visited_at FROM resource WHERE versions > 0").fetchall()
    )
    last = datetime.fromisoformat(shown.times[-1]).timestamp()
    assert all(abs(at / 1000 - last) < 600 for (at,) in visited)


def test_what_is_not_there_any_more_is_gone_and_keeps_its_versions(shown):
    assert shown.archive.resource(shown.site.url("/gone.csv")).state == "gone"
    assert shown.at("/gone.csv", shown.times[-1]) == b"id\n2\n"
    assert shown.numbers("/gone.csv") == [1, 2]


def test_an_error_page_is_a_suspect_and_the_data_stays_current(shown):
    resource = shown.archive.resource(shown.site.url("/error.csv"))
    assert (resource.state, shown.numbers("/error.csv")) == ("active", [1, 2])
    assert shown.at("/error.csv", shown.times[-1]) == b"id,x\n2,3\n"
    assert "text/html" in page_of_suspects(shown.archive.session, resource.id)[-1].reason


def test_the_large_file_is_stopped_at_the_limit_as_it_streams(shown):
    assert shown.numbers("/large.csv") == []
    assert CAP * 0.9 < shown.endless.sent < CAP * 1.2


def test_rows_are_told_exactly(shown):
    for found in shown.steps("/a.csv"):
        assert (found.kind, found.added, found.removed, found.changed) == ("rows", 2, 1, 3)


def test_values_of_json_are_told_exactly(shown):
    for number, found in enumerate(shown.steps("/a.json")):
        assert (found.added, found.removed, found.changed) == (0, 0, 1)
        assert [(change.where, change.old, change.new) for change in found.changes] == [
            ("$.version", number, number + 1)
        ]


def test_statements_are_told_exactly(shown):
    for found in shown.steps("/a.ttl"):
        assert (found.kind, found.added, found.removed) == ("triples", 2, 1)


def test_new_times_in_a_zip_are_noise_and_no_change(shown):
    versions = shown.archive.versions(shown.site.url("/a.zip"))
    packed = "packed again: times, order or compression of the files"
    assert [version.noise for version in versions] == [None] + [packed] * (ROUNDS - 1)
    for found in shown.steps("/a.zip"):
        assert (found.added, found.removed, found.changed) == (0, 0, 0)

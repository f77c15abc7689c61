"""Resources under watch: every version kept exactly, no lie among them, visited again when due."""

import hashlib
import os
import random
import time
from contextlib import closing

import pytest

from tamias.archive.blobs import BlobReader, LocalPacks
from tamias.archive.versions.resources import page_of_suspects, read_versions
from tamias.database.connect import Database
from tamias.features.dcat.joins import sketched_columns
from tamias.features.dcat.profiles import read_profile
from tests.all_resources import all_resources


class Changing:
    """A page with versions, validators and a count of what was answered."""

    def __init__(self, versions, media_type, validators=True):
        self.versions = versions
        self.media_type = media_type
        self.now = 0
        self.answers = []
        self.validators = validators

    def __call__(self, handler):
        body = self.versions[min(self.now, len(self.versions) - 1)]
        status = body if isinstance(body, int) else 200
        body = b"" if isinstance(body, int) else body
        tag = f'"{hashlib.sha256(body).hexdigest()[:12]}"'
        if self.validators and status == 200 and handler.headers.get("If-None-Match") == tag:
            status, body = 304, b""
        self.answers.append(status)
        handler.send_response(status)
        handler.send_header("Content-Type", self.media_type)
        if self.validators:
            handler.send_header("ETag", tag)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


@pytest.fixture
def watch(tamias):
    """Visits what is under watch, as often as told; all are due at first, and again after two seconds."""
    tamias.env |= {"TAMIAS_SCHEDULE__RULE": "fixed:2", "TAMIAS_SCHEDULE__RETRY_WAIT": "2",
                   "TAMIAS_SCHEDULE__GONE_WAIT": "2"}  # fmt: skip

    def visit(*urls):
        done = tamias.run("crawl", "--recrawl", *urls, "--allow-private", "--delay", "0", "--workers", "1")
        assert done.returncode == 0, done.stderr
        return done

    return visit


class Shown:
    """What the archive holds."""

    def __init__(self, data):
        self.database = Database(data, create=False)
        self.session = self.database.session()
        self.resources = {each.url: each for each in all_resources(self.session)}
        self.blobs = BlobReader(LocalPacks(data / "blobs"), self.session)

    def versions(self, url):
        identifier = self.resources[url].id
        return read_versions(self.session, [identifier])[identifier]

    def bodies(self, url):
        return [self.blobs.read(version.sha256) for version in self.versions(url)]

    def suspects(self, url):
        return page_of_suspects(self.session, self.resources[url].id)[::-1]

    def close(self):
        self.session.close()
        self.database.close()


@pytest.fixture
def shown(tamias):
    return lambda: closing(Shown(tamias.data))


def rows(version):
    return "".join(["id,value\n", *(f"{n},{n * version}\n" for n in range(1000))]).encode()


def test_an_error_is_never_a_version_and_what_is_gone_may_come_back(tamias, site, watch, shown):
    page = Changing([rows(1), 404, 500, rows(2)], "text/csv")
    site.pages["/a.csv"] = page
    assert tamias.run("add", site.url("/a.csv")).returncode == 0
    states = []
    for version in range(4):
        page.now = version
        watch(site.url("/a.csv"))  # one that is named is visited now
        with shown() as archive:
            states.append(archive.resources[site.url("/a.csv")].state)
    with shown() as archive:
        assert archive.bodies(site.url("/a.csv")) == [rows(1), rows(2)]
    assert (states[0], states[1], states[3]) == ("active", "gone", "active")


def test_one_body_under_many_addresses_is_not_believed(tamias, site, watch, shown):
    for number in range(8):
        site.pages[f"/{number}"] = Changing([b"error 17: please try again later"], "text/plain")
    assert tamias.run("add", *(site.url(f"/{number}") for number in range(8))).returncode == 0
    watch()
    with shown() as archive:
        believed = {url for url in archive.resources if archive.versions(url)}
        assert len(believed) == 4
        # A slow run visits a URL again whose response was suspicious.
        assert {url for url in archive.resources if archive.suspects(url)} == set(
            archive.resources
        ) - believed


def test_a_body_above_the_limit_is_stopped_as_it_streams(tamias, site, watch, shown):
    tamias.env["TAMIAS_FETCH__MAX_BYTES"] = "100000"
    site.pages["/large.csv"] = Changing([b"x" * 1_000_000], "text/csv")
    assert tamias.run("add", site.url("/large.csv")).returncode == 0
    watch()
    # A slow run visits a URL again whose visit failed.
    for attempt in tamias.attempts()[site.url("/large.csv")]:
        assert (attempt["outcome"], "100000" in attempt["reason"]) == ("failed", True), attempt
    with shown() as archive:
        assert archive.bodies(site.url("/large.csv")) == []


def test_all_that_a_crawl_finds_is_kept_with_the_archive_sink(tamias, site, shown):
    site.pages |= {"/a": b"<> <#next> </b> .\n", "/b": b"<> <#p> <#o> .\n"}
    done = tamias.crawl(site.url("/a"), "--sink", "archive")
    assert done.returncode == 0, done.stderr
    with shown() as archive:
        assert {url: archive.bodies(url) for url in archive.resources} == {
            site.url(path): [site.pages[path]] for path in ("/a", "/b")
        }


@pytest.mark.nightly
def test_killed_again_and_again_it_keeps_every_version_once_and_all_bytes(tamias, site, kill, shown):
    tamias.env["TAMIAS_SCHEDULE__RULE"] = "fixed:3600"
    for number in range(60):
        site.pages[f"/{number}.csv"] = Changing([rows(number)], "text/csv")
    assert tamias.run("add", *map(site.url, site.pages)).returncode == 0
    chance = random.Random(7)
    usual = ("--recrawl", "--allow-private", "--delay", "0.02", "--workers", "1")
    for _ in range(6 if os.environ.get("TAMIAS_NIGHTLY") else 2):
        crawl = tamias.start("crawl", *usual)
        tamias.wait_until(lambda crawl=crawl: tamias.workers() or crawl.poll() is not None)
        time.sleep(chance.uniform(0.3, 1.5))
        for pid in (crawl.pid, *tamias.workers()):
            kill(pid)
        crawl.wait()
    done = tamias.run("crawl", *usual)
    assert done.returncode == 0, done.stderr
    with shown() as archive:
        assert {url: archive.bodies(url) for url in archive.resources} == {
            site.url(path): page.versions for path, page in site.pages.items()
        }
    checked = tamias.run("check")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_what_a_version_holds_is_looked_into_and_offered_for_joins(tamias, site, watch, shown):
    names = "".join(f"{n},{name}\n" for n, name in enumerate("abcdefghijklmnopqrst"))
    site.pages["/a.csv"] = Changing([f"id,letter\n{names}".encode()], "text/csv")
    assert tamias.run("add", site.url("/a.csv")).returncode == 0
    watch()
    with shown() as archive:
        (version,) = archive.versions(site.url("/a.csv"))
        profile = read_profile(archive.session, version.sha256)
        columns = list(sketched_columns(archive.session))
    (table,) = profile.tables
    assert (table.rows, [column.name for column in table.columns]) == (20, ["id", "letter"])
    assert [each.column.name for each in columns] == ["id", "letter"]


def test_what_is_archived_already_is_read_for_its_links_by_a_crawl_that_has_not_read_it(tamias, site):
    """The site was crawled into the archive before, by a crawl of another name."""
    site.pages |= {
        "/robots.txt": b"",
        "/": b"<> <#next> </a> .",
        "/a": b"<> <#next> </b> .",
        "/b": b'<> <#name> "b" .',
    }
    places = ["/", "/a", "/b"]
    for number, name in enumerate(("first", "second"), 1):
        done = tamias.crawl(site.url("/"), "--sink", "archive", "--crawl", name)
        assert done.returncode == 0, done.stderr
        assert [site.asked(place) for place in places] == [number] * 3
        assert tamias.quads() == {
            f"<{site.url('/')}> <{site.url('/')}#next> <{site.url('/a')}> <{site.url('/')}> .",
            f"<{site.url('/a')}> <{site.url('/a')}#next> <{site.url('/b')}> <{site.url('/a')}> .",
            f'<{site.url("/b")}> <{site.url("/b")}#name> "b" <{site.url("/b")}> .',
        }
    with closing(Shown(tamias.data)) as shown:
        assert {url: len(shown.versions(url)) for url in shown.resources} == {
            site.url(place): 1 for place in places
        }

"""What a crawl brought is forgotten: versions, statements, WARC records; others keep every byte."""

import hashlib
import json
import os
import random
import shutil
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator

from tamias.archive.reader.library import ArchiveReader
from tamias.database.connect import Database

from ..conftest import Site, Tamias
from .bytes_search import find_bytes

KILLS = 50 if os.environ.get("TAMIAS_INTEROP") else 5
PATIENCE = 120
MARK = "Zaphod Beeblebrox of Magrathea, whom nobody else on this site ever mentions by name"
MARK_BYTES = MARK.encode()
PLACES = [
    "forget-noted", "forget-rows", "recoded-synced", "recoded-switched", "forget-taken-out", "forget-erased",
    "overwrite-copied", "forget-quads", "forget-warc", "forget-catalogue", "forget-database",
]  # fmt: skip


def document(number, version=1, marked=False):
    """A graph of some size, most of which stays from version to version."""
    chance = random.Random(number)
    lines = [f'<#row{row}> <#value> "{chance.random()}" .' for row in range(200)]
    lines[version % 200] = f'<#row{version}> <#value> "version {version} of {number}" .'
    if marked:
        lines.insert(100, f'<#person> <#name> "{MARK}" .')
    links = " ".join(f"<> <#next> </{n}> ." for n in (2 * number, 2 * number + 1) if n <= 12)
    return "\n".join([*lines, links]).encode()


class Crawled(NamedTuple):
    """A data directory that was crawled, the site it came from, and every version by URL and number."""

    data: Path
    site: Site
    bodies: dict[str, dict[int, bytes]]


@pytest.fixture(scope="module")
def crawled(made_once, tmp_path_factory):
    """`/3` has five versions, of which the third has the mark; the others have one."""
    tamias, site = Tamias(tmp_path_factory.mktemp("crawled") / "data"), Site("127.0.0.1")
    shutil.copytree(made_once, tamias.data)
    site.pages |= {f"/{number}": document(number) for number in range(1, 13)}
    crawl(tamias, site.url("/1"))
    for version in (2, 3, 4, 5):
        site.pages["/3"] = document(3, version, marked=version == 3)
        crawl(tamias, "--recrawl", site.url("/3"))
    tamias.run("query", "SELECT * { ?s ?p ?o } LIMIT 1")  # so that there is a catalogue
    bodies = read_all(tamias.data)
    tamias.end()
    marked = [MARK_BYTES in body for body in bodies[site.url("/3")].values()]
    assert marked == [False, False, True, False, False]
    yield Crawled(tamias.data, site, bodies)
    site.close()


@pytest.fixture
def tamias(tamias_at, crawled):
    """The same in a copy."""
    made = tamias_at("data")
    shutil.copytree(crawled.data, made.data, ignore=shutil.ignore_patterns("socket", "*.sock*"))
    return made


@pytest.fixture
def site(crawled):
    return crawled.site


@pytest.fixture
def history(crawled):
    return crawled.bodies


def crawl(tamias, *words):
    done = tamias.crawl(*words, "--sink", "archive", "--sink", "warc", timeout=PATIENCE)
    assert done.returncode in (0, 1, 5), done.stderr
    return done


def read_all(data):
    """Every version of every resource by its number, as `tamias get` gives it."""
    with ArchiveReader(data) as archive:
        return {
            each.url: {
                version.number: archive.get(each.url, version=version.number).bytes()
                for version in archive.versions(each.url)
            }
            for each in archive.resources()
        }


def prefixes(bodies):
    return [body for versions in bodies.values() for body in versions.values()]


def found_in(data, bodies, wanted=MARK_BYTES):
    return find_bytes(data, wanted, prefixes(bodies))


def forget(tamias, *words):
    done = tamias.run("forget", *words, "--json", timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def warc_payloads(data):
    """URL and SHA-256 of each response that has a body, by a reader that others wrote."""
    found = []
    for path in sorted((data / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == "response":
                    payload = record.content_stream().read()
                    found.append((record.rec_headers["WARC-Target-URI"], hashlib.sha256(payload).hexdigest()))
    return found


def test_one_version_goes_everywhere_and_all_others_are_the_same(tamias, site, history):
    url = site.url("/3")
    quads, payloads = tamias.quads(), warc_payloads(tamias.data)
    gone = hashlib.sha256(history[url][3]).hexdigest()
    assert found_in(tamias.data, history)
    done = forget(tamias, url, "--version", "3", "--reason", "personal data")
    assert (done["finished"], done["bodies"], done["remains"]) == (1, 1, [])
    assert done["segments"] >= 1
    assert done["warc_records"] == 3
    kept = {
        each: {n: body for n, body in of.items() if (each, n) != (url, 3)} for each, of in history.items()
    }
    assert read_all(tamias.data) == kept
    assert tamias.quads() == quads
    assert warc_payloads(tamias.data) == [each for each in payloads if each != (url, gone)]
    assert found_in(tamias.data, history) == []
    check = tamias.run("check")
    assert check.returncode == 0, check.stdout
    said = tamias.run("get", url, "--version", "3")
    assert "was forgotten on" in said.stderr
    assert "personal data" in said.stderr


def test_a_forgotten_body_is_not_stored_again_when_it_comes_again(tamias, site, history):
    url = site.url("/3")
    forget(tamias, url, "--version", "3", "--reason", "personal data")
    site.pages["/3"] = history[url][3]
    crawl(tamias, "--recrawl", url)
    assert sorted(read_all(tamias.data)[url]) == [1, 2, 4, 5]
    assert found_in(tamias.data, history) == []
    assert [each["outcome"] for each in tamias.attempts()[url]][-1] in ("refused", "ok")
    assert any("personal data" in each["reason"] for each in tamias.attempts()[url])


def test_a_whole_resource_goes_and_is_refused_afterwards(tamias, site, history):
    url = site.url("/3")
    done = forget(tamias, url, "--reason", "asked for by its owner")
    assert (done["finished"], done["bodies"]) == (1, 5)
    assert read_all(tamias.data) == {each: of for each, of in history.items() if each != url}
    assert found_in(tamias.data, history) == []
    assert found_in(tamias.data, history, b"version 5 of 3") == []
    assert not any(url in line for line in tamias.quads() if line.endswith(f"<{url}> ."))
    asked = site.asked("/3")
    added = tamias.run("add", url)
    assert "asked for by its owner" in added.stderr
    crawl(tamias, "--crawl", "again", site.url("/1"), url)
    assert site.asked("/3") == asked
    reasons = [each["reason"] for each in tamias.attempts()[url]]
    assert any(each.startswith("forgotten on ") for each in reasons)
    assert tamias.run("check").returncode == 0


def test_a_lifted_url_is_fetched_again_and_counts_on(tamias, site, history):
    url = site.url("/3")
    forget(tamias, url)
    assert tamias.run("forget", url, "--lift").returncode == 0
    assert tamias.run("add", url).returncode == 0
    crawl(tamias, "--recrawl", url)
    assert list(read_all(tamias.data)[url]) == [6]
    assert "was forgotten on" in tamias.run("get", url, "--version", "2").stderr
    assert tamias.run("check").returncode == 0


@pytest.mark.parametrize("place", PLACES if KILLS > 5 else PLACES[1::2])
def test_killed_at_any_step_it_is_finished_by_the_next_run(tamias, site, history, place):
    url = site.url("/3")
    tamias.env["TAMIAS_FAULT"] = place
    done = tamias.run("forget", url, "--version", "3", timeout=PATIENCE)
    del tamias.env["TAMIAS_FAULT"]
    assert f"killed at {place}" in done.stderr
    kept = {
        each: {n: body for n, body in of.items() if (each, n) != (url, 3)} for each, of in history.items()
    }
    assert read_all(tamias.data) == kept
    assert forget(tamias, "--finish")["finished"] == 1
    assert read_all(tamias.data) == kept
    assert found_in(tamias.data, history) == []
    check = tamias.run("check")
    assert check.returncode == 0, check.stdout


def test_killed_again_and_again_while_a_crawl_runs_it_removes_that_version_and_nothing_else(
    tamias, site, history, kill
):
    """The crawl stores new versions behind the one that goes, in the same files."""
    url, chance, stop = site.url("/3"), random.Random(1), threading.Event()
    with closing(Database(tamias.data, create=False)) as database, closing(database.session()) as session:
        crawling = threading.Thread(target=crawl_on, args=(tamias, site, stop))
        crawling.start()
        begun = time.monotonic()
        tamias.run("forget", url, "--dry-run")
        takes = time.monotonic() - begun
        try:
            for _ in range(KILLS):
                ordered = session.fetch_all(b"SELECT forgotten FROM forgotten")
                words = ("--finish",) if ordered else (url, "--version", "3", "--reason", "personal data")
                forgetting = tamias.start("forget", *words)
                time.sleep(takes * chance.uniform(0.6, 2.5))
                kill(forgetting.pid)
                forgetting.communicate()
                read = read_all(tamias.data)
                assert {n: body for n, body in history[url].items() if n != 3}.items() <= read[url].items()
        finally:
            stop.set()
            crawling.join()
    if not ordered:
        forget(tamias, url, "--version", "3", "--reason", "personal data")
    assert forget(tamias, "--finish")["remains"] == []
    read = read_all(tamias.data)
    assert max(read[url]) > 5
    assert 3 not in read[url]
    for each, of in history.items():
        assert {n: body for n, body in of.items() if (each, n) != (url, 3)}.items() <= read[each].items()
    assert found_in(tamias.data, {**history, **read}) == []
    check = tamias.run("check", timeout=PATIENCE)
    assert check.returncode == 0, check.stdout


def crawl_on(tamias, site, stop):
    """Visits `/3` again and again, which changes every time."""
    version = 5
    while not stop.is_set():
        version += 1
        site.pages["/3"] = document(3, version)
        crawl(tamias, "--recrawl", site.url("/3"))

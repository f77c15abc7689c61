"""What a crawl brought is forgotten: versions, statements, WARC records; others keep every byte."""

import gzip
import hashlib
import json
import lzma
import os
import random
import shutil
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest
import zstandard
from warcio.archiveiterator import ArchiveIterator

from tamias.archive.reader.library import ArchiveReader
from tamias.database.connect import Database
from tests.messages import unsaid

from ..conftest import Site, Tamias
from .bytes_search import find_bytes

NIGHTLY = bool(os.environ.get("TAMIAS_NIGHTLY"))
KILLS = 50 if NIGHTLY else 3
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
    tamias.hold_server()
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
    made.hold_server()
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


def gz(content):
    return gzip.compress(content)


LEFT = {
    "a worker's spool": ("spool/body-1", bytes),
    "a spool of a harvest": ("harvests/1-2-3.nq.zst", zstandard.compress),
    "a file of quads without a row": ("rdf/left.nq.zst", zstandard.compress),
    "a file beside the packs": ("blobs/left.tmp", lambda body: b"x" * 1000 + zstandard.compress(body)),
    "a WARC file half brought": ("warc/left.warc.gz.part", lambda body: gz(b"WARC/1.1\r\n\r\n" + gz(body))),
    "an export": ("log/export.tar.xz", lzma.compress),
}


def test_check_finds_what_is_left_anywhere_and_not_what_others_have(tamias, site, history):
    url = site.url("/3")
    forget(tamias, url, "--version", "3")
    for name, packed in LEFT.values():
        (tamias.data / name).parent.mkdir(exist_ok=True)
        (tamias.data / name).write_bytes(packed(history[url][3]))
    found = tamias.run("check")
    assert found.returncode == 1
    for name, packed in LEFT.values():
        assert not unsaid(found.stdout, url, "3", name)
        others = history[url][2] + history[url][4] + history[site.url("/5")][1]
        (tamias.data / name).write_bytes(packed(others))
    found = tamias.run("check")
    assert found.returncode == 0, found.stdout


def test_what_other_pages_have_too_is_not_a_leftover(tamias, site, history):
    """Every mark of a page may be of what all pages of its site have: a file of theirs is no leftover."""
    common = history[site.url("/3")][1]
    site.pages |= {"/13": common, "/14": common + b"\n<> <#own> <#fourteen> ."}
    crawl(tamias, "--crawl", "others", site.url("/13"), site.url("/14"))
    forget(tamias, site.url("/13"))
    (tamias.data / "spool" / "other").write_bytes(site.pages["/14"])
    found = tamias.run("check")
    assert found.returncode == 0, found.stdout


def test_check_reads_what_warc_records_hold_whatever_their_heads_say(tamias, site, history):
    url = site.url("/3")
    forget(tamias, url, "--version", "3")
    path = min((tamias.data / "warc").glob("*.warc.gz"))
    sound = path.read_bytes()
    head = b"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: http://other.example/\r\n"
    head += b"WARC-Record-ID: <urn:uuid:1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed>\r\n"
    head += b"WARC-Date: 2026-01-01T00:00:00Z\r\n"
    body = gz(history[url][3])
    head += f"Content-Length: {len(body)}\r\n\r\n".encode()
    path.write_bytes(sound + gz(head + body + b"\r\n\r\n"))
    found = tamias.run("check")
    assert found.returncode == 1
    said = f"BAD  forgotten {url} version 3: its bytes are in warc/{path.name} at byte {len(sound)}"
    assert said in found.stdout


def test_check_finds_a_pack_without_a_row_and_a_row(tamias, site, history):
    url = site.url("/3")
    packs = {path: path.read_bytes() for path in (tamias.data / "blobs").glob("*.pack")}
    forget(tamias, url, "--version", "3")
    left = tamias.data / "blobs" / f"{uuid4()}.pack"
    left.write_bytes(b"".join(packs.values()))
    with closing(Database(tamias.data, create=False)) as database, closing(database.session()) as session:
        named = {"title": MARK, "url": url}
        session.execute(b"UPDATE resource SET title = %(title)b WHERE url = %(url)b", named)
    said = tamias.run("check").stdout
    assert f"BAD  forgotten {url} version 3: pack {left.stem} has it" in said
    assert not unsaid(said, "BAD", url, "3")


def test_check_reads_the_statements_of_every_generation_of_the_catalogue(tamias, site, history):
    url = site.url("/3")
    before, gone = tamias.data.parent / "before", tamias.data / "catalogue" / "store.gone"
    shutil.copytree(tamias.data / "catalogue" / "store", before)
    forget(tamias, url)
    shutil.copytree(before, gone)
    found = tamias.run("check")
    assert found.returncode == 1
    assert not unsaid(found.stdout, "BAD", url, "store.gone")
    shutil.rmtree(gone)
    found = tamias.run("check")
    assert found.returncode == 0, found.stdout


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
    assert not unsaid(added.stderr)
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
    check = tamias.run("check")
    assert check.returncode == 0, check.stdout


def warc_states(data):
    """The bodies of each URL that warcio reads."""
    found = {}
    for url, sha256 in warc_payloads(data):
        found.setdefault(url, set()).add(sha256)
    return found


def digests(*bodies):
    return {hashlib.sha256(body).hexdigest() for body in bodies}


@pytest.mark.parametrize("place", [None, "retention-warc"])
def test_rules_hold_for_captures_in_warc_files_too(tamias, site, history, tmp_path, place):
    """Of five states the last two stay; what only WARC files have counts as well; nothing else changes."""
    url, only_warc = site.url("/3"), site.url("/alone")
    for version in range(1, 5):
        site.pages["/alone"] = document(99, version)
        done = tamias.crawl("--sink", "warc", "--crawl", f"alone-{version}", only_warc, timeout=PATIENCE)
        assert done.returncode in (0, 1, 5), done.stderr
    before = warc_states(tamias.data)
    assert (len(before[url]), len(before[only_warc])) == (5, 4)
    (tamias.data.parent / "tamias.toml").write_text('[archive]\nkeep = "last:2"\n')
    words = ("--config", str(tamias.data.parent / "tamias.toml"))
    trial = forget(tamias, "--by-rules", "--dry-run", *words)
    assert (trial["versions"], trial["captures"]) == (3, 5)
    assert warc_states(tamias.data) == before
    if place:
        tamias.env["TAMIAS_FAULT"] = place
        assert f"killed at {place}" in tamias.run("forget", "--by-rules", *words, timeout=PATIENCE).stderr
        del tamias.env["TAMIAS_FAULT"]
        forget(tamias, "--finish")
    else:
        assert forget(tamias, "--by-rules", *words)["warc_records"] == 15
    kept = {
        url: digests(history[url][4], history[url][5]),
        only_warc: digests(document(99, 3), document(99, 4)),
    }
    assert warc_states(tamias.data) == {**before, **kept}
    assert forget(tamias, "--by-rules", "--dry-run", *words)["captures"] == 0
    check = tamias.run("check")
    assert check.returncode == 0, check.stdout


@pytest.mark.parametrize("place", PLACES if NIGHTLY else PLACES[1::4])
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


@pytest.mark.nightly
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

"""`kill -9` at every step of a commit: nothing true without its bytes, nothing lost, nothing twice."""

import random
from contextlib import closing

import pytest

from tamias.archive.blobs import BlobReader, LocalPacks
from tamias.archive.versions.resources import read_versions
from tamias.database.connect import Database
from tamias.features.check.checkup import Checkup
from tests.all_resources import all_resources
from tests.examples import sample
from tests.messages import unsaid

PLACES = [
    "body-fetched:3",
    "pack-made",
    "blob-part-written:5",
    "blob-written:3",
    "segments-synced:2",
    "blobs-synced:2",
    "links-put:2",
    "captures-inserted:2",
    "before-commit:2",
    "after-commit:2",
    "pack-closed",
]
"""On the path of a body, each the time when something was kept before it."""


DOCUMENTS = 12


def document(number):
    """One like no other, that links to two more."""
    text = random.Random(number).randbytes(4000).hex()
    further = [f"<#next> </{n}>" for n in (2 * number, 2 * number + 1) if n <= DOCUMENTS]
    return " ; ".join([f'<> <#says> "{text}"', *further]).encode() + b" .\n"


@pytest.fixture
def tamias(fresh):
    return fresh("data")


@pytest.fixture
def database(tamias):
    """Open all the time, so that the server is not started again for every process."""
    with closing(Database(tamias.data, create=False)) as kept:
        yield kept


@pytest.fixture
def pages(site):
    """Documents that are found one after another."""
    found = {f"/{number}": document(number) for number in range(1, DOCUMENTS + 1)}
    site.pages |= found
    return {site.url(path): body for path, body in found.items()}


@pytest.fixture
def die_at(tamias, kill, site):
    """`die_at(place, *words)` crawls until somebody is killed there; the supervisor falls with it."""

    def crawl_until_killed(place, *words):
        tamias.env["TAMIAS_FAULT"] = place
        crawl = tamias.start(
            "crawl", site.url("/1"), "--allow-private", "--delay", "0", "--workers", "1", *words
        )
        killed = f"TAMIAS_FAULT: killed at {place.partition(':')[0]}\n"
        said = []
        for line in crawl.stderr:
            said.append(line)
            if line == killed:
                break
        kill(crawl.pid)
        crawl.wait()
        del tamias.env["TAMIAS_FAULT"]
        assert killed in said, "".join(said)

    return crawl_until_killed


def versions_in(session, data):
    """The bodies of all versions, by address."""
    blobs = BlobReader(LocalPacks(data / "blobs"), session)
    kept = {each.id: each.url for each in all_resources(session)}
    versions = read_versions(session, list(kept))
    return {url: [blobs.read(each.sha256) for each in versions[name]] for name, url in kept.items()}


@pytest.mark.parametrize("place", sample(PLACES, 3))
def test_killed_at_any_step_of_a_commit_it_keeps_each_version_once_with_all_its_bytes(
    tamias, database, pages, die_at, place
):
    die_at(place, "--sink", "archive")
    done = tamias.crawl("--sink", "archive")
    assert done.returncode == 0, done.stderr
    with closing(database.session()) as session, closing(Checkup(database, tamias.data)) as checkup:
        assert versions_in(session, tamias.data) == {url: [body] for url, body in pages.items()}
        assert list(checkup.faults()) == []
    assert checkup.looked.blobs == len(pages)


def test_killed_between_a_delivery_and_its_mark_it_delivers_again_and_nothing_is_missing(
    tamias, database, pages, die_at, tmp_path
):
    sink = ("--sink", f"turtle-files:{tmp_path / 'files'}")
    die_at("delivered", *sink)
    done = tamias.crawl(*sink)
    assert done.returncode == 0, done.stderr
    files = [path.read_text() for path in (tmp_path / "files").rglob("*.ttl")]
    assert sorted(text.count("says") for text in files) == [1] * len(pages)


def test_a_service_that_others_can_reach_refuses_faults(tamias_at):
    tamias = tamias_at("none")
    tamias.env["TAMIAS_FAULT"] = "before-commit"
    tamias.env["TAMIAS_SECRET"] = "a secret that was chosen"
    done = tamias.run("serve", "--host", "0.0.0.0", "--port", "1")
    assert (done.returncode, not unsaid(done.stderr, "TAMIAS_FAULT")) == (4, True), done.stderr

"""What is forgotten goes out of an S3-compatible store too: packs, files of quads, WARC files."""

import hashlib
import json
import secrets
from contextlib import closing

import pytest

from tamias.database.connect import Database

from .bytes_search import find_bytes
from .test_forget_crawled import MARK_BYTES, PATIENCE, document

CRAWL = (
    "--allow-private",
    "--delay",
    "0.01",
    "--workers",
    "1",
    "--store",
    "s3://bucket/archive",
    "--sink",
    "archive",
)
CRAWL += ("--sink", "warc")


@pytest.fixture
def stored(machine, site):
    """A machine whose archive is in the store: `/3` has five versions, of which the third has the mark."""
    made = machine("one")
    site.pages |= {f"/{number}": document(number) for number in range(1, 5)}
    crawl(made, site.url("/1"))
    for version in (2, 3, 4, 5):
        site.pages["/3"] = document(3, version, marked=version == 3)
        crawl(made, "--recrawl", site.url("/3"))
    return made


def crawl(tamias, *words):
    done = tamias.run("crawl", *CRAWL, *words, timeout=PATIENCE)
    assert done.returncode in (0, 1, 5), done.stderr


def rows(tamias, statement):
    with (
        closing(Database(tamias.data, tamias.env["TAMIAS_DB"])) as database,
        closing(database.session()) as session,
    ):
        return session.fetch_all(statement)


def read_versions(tamias, url, folder):
    """Each version that is there, as the command gives it."""
    read, folder = {}, folder / secrets.token_hex(4)
    folder.mkdir()
    for number in range(1, 6):
        done = tamias.run("get", url, "--version", str(number), "-o", str(folder / str(number)))
        if done.returncode == 0:
            read[number] = folder.joinpath(str(number)).read_bytes()
    return read


def objects_with(object_store, folder, wanted, bodies):
    """The objects that have bytes, plain or packed, searched as files by a search that is not of Tamias."""
    folder.mkdir()
    for name, content in dict(object_store.objects).items():
        folder.joinpath(name.replace("/", "+")).write_bytes(content)
    return find_bytes(folder, wanted, bodies)


def forget(tamias, *words):
    done = tamias.run("forget", *words, "--json", timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def kinds_of(found):
    return {"pack" if name.endswith(".pack") else name.split("+")[1] for name, _ in found}


def test_a_version_goes_out_of_every_object_and_all_others_are_the_same(stored, site, object_store, tmp_path):
    url = site.url("/3")
    before, quads = read_versions(stored, url, tmp_path), stored.quads()
    bodies = list(before.values())
    found = objects_with(object_store, tmp_path / "before", MARK_BYTES, bodies)
    assert kinds_of(found) == {"pack", "rdf", "warc"}
    told = forget(stored, url, "--version", "3", "--reason", "personal data")
    assert (told["finished"], told["bodies"], told["warc_records"], told["remains"]) == (1, 1, 3, [])
    assert objects_with(object_store, tmp_path / "after", MARK_BYTES, bodies) == []
    assert find_bytes(stored.data, MARK_BYTES, bodies) == []
    assert read_versions(stored, url, tmp_path) == {n: body for n, body in before.items() if n != 3}
    assert stored.quads() == quads
    assert digests_of_rows(stored) == digests_of_objects(stored, object_store)
    check = stored.run("check", timeout=PATIENCE)
    assert check.returncode == 0, check.stdout


@pytest.mark.parametrize("place", ["forget-object:1", "forget-object:2"], ids=["quads", "warc"])
def test_killed_after_an_object_it_is_finished_by_the_next_run(stored, site, object_store, tmp_path, place):
    """A dead worker left parts that were merged: they have the bytes as well."""
    url = site.url("/3")
    bodies = list(read_versions(stored, url, tmp_path).values())
    for name, content in list(object_store.objects.items()):
        if not name.endswith(".pack"):
            object_store.objects[f"{name}.000000000000"] = content
    stored.env["TAMIAS_FAULT"] = place
    killed = stored.run("forget", url, "--version", "3", timeout=PATIENCE)
    del stored.env["TAMIAS_FAULT"]
    assert "killed at forget-object" in killed.stderr
    assert forget(stored, "--finish")["finished"] == 1
    assert objects_with(object_store, tmp_path / "after", MARK_BYTES, bodies) == []
    assert digests_of_rows(stored) == digests_of_objects(stored, object_store)
    check = stored.run("check", timeout=PATIENCE)
    assert check.returncode == 0, check.stdout


def digests_of_rows(tamias):
    """Of files that are one object."""
    wanted = b"SELECT kind || '/' || name, encode(sha256, 'hex') FROM stored_file"
    return dict(rows(tamias, wanted + b" WHERE parts = '{}' AND committed > 0"))


def digests_of_objects(tamias, object_store):
    """Of those that rows name so."""
    return {
        name: hashlib.sha256(object_store.objects[f"archive/{name}"]).hexdigest()
        for name in digests_of_rows(tamias)
    }

"""What is forgotten goes out of an S3-compatible store too: packs, files of quads, WARC files."""

import hashlib
import json
import os
import random
import secrets
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest
import zstandard

from tamias.database.connect import Database
from tests.messages import unsaid

from ..conftest import Site, Tamias, shared_by_machines
from .blobs import s3_server
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


class StoredOnce(NamedTuple):
    """The data of a database and of a machine, both ended, what is in the store, and where it came from."""

    server: Path
    machine: Path
    objects: dict[str, bytes]
    site: Site


@pytest.fixture(scope="module")
def stored_once(made_once, tmp_path_factory):
    """`/3` has five versions, of which the third has the mark."""
    folder = tmp_path_factory.mktemp("stored")
    server, made, site = Tamias(folder / "server"), Tamias(folder / "one"), Site("127.0.0.1")
    shutil.copytree(made_once, server.data)
    site.pages |= {f"/{number}": document(number) for number in range(1, 5)}
    with s3_server.serving() as store:
        with closing(Database(server.data)) as database:
            made.env |= shared_by_machines(database, store)
            crawl(made, site.url("/1"))
            for version in (2, 3, 4, 5):
                site.pages["/3"] = document(3, version, marked=version == 3)
                crawl(made, "--recrawl", site.url("/3"))
        made.end()
        server.end()
        yield StoredOnce(server.data, made.data, dict(store.objects), site)
    site.close()


@pytest.fixture
def site(stored_once):
    return stored_once.site


@pytest.fixture
def stored(stored_once, tamias_at, object_store):
    """A machine whose archive is in the store: copies of what was made once."""
    server, made = tamias_at("server"), tamias_at("one")
    shutil.copytree(stored_once.server, server.data)
    shutil.copytree(stored_once.machine, made.data)
    object_store.objects |= stored_once.objects
    with closing(Database(server.data)) as database:
        made.env |= shared_by_machines(database, object_store)
        yield made


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


LEFT = (
    "harvests/1-2-3.nq.zst.000000000000",
    "rdf/e895c5b1-accc-4bdf-967b-fb7d513cd316.nq.zst.000000000000",
    "warc/left-bacf27c9-c9f4-4785-ad11-6cf2f42f912c.warc.gz",
    "someone-else",
)


def test_check_searches_objects_that_no_row_names(stored, site, object_store, tmp_path):
    url = site.url("/3")
    body = read_versions(stored, url, tmp_path)[3]
    forget(stored, url, "--version", "3", "--reason", "personal data")
    for name in LEFT:
        object_store.objects[f"archive/{name}"] = zstandard.compress(body)
    check = stored.run("check", timeout=PATIENCE)
    assert check.returncode == 1
    for name in LEFT:
        assert not unsaid(check.stdout, url, "3", name)
        del object_store.objects[f"archive/{name}"]
    check = stored.run("check", timeout=PATIENCE)
    assert check.returncode == 0, check.stdout


def test_check_searches_packs_and_sealed_files_as_they_are_in_the_store(stored, site, object_store, tmp_path):
    url = site.url("/3")
    before = dict(object_store.objects)
    forget(stored, url, "--version", "3", "--reason", "personal data")
    packs = [content for name, content in before.items() if name.endswith(".pack")]
    left = uuid4()
    object_store.objects[f"archive/{left}.pack"] = b"".join(packs)
    changed = [name for name in before if object_store.objects.get(name) not in (before[name], None)]
    assert {name.split("/")[1] for name in changed} == {"rdf", "warc"}
    object_store.objects |= {name: before[name] for name in changed}
    said = stored.run("check", timeout=PATIENCE).stdout
    assert f"BAD  forgotten {url} version 3: pack {left} has it" in said
    assert not unsaid(said, "BAD", url, "3", part=2)
    assert not unsaid(said)


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


REPLACE = """
import hashlib, os, resource, sys
from pathlib import Path
from tamias.archive.blobs.objects import ObjectClient, open_bucket
from tamias.archive.file_store import FileStore
resource.setrlimit(resource.RLIMIT_DATA, (192 << 20, 192 << 20))
store = FileStore(Path(sys.argv[1]), objects=ObjectClient(open_bucket("s3://bucket/archive", os.environ)))
length, told = int(sys.argv[2]), []
changes = {-3: b"first", (16 << 20) - 2: b"across", length - 2: b"end"}
assert store.replace("rdf/large", length, changes, told.append)
print(told[0])
"""


def test_a_large_object_is_written_anew_within_little_memory(machine, object_store, tmp_path):
    """An object of 256 MB, by a process that may have 192 MB."""
    plain = bytearray(random.Random(1).randbytes(1 << 20) * 256)
    object_store.objects["archive/rdf/large"] = bytes(plain)
    words = [sys.executable, "-c", REPLACE, str(tmp_path), str(len(plain))]
    done = subprocess.run(
        words, env={**os.environ, **machine("one").env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    plain[:2], plain[-2:] = b"st", b"en"
    plain[(16 << 20) - 2 : (16 << 20) + 4] = b"across"
    assert hashlib.sha256(object_store.objects["archive/rdf/large"]).hexdigest() == done.stdout.strip()
    assert object_store.objects["archive/rdf/large"] == plain


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

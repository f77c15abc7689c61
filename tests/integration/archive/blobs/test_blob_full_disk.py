"""On a full disk nothing half-written counts, and the work goes on when there is room."""

import os
import random
import subprocess

import pytest

from tamias.archive.blobs import LocalPacks
from tamias.archive.blobs.objects import ObjectWriter
from tamias.features.check.blobs import BlobCheck
from tamias.model.errors import DiskFull

from .conftest import body_of


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    if os.geteuid():
        pytest.skip("only root can mount a file system")
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def store(make_store, small_disk):
    return make_store(LocalPacks(small_disk / "blobs"))


def noise(seed, size):
    return random.Random(seed).randbytes(size)


def test_a_body_that_does_not_fit_is_refused(store):
    with pytest.raises(DiskFull, match="free some space"):
        store.writer.prepare(body_of(noise(1, 2_000_000)))


def test_nothing_of_it_stays_in_the_pack(store, small_disk):
    (first,) = store.put(body_of(noise(1, 100_000)))
    with pytest.raises(DiskFull):
        store.writer.prepare(body_of(noise(2, 2_000_000)))
    (pack,) = (small_disk / "blobs").iterdir()
    assert pack.stat().st_size == first.written


def test_what_was_prepared_before_still_becomes_true(store):
    prepared = store.writer.prepare(body_of(noise(1, 100_000)))
    with pytest.raises(DiskFull):
        store.writer.prepare(body_of(noise(2, 2_000_000)))
    (again,) = store.put(body_of(noise(1, 100_000)))
    assert again.sha256 == prepared.sha256
    assert store.reader().read(prepared.sha256) == noise(1, 100_000)


def test_the_work_goes_on_when_there_is_room(store, small_disk):
    (small_disk / "ballast").write_bytes(bytes(900_000))
    with pytest.raises(DiskFull):
        store.writer.prepare(body_of(noise(1, 300_000)))
    (small_disk / "ballast").unlink()
    (prepared,) = store.put(body_of(noise(1, 300_000)))
    assert store.reader().read(prepared.sha256) == noise(1, 300_000)
    assert list(BlobCheck(store.packs, store.other).damages()) == []


def test_chunks_of_a_body_that_did_not_fit_are_not_taken_for_known(make_store, small_disk):
    store = make_store(LocalPacks(small_disk / "blobs"), whole_bytes=50_000)
    large = noise(1, 2_000_000)
    with pytest.raises(DiskFull):
        store.writer.prepare(body_of(large))
    (prepared,) = store.put(body_of(large[:300_000]))
    assert store.reader().read(prepared.sha256) == large[:300_000]


def test_a_spool_without_room_is_told_as_such(small_disk):
    writer = ObjectWriter(None, small_disk, None)
    with pytest.raises(DiskFull):
        writer.append([noise(1, 2_000_000)])
    assert writer.length == 0
    writer.close()
